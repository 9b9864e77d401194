// What is written to the log while something runs.
#pragma once

#include <doctest/doctest.h>
#include <stdio.h>
#include <unistd.h>

#include <string>

#include "base/log.hpp"

namespace kiln::test {

struct LogLines {
    std::string text;
    // How often `part` stands in it.
    [[nodiscard]] std::size_t count(const std::string& part) const {
        std::size_t found = 0;
        for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
            ++found;
        }
        return found;
    }
};

// Leaves the log switched off.
template <class Work>
LogLines log_lines(log::Level level, const Work& work) {
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    const int saved = ::dup(STDERR_FILENO);
    ::dup2(::fileno(file), STDERR_FILENO);
    log::set_level(level);
    work();
    log::set_level(log::Level::off);
    ::dup2(saved, STDERR_FILENO);
    ::close(saved);
    LogLines lines;
    lines.text.resize(static_cast<std::size_t>(::lseek(::fileno(file), 0, SEEK_END)));
    const auto bytes = ::pread(::fileno(file), lines.text.data(), lines.text.size(), 0);
    CHECK(bytes == static_cast<ssize_t>(lines.text.size()));
    std::fclose(file);
    return lines;
}

}  // namespace kiln::test
