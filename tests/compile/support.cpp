#include "support.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "runtime/compile/toolchain.hpp"

namespace kiln::compile::test {

namespace fs = std::filesystem;

bool has_cuda() {
    const auto toolchain = find_toolchain({}, Family::cuda);
    if (!toolchain) {
        MESSAGE("skipped: " << toolchain.error().message);
    }
    return toolchain.has_value();
}

CompileResult compile_well(Compiler& compiler, const CompileRequest& request) {
    auto result = compiler.compile(request);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    return *std::move(result);
}

Error compile_badly(Compiler& compiler, const CompileRequest& request) {
    const auto result = compiler.compile(request);
    REQUIRE(!result);
    return result.error();
}

void check_that_options_reach(Compiler& compiler, CompileRequest request) {
    request.source = "#if ANSWER != 42\n#error no answer\n#endif\n" + request.source;
    CHECK(compile_badly(compiler, request).code == ErrorCode::compile_failed);
    request.options.push_back("-DANSWER=42");
    compile_well(compiler, request);
    request.options.push_back("-fno-such-option");
    const auto error = compile_badly(compiler, request);
    CHECK(error.code == ErrorCode::compile_failed);
    CHECK_MESSAGE(is_within(error.message, "-fno-such-option"), error.message);
}

bool is_within(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::vector<int> children() {
    std::vector<int> pids;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        const std::string stat = proc_text(std::stoi(name), "stat");
        // PID (COMMAND) STATE PPID ...: the command may hold anything, so the last parenthesis counts.
        const auto end = stat.rfind(')');
        if (end != std::string::npos && std::atoi(stat.c_str() + end + 4) == ::getpid()) {
            pids.push_back(std::stoi(name));
        }
    }
    return pids;
}

std::string proc_text(int pid, const std::string& file) {
    std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();  // which takes a process that goes meanwhile for the end of the file
    return text.str();
}

std::size_t count_open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

std::size_t count_threads() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "kiln-compile-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

ScopedVariable::ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* const old = std::getenv(name);
    was_set_ = old != nullptr;
    old_ = was_set_ ? old : "";
    ::setenv(name, value, 1);
}

ScopedVariable::~ScopedVariable() {
    if (was_set_) {
        ::setenv(name_, old_.c_str(), 1);
    } else {
        ::unsetenv(name_);
    }
}

bool wait_a_little() {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return true;
}

}  // namespace kiln::compile::test
