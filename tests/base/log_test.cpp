#include "base/log.hpp"

#include <doctest/doctest.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cmath>
#include <locale>
#include <string>
#include <thread>
#include <vector>

namespace log_ = kiln::log;
using log_::Level;

namespace {

// What `work` writes to stderr, at that level.
template <class Work>
std::string captured(Level level, const Work& work) {
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    const int saved = ::dup(STDERR_FILENO);
    ::dup2(::fileno(file), STDERR_FILENO);
    log_::set_level(level);
    work();
    log_::set_level(Level::warning);
    ::dup2(saved, STDERR_FILENO);
    ::close(saved);
    std::string text(static_cast<std::size_t>(::lseek(::fileno(file), 0, SEEK_END)), '\0');
    CHECK(::pread(::fileno(file), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    std::fclose(file);
    return text;
}

}  // namespace

TEST_CASE("LogLevelIsReadFromItsWord") {
    log_::Level level = log_::Level::off;
    CHECK(log_::parse_level("debug", level));
    CHECK(level == log_::Level::debug);
    CHECK(log_::parse_level("off", level));
    CHECK(level == log_::Level::off);
}

TEST_CASE("LogLevelRefusesOtherWordsAndKeepsTheLevel") {
    log_::Level level = log_::Level::info;
    CHECK_FALSE(log_::parse_level("verbose", level));
    CHECK_FALSE(log_::parse_level("", level));
    CHECK_FALSE(log_::parse_level("Debug", level));
    CHECK(level == log_::Level::info);
}

TEST_CASE("LogSaysOnlyWhatTheLevelAdmits") {
    log_::set_level(log_::Level::error);
    CHECK(log_::enabled(log_::Level::error));
    CHECK_FALSE(log_::enabled(log_::Level::warning));
    log_::set_level(log_::Level::off);
    CHECK_FALSE(log_::enabled(log_::Level::error));
    log_::set_level(log_::Level::warning);
    CHECK(log_::enabled(log_::Level::warning));
}

TEST_CASE("EventIsOneLineOfNamedFields") {
    const std::string kernel = "kiln_linear_n5120_k4096_m32";
    const auto text = captured(Level::info, [&] {
        log_::event(Level::info, "compile",
                    {{"kernel", kernel},
                     {"seconds", 0.8125},
                     {"bytes", std::size_t{12}},
                     {"code", -3},
                     {"kept", true}});
        log_::event(Level::warning, "reload", {});
        log_::event(Level::debug, "silent", {{"x", 1}});
    });
    CHECK(text ==
          "kiln: info: compile kernel=kiln_linear_n5120_k4096_m32 seconds=0.8125 bytes=12 code=-3 kept=true\n"
          "kiln: warning: reload\n");
}

TEST_CASE("EventWithAHostileTextStaysOneLine") {
    const auto text = captured(Level::info, [] {
        log_::event(Level::error, "damaged",
                    {{"path", "/tmp/x\nkiln: info: compile kernel=forged"}, {"next", "a b"}});
    });
    CHECK(text == R"(kiln: error: damaged path="/tmp/x\nkiln: info: compile kernel=forged" next="a b")"
                  "\n");
}

TEST_CASE("SentenceWithAHostileTextForgesNoLine") {
    const auto text = captured(
        Level::info, [] { log_::warning("{}: not readable", "/tmp/x\nkiln: error: forged\x1b[2J"); });
    CHECK(text == "kiln: warning: /tmp/x\n  | kiln: error: forged\\x1b[2J: not readable\n");
}

TEST_CASE("EventWritesNumbersTheSameInEveryLocale") {
    struct DecimalComma : std::numpunct<char> {
        char do_decimal_point() const override { return ','; }
        char do_thousands_sep() const override { return '.'; }
        std::string do_grouping() const override { return "\3"; }
    };
    const auto before = std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
    // The C library's too, where the machine has one.
    const std::string c_before = std::setlocale(LC_ALL, nullptr);
    static_cast<void>(std::setlocale(LC_ALL, "de_DE.UTF-8"));
    const auto text = captured(Level::info, [] {
        log_::event(Level::info, "x", {{"a", 1234567.5}, {"b", 1e-9f}, {"c", 1000000}, {"d", std::nan("")}});
    });
    std::setlocale(LC_ALL, c_before.c_str());
    std::locale::global(before);
    CHECK(text == "kiln: info: x a=1.23457e+06 b=1e-09 c=1000000 d=nan\n");
}

TEST_CASE("EventsOfManyThreadsNeverMix") {
    constexpr int kThreads = 8;
    constexpr int kEvents = 200;
    const auto text = captured(Level::info, [] {
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([t] {
                for (int i = 0; i < kEvents; ++i) {
                    log_::event(Level::info, "tick", {{"thread", t}, {"pad", std::string(200, 'x')}});
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
    });
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines) {
        REQUIRE(text.compare(at, 24, "kiln: info: tick thread=") == 0);
        REQUIRE(text.find('\n', at) - at == 24 + 1 + 5 + 200);
    }
    CHECK(lines == kThreads * kEvents);
}

// A lock of the log that another thread held at the moment of a fork would stay held in the child for ever.
TEST_CASE("LogServesAChildThatWasForkedWhileOtherThreadsLog") {
    const auto text = captured(Level::info, [] {
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&stop] {
                while (!stop) {
                    log_::event(Level::info, "busy", {});
                }
            });
        }
        for (int i = 0; i < 50; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                ::alarm(30);  // ends a child that waits for ever
                log_::event(Level::info, "child", {});
                ::_exit(0);
            }
            int status = -1;
            REQUIRE(::waitpid(child, &status, 0) == child);
            CHECK(status == 0);
        }
        stop = true;
        for (auto& thread : threads) {
            thread.join();
        }
    });
    std::size_t children = 0;
    for (std::size_t at = text.find("kiln: info: child\n"); at != std::string::npos;
         at = text.find("kiln: info: child\n", at + 1)) {
        ++children;
    }
    CHECK(children == 50);
}
