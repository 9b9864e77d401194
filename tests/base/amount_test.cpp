#include "base/amount.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace kiln;

TEST_CASE("AmountOfBytesTakesUnitsOfBothKinds") {
    CHECK(*parse_bytes("0") == 0);
    CHECK(*parse_bytes("4096") == 4096);
    CHECK(*parse_bytes("12B") == 12);
    CHECK(*parse_bytes("3kB") == 3'000);
    CHECK(*parse_bytes("3KiB") == 3'072);
    CHECK(*parse_bytes("500mb") == 500'000'000);
    CHECK(*parse_bytes("10GiB") == std::uint64_t{10} << 30);
    CHECK(*parse_bytes("2TB") == 2'000'000'000'000);
    CHECK(*parse_bytes("9223372036854775807") == 9223372036854775807U);
}

TEST_CASE("AmountOfTimeNeedsAUnit") {
    CHECK(*parse_duration("90s") == std::chrono::seconds(90));
    CHECK(*parse_duration("2m") == std::chrono::minutes(2));
    CHECK(*parse_duration("12h") == std::chrono::hours(12));
    CHECK(*parse_duration("30d") == std::chrono::hours(720));
    CHECK(*parse_duration("4w") == std::chrono::hours(672));
    CHECK(!parse_duration("30"));
}

TEST_CASE("AmountThatIsNoneSaysWhatWasExpectedAndFound") {
    for (const char* text : {"", "GiB", "-1", "1.5GiB", "1 GiB", "10XB", "10GiBs", "9223372036854775808",
                             "8388608TiB", "0x10", "99999999999999999999"}) {
        const auto refused = parse_bytes(text);
        REQUIRE_MESSAGE(!refused, text);
        CHECK(refused.error().code == ErrorCode::bad_input);
        CHECK(refused.error().message.find("expected a size") != std::string::npos);
        CHECK(refused.error().message.find('"' + std::string(text) + '"') != std::string::npos);
    }
    for (const char* text : {"", "d", "-1d", "1y", "1d2h", "15250284452472w"}) {
        CHECK_MESSAGE(!parse_duration(text), text);
    }
}
