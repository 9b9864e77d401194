#include "run_kiln.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace fs = std::filesystem;

namespace kiln::test {
namespace {

bool is_named(const std::string& variable, const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const auto& name) { return variable.starts_with(name + "="); });
}

std::vector<std::string> clean_environment(const Variables& added, std::vector<std::string> unset) {
    std::vector<std::string> result;
    unset.insert(unset.end(), {"XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"});
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        const bool pins_compiler =
            text.starts_with("KILN_ROCM_PREFIX=") || text.starts_with("KILN_CUDA_PREFIX=");
        if ((!text.starts_with("KILN_") || pins_compiler) && !is_named(text, unset)) {
            result.push_back(text);
        }
    }
    Variables all = {{"XDG_CONFIG_HOME", "/nonexistent/config"}, {"XDG_CONFIG_DIRS", "/nonexistent/config"}};
    for (const auto& [name, value] : added) {
        all[name] = value;
    }
    for (const auto& [name, value] : all) {
        std::erase_if(result, [&name = name](const auto& text) { return text.starts_with(name + "="); });
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

Running::Running(const std::vector<std::string>& arguments, const Variables& environment,
                 const RunOptions& options) {
    auto words = arguments;
    words.insert(words.begin(), options.program);
    auto variables = clean_environment(environment, options.unset);
    const auto word_pointers = pointers(words);
    const auto variable_pointers = pointers(variables);
    const auto out = options.out != nullptr ? fs::path(options.out) : folder_.path() / "out";
    const auto err = options.err != nullptr ? fs::path(options.err) : folder_.path() / "err";

    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
        redirect(out, STDOUT_FILENO);
        redirect(err, STDERR_FILENO);
        if (options.before && !options.before()) {
            std::_Exit(kNotStarted);
        }
        ::execve(options.program, word_pointers.data(), variable_pointers.data());
        std::_Exit(kNotStarted);
    }
}

Running::~Running() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status_, 0);
    }
}

void Running::send(int signal) const {
    if (pid_ > 0) {
        ::kill(pid_, signal);
    }
}

std::string Running::err() const {
    return contents(folder_.path() / "err");
}

bool Running::ended() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
        pid_ = -1;
    }
    return pid_ < 0;
}

bool Running::wait_for_err(const std::string& text) {
    while (true) {
        const bool is_last_look = ended();
        if (err().find(text) != std::string::npos) {
            return true;
        }
        if (is_last_look) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

Outcome Running::wait() {
    if (pid_ > 0) {
        REQUIRE(::waitpid(pid_, &status_, 0) == pid_);
        pid_ = -1;
    }
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
            contents(folder_.path() / "out"), err()};
}

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

Outcome run_kiln(const std::vector<std::string>& arguments, const Variables& environment,
                 const RunOptions& options) {
    return Running(arguments, environment, options).wait();
}

std::vector<std::string> with(std::vector<std::string> head, const std::vector<std::string>& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace kiln::test
