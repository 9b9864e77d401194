// A program that embeds the compiler under a condition that engines and their surroundings put it in, and
// says what came of it: `compile_host CONDITION REPORT`, where REPORT is the number of a descriptor to write
// to. On success
//   identity DOCUMENT
//   code DIGEST
//   listing DIGEST
//   worker descriptors COUNT
// else "error CODE MESSAGE". What is worth knowing besides goes into lines of "note ...".

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <locale>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.hpp"
#include "runtime/compile/compiler.hpp"

namespace {

namespace fs = std::filesystem;
using namespace kiln::compile;

std::string g_report;

void say(const std::string& line) {
    g_report += line + "\n";
}

void say_number(const char* what, long long number) {
    char text[200];
    std::snprintf(text, sizeof text, "%s %lld", what, number);
    say(text);
}

CompileRequest request() {
    CompileRequest wanted;
    wanted.name = "group/kernel.gfx950.hip";
    wanted.source =
        "#include \"scale.h\"\n"
        "extern \"C\" __global__ void scale_all(float* values) { values[threadIdx.x] *= kScale; }\n";
    wanted.headers = {{.name = "scale.h", .text = "constexpr float kScale = 1234567.25f;\n"}};
    wanted.target = "gfx950";
    wanted.options = {"-O3", "-std=c++20", "-mcumode"};
    return wanted;
}

CompileRequest cuda_request() {
    CompileRequest wanted = request();
    wanted.name = "group/kernel.sm_90a.cu";
    wanted.target = "sm_90a";
    wanted.options = {"-std=c++20"};
    return wanted;
}

// Hundreds of megabytes and seconds: 4 ** 11 elements, each a token and a node of the syntax tree.
CompileRequest heavy_request() {
    CompileRequest wanted = request();
    wanted.source = "#define A0 1,1,1,1,\n";
    for (int i = 1; i < 11; ++i) {
        const std::string before = " A" + std::to_string(i - 1);
        wanted.source += "#define A" + std::to_string(i) + before + before + before + before + "\n";
    }
    wanted.source +=
        "__device__ const int many[] = {A10};\n"
        "extern \"C\" __global__ void pick(int* out) { *out = many[threadIdx.x]; }\n";
    return wanted;
}

// Minutes of constant evaluation in little memory.
CompileRequest endless_request() {
    CompileRequest wanted = request();
    wanted.source =
        "constexpr int count(int n) { return n < 2 ? n : count(n - 1) + count(n - 2); }\n"
        "constexpr int forever = count(60);\n" +
        wanted.source;
    wanted.options.push_back("-fconstexpr-steps=2147483647");
    return wanted;
}

void say_error(const kiln::Error& error) {
    std::string message = error.message;
    for (char& c : message) {
        c = c == '\n' ? ' ' : c;
    }
    say("error " + std::to_string(static_cast<int>(error.code)) + " " + message);
}

std::size_t count_descriptors(const std::string& process) {
    std::error_code error;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/" + process + "/fd", error), fs::directory_iterator()));
}

// The workers of this process.
std::vector<std::string> workers() {
    std::vector<std::string> pids;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc/self/task", error)) {
        std::FILE* const file = std::fopen((entry.path() / "children").c_str(), "re");
        int pid = 0;
        while (file != nullptr && std::fscanf(file, "%d", &pid) == 1) {
            pids.push_back(std::to_string(pid));
        }
        if (file != nullptr) {
            std::fclose(file);
        }
    }
    return pids;
}

void compile_and_say(Compiler& compiler, const CompileRequest& wanted) {
    const auto result = compiler.compile(wanted);
    if (!result) {
        say_error(result.error());
        return;
    }
    const auto identity = compiler.identity(wanted.target);
    if (!identity) {
        say_error(identity.error());
        return;
    }
    say("identity " + identity->document);
    say("code " + kiln::sha256(result->code_object).hex());
    say("listing " + kiln::sha256(result->listing).hex());
    say_number("note driver",
               std::count_if(result->loaded.begin(), result->loaded.end(), [](const auto& path) {
                   return fs::path(path).filename().string().starts_with("libcuda.so");
               }));
    for (const std::string& worker : workers()) {
        say_number("worker descriptors", static_cast<long long>(count_descriptors(worker)));
    }
}

std::unique_ptr<Compiler> make(const CompilerConfig& config = {}) {
    auto made = Compiler::create(config);
    if (!made) {
        say_error(made.error());
        return nullptr;
    }
    return *std::move(made);
}

void ordinary() {
    if (const auto compiler = make()) {
        compile_and_say(*compiler, request());
    }
}

void lower(int resource, rlim_t soft, rlim_t hard = RLIM_INFINITY) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    limit.rlim_max = std::min(limit.rlim_max, hard);
    limit.rlim_cur = std::min(limit.rlim_max, soft);
    if (::setrlimit(resource, &limit) != 0) {
        std::perror("setrlimit");
        std::exit(2);
    }
}

// The files that a program of ours has open, and then a few.
rlim_t descriptors_in_use() {
    return count_descriptors("self") + 8;
}

void collect_everything() {
    std::atomic<bool> stop = false;
    std::thread collector([&] {
        while (!stop) {
            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    ordinary();
    stop = true;
    collector.join();
}

void ignore_children(int flags) {
    struct sigaction action {};
    action.sa_handler = flags == 0 ? SIG_IGN : SIG_DFL;
    action.sa_flags = flags;
    ::sigaction(SIGCHLD, &action, nullptr);
    ordinary();
}

// Ten thousand that a child would inherit.
void hold_descriptors() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    long long held = 0;
    while (held < 10'000 && ::dup(STDERR_FILENO) >= 0) {
        ++held;
    }
    say_number("note held", held);
    const auto before = count_descriptors("self");
    ordinary();
    say_number("note leaked",
               static_cast<long long>(count_descriptors("self")) - static_cast<long long>(before));
}

// What a person in Germany may have, and a program that groups digits besides.
struct Grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

void change_locale(const char* name) {
    if (name != nullptr) {
        if (std::setlocale(LC_ALL, name) == nullptr) {
            say("note no such locale");
            return;
        }
        char text[32];
        std::snprintf(text, sizeof text, "%.1f", 0.5);
        say(std::string("note a half is ") + text);
    }
    std::locale::global(std::locale(std::locale::classic(), new Grouping));
    ordinary();
}

void close_standard_streams() {
    for (int fd = 0; fd < 3; ++fd) {
        ::close(fd);
    }
    const auto compiler = make();
    if (compiler == nullptr) {
        return;
    }
    compile_and_say(*compiler, request());
    // Now the compiler has a worker; whatever else prints must not reach it.
    for (int fd = 0; fd < 3; ++fd) {
        if (::write(fd, "printed", 7) == 7) {
            say_number("note writable", fd);
        }
    }
    g_report.clear();
    compile_and_say(*compiler, request());
}

void lose_working_folder() {
    std::string folder = (fs::temp_directory_path() / "kiln-host-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr || ::chdir(folder.c_str()) != 0) {
        std::exit(2);
    }
    const auto compiler = make();
    ::rmdir(folder.c_str());
    if (compiler != nullptr) {
        compile_and_say(*compiler, request());
    }
}

void block_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ordinary();
}

void ask_from_many_threads() {
    const auto compiler = make({.worker = {}, .toolchain_prefix = {}, .workers = 3});
    if (compiler == nullptr) {
        return;
    }
    std::vector<kiln::Result<CompileResult>> results(6);
    std::vector<std::thread> threads;
    for (auto& result : results) {
        threads.emplace_back([&] { result = compiler->compile(request()); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (const auto& result : results) {
        if (!result || result->code_object != results[0]->code_object) {
            say(result ? "error 0 other bytes" : "error 0 " + result.error().message);
        }
    }
    say_number("note workers", static_cast<long long>(workers().size()));
    compile_and_say(*compiler, request());
}

void compile_inside(const CompileRequest& wanted = request()) {
    if (const auto compiler = make({.worker = {}, .toolchain_prefix = {}, .in_process = true})) {
        compile_and_say(*compiler, wanted);
    }
}

void load_another_library() {
    if (::dlopen(std::getenv("KILN_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL) == nullptr) {
        std::exit(2);
    }
}

void say_preloaded() {
    // The symbol is the preloaded library's own, and counts what went through its malloc.
    const auto count = reinterpret_cast<long long (*)()>(::dlsym(RTLD_DEFAULT, "kiln_test_allocations"));
    say_number("note preloaded", count != nullptr && count() > 0 ? 1 : 0);
    ordinary();
}

bool run(const std::string& condition) {
    if (condition == "ordinary") {
        ordinary();
    } else if (condition == "sigchld ignored") {
        ignore_children(0);
    } else if (condition == "no zombies") {
        ignore_children(SA_NOCLDWAIT);
    } else if (condition == "collects everything") {
        collect_everything();
    } else if (condition == "many descriptors") {
        hold_descriptors();
    } else if (condition == "low soft limits") {
        lower(RLIMIT_STACK, 512 << 10);
        lower(RLIMIT_FSIZE, 0);
        lower(RLIMIT_CPU, 3600);
        lower(RLIMIT_NOFILE, descriptors_in_use() + 8);
        lower(RLIMIT_CORE, 0);
        ordinary();
    } else if (condition == "low soft memory") {
        lower(RLIMIT_AS, 256 << 20);
        lower(RLIMIT_DATA, 64 << 20);
        ordinary();
    } else if (condition == "no descriptors left") {
        lower(RLIMIT_NOFILE, count_descriptors("self"), count_descriptors("self"));
        ordinary();
    } else if (condition == "hard cpu limit") {
        lower(RLIMIT_CPU, 1, 1);
        if (const auto compiler = make()) {
            compile_and_say(*compiler, endless_request());
        }
    } else if (condition == "hard memory limit") {
        lower(RLIMIT_AS, 384 << 20, 384 << 20);
        if (const auto compiler = make()) {
            compile_and_say(*compiler, heavy_request());
        }
    } else if (condition == "hard file limit") {
        lower(RLIMIT_FSIZE, 0, 0);
        ordinary();
    } else if (condition == "hard process limit") {
        lower(RLIMIT_NPROC, 1, 1);
        ordinary();
    } else if (condition == "decimal comma") {
        change_locale("de_DE.ISO-8859-1");
    } else if (condition == "grouped digits") {
        change_locale(nullptr);
    } else if (condition == "closed standard streams") {
        close_standard_streams();
    } else if (condition == "no working folder") {
        lose_working_folder();
    } else if (condition == "signals blocked") {
        block_signals();
    } else if (condition == "many threads") {
        ask_from_many_threads();
    } else if (condition == "other malloc") {
        say_preloaded();
    } else if (condition == "memory limit") {
        if (const auto compiler = make({.worker = {},
                                        .toolchain_prefix = {},
                                        .workers = 1,
                                        .memory_limit = std::uint64_t{384} << 20})) {
            compile_and_say(*compiler, heavy_request());
            compile_and_say(*compiler, request());
        }
    } else if (condition == "in process") {
        compile_inside();
    } else if (condition == "in process beside another") {
        load_another_library();
        compile_inside();
    } else if (condition == "cuda") {
        if (const auto compiler = make()) {
            compile_and_say(*compiler, cuda_request());
        }
    } else if (condition == "in process, cuda") {
        compile_inside(cuda_request());
    } else if (condition == "in process, cuda beside another") {
        load_another_library();
        compile_inside(cuda_request());
    } else if (condition == "in process, then replaced") {
        if (const auto compiler = make({.worker = {}, .toolchain_prefix = {}, .in_process = true})) {
            compile_and_say(*compiler, request());
            fs::rename(std::getenv("KILN_TEST_REPLACEMENT"), std::getenv("KILN_TEST_REPLACED"));
            compile_and_say(*compiler, request());
        }
    } else if (condition == "in process, then forked") {
        compile_inside();
        const pid_t child = ::fork();
        if (child == 0) {
            g_report.clear();
            compile_inside();
            ::_exit(g_report.starts_with("error 4 ") && g_report.find("forked") != std::string::npos ? 0 : 1);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        say_number("note child", status);
    } else if (condition == "in process, many threads") {
        std::vector<std::thread> threads;
        const auto compiler = make({.worker = {}, .toolchain_prefix = {}, .in_process = true});
        for (int i = 0; i < 3 && compiler != nullptr; ++i) {
            threads.emplace_back([&] {
                if (const auto result = compiler->compile(request()); !result) {
                    std::fprintf(stderr, "%s\n", result.error().message.c_str());
                    std::abort();
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        compile_inside();
    } else {
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 || !run(argv[1])) {
        std::fputs("usage: compile_host CONDITION DESCRIPTOR\n", stderr);
        return 2;
    }
    const int report = std::atoi(argv[2]);
    return ::write(report, g_report.data(), g_report.size()) == static_cast<ssize_t>(g_report.size()) ? 0 : 1;
}
