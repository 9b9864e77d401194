#include "base/log.hpp"

#include <doctest/doctest.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <clocale>
#include <cmath>
#include <ctime>
#include <locale>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/logfmt.hpp"

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

// The same in JSON, an object for each line.
template <class Work>
std::vector<nlohmann::json> captured_json(Level level, const Work& work) {
    log_::set_format(log_::Format::json);
    const std::string text = captured(level, work);
    log_::set_format(log_::Format::text);
    std::vector<nlohmann::json> lines;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        lines.push_back(nlohmann::json::parse(text.substr(at, text.find('\n', at) - at)));
    }
    return lines;
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

TEST_CASE("LogFormatIsReadFromItsWord") {
    log_::Format format = log_::Format::text;
    CHECK(log_::parse_format("json", format));
    CHECK(format == log_::Format::json);
    CHECK_FALSE(log_::parse_format("JSON", format));
    CHECK_FALSE(log_::parse_format("", format));
    CHECK(format == log_::Format::json);
    CHECK(log_::parse_format("text", format));
    CHECK(format == log_::Format::text);
}

TEST_CASE("EventInJsonIsOneObjectWithItsFields") {
    const auto before = std::chrono::system_clock::now();
    const auto lines = captured_json(Level::info, [] {
        log_::event(
            Level::info, "compile",
            {{"kernel", "k"}, {"seconds", 0.8125}, {"bytes", std::size_t{12}}, {"code", -3}, {"kept", true}});
        log_::event(Level::debug, "silent", {});
        log_::event(Level::warning, "reload", {{"ratio", std::nan("")}, {"limit", HUGE_VAL}});
    });
    REQUIRE(lines.size() == 2);
    auto first = lines[0];
    const std::string time = first["time"];
    // An RFC 3339 time of now, in UTC.
    std::tm tm{};
    const char* const rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
    REQUIRE(rest != nullptr);
    CHECK(std::string(rest).size() == sizeof(".123456Z") - 1);
    CHECK(time.back() == 'Z');
    const auto seconds = std::chrono::system_clock::from_time_t(::timegm(&tm));
    CHECK(seconds >= before - std::chrono::seconds(1));
    CHECK(seconds <= std::chrono::system_clock::now());
    first.erase("time");
    CHECK(first == nlohmann::json{{"level", "info"},
                                  {"logger", "kiln"},
                                  {"event", "compile"},
                                  {"kernel", "k"},
                                  {"seconds", 0.8125},
                                  {"bytes", 12},
                                  {"code", -3},
                                  {"kept", true}});
    CHECK(lines[1]["level"] == "warning");
    CHECK(lines[1]["ratio"].is_null());
    CHECK(lines[1]["limit"].is_null());
}

TEST_CASE("SentenceInJsonIsAMessageOfOneLine") {
    const auto lines = captured_json(
        Level::info, [] { log_::error("{}: not readable\n", "a\n{\"level\":\"x\"}\x1b[2J\xff"); });
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["level"] == "error");
    CHECK(lines[0]["message"] == "a\n{\"level\":\"x\"}\x1b[2J\xef\xbf\xbd: not readable");
    CHECK_FALSE(lines[0].contains("event"));
}

TEST_CASE("LogInJsonTakesAnyBytes") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> values(500);
    for (std::string& value : values) {
        value.resize(random() % 24);
        for (char& c : value) {
            c = random() % 2 == 0 ? "\"\\=\n\r\x1b a\xc2\x9b"[random() % 10] : static_cast<char>(random());
        }
    }
    const auto lines = captured_json(Level::info, [&] {
        for (const std::string& value : values) {
            log_::event(Level::info, "x", {{"value", value}});
            log_::info("{}", value);
        }
    });
    REQUIRE(lines.size() == 2 * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (kiln::log::is_utf8(values[i])) {
            CHECK(lines[2 * i]["value"] == values[i]);
        }
    }
}

TEST_CASE("TakerGetsTheLinesAndStderrNone") {
    std::vector<std::pair<Level, std::string>> taken;
    const auto text = captured(Level::info, [&] {
        REQUIRE(log_::set_taker([&](Level level, const char* line) { taken.emplace_back(level, line); }));
        log_::event(Level::info, "compile", {{"kernel", "a b"}});
        log_::warning("one\ntwo\n");
        log_::debug("silent");
        log_::set_format(log_::Format::json);
        log_::event(Level::error, "disable", {});
        log_::set_format(log_::Format::text);
        REQUIRE(log_::set_taker({}));
        log_::info("to stderr again");
    });
    CHECK(text == "kiln: info: to stderr again\n");
    REQUIRE(taken.size() == 3);
    CHECK(taken[0] == std::pair(Level::info, std::string("compile kernel=\"a b\"")));
    CHECK(taken[1] == std::pair(Level::warning, std::string("one\n  | two")));
    CHECK(taken[2].first == Level::error);
    CHECK(nlohmann::json::parse(taken[2].second)["event"] == "disable");
}

TEST_CASE("TakerThatSpeaksItselfIsHeardOnStderr") {
    int calls = 0;
    bool replaced = true;
    const auto text = captured(Level::info, [&] {
        REQUIRE(log_::set_taker([&](Level, const char*) {
            ++calls;
            log_::info("within");
            replaced = log_::set_taker({});
        }));
        log_::info("once");
        REQUIRE(log_::set_taker({}));
    });
    CHECK(calls == 1);
    CHECK_FALSE(replaced);
    CHECK(text == "kiln: info: within\n");
}

// Whoever replaces a taker may destroy what it used.
TEST_CASE("TakerIsNotCalledOnceItWasReplaced") {
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0};
    std::atomic<int> late{0};
    const auto text = captured(Level::info, [&] {
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&stop] {
                while (!stop) {
                    log_::event(Level::info, "tick", {});
                }
            });
        }
        for (int i = 0; i < 200; ++i) {
            std::atomic<bool> alive{true};
            const int before = calls;
            REQUIRE(log_::set_taker([&](Level, const char*) {
                ++calls;
                std::this_thread::yield();
                late += alive ? 0 : 1;
            }));
            while (calls == before) {
                std::this_thread::yield();
            }
            REQUIRE(log_::set_taker({}));
            alive = false;
        }
        stop = true;
        for (auto& thread : threads) {
            thread.join();
        }
    });
    CHECK(late == 0);
    CHECK(calls >= 200);
}

// Calls that were under way in the parent are nobody's in the child.
TEST_CASE("TakerCanBeReplacedInAChildThatWasForkedDuringCalls") {
    std::atomic<bool> stop{false};
    REQUIRE(log_::set_taker([](Level, const char*) { std::this_thread::yield(); }));
    log_::set_level(Level::info);
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
            int calls = 0;
            log_::event(Level::info, "of the parent's", {});
            bool good = log_::set_taker([&](Level, const char*) { ++calls; });
            log_::event(Level::info, "child", {});
            good = log_::set_taker({}) && good && calls == 1;
            ::_exit(good ? 0 : 1);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    stop = true;
    for (auto& thread : threads) {
        thread.join();
    }
    REQUIRE(log_::set_taker({}));
    log_::set_level(Level::warning);
}
