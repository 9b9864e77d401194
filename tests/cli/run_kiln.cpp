#include "run_kiln.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace fs = std::filesystem;

namespace kiln::test {
namespace {

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::string> clean_environment(const std::map<std::string, std::string>& added) {
    std::vector<std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (added.contains(text.substr(0, text.find('=')))) {
            continue;
        }
        if (!text.starts_with("KILN_") || text.starts_with("KILN_ROCM_PREFIX=")) {
            result.push_back(text);
        }
    }
    for (const auto& [name, value] : added) {
        result.push_back(name + "=" + value);
    }
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (auto& word : words) {
        result.push_back(word.data());
    }
    result.push_back(nullptr);
    return result;
}

void redirect(const fs::path& path, int to) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(fd, to);
}

}  // namespace

nlohmann::json Outcome::json() const {
    auto document = nlohmann::json::parse(out, nullptr, false);
    INFO("stdout: " << out);
    INFO("stderr: " << err);
    REQUIRE_FALSE(document.is_discarded());
    return document;
}

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "kiln-cli-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

Outcome run_kiln(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment, const RunOptions& options) {
    const TemporaryFolder folder;
    auto words = arguments;
    words.insert(words.begin(), KILN_PROGRAM);
    auto variables = clean_environment(environment);
    const auto word_pointers = pointers(words);
    const auto variable_pointers = pointers(variables);

    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        redirect(options.out != nullptr ? fs::path(options.out) : folder.path() / "out", STDOUT_FILENO);
        redirect(options.err != nullptr ? fs::path(options.err) : folder.path() / "err", STDERR_FILENO);
        ::execve(KILN_PROGRAM, word_pointers.data(), variable_pointers.data());
        std::_Exit(127);
    }
    if (options.interrupt_after_ms > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(options.interrupt_after_ms));
        ::kill(child, SIGINT);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(folder.path() / "out"),
            contents(folder.path() / "err")};
}

}  // namespace kiln::test
