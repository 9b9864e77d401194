#include "base/log.hpp"

#include <doctest/doctest.h>

namespace log_ = kiln::log;

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
