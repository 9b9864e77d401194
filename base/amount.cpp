#include "base/amount.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace kiln {
namespace {

struct Unit {
    std::string_view name;  // lower case
    std::uint64_t factor;
};

constexpr Unit kByteUnits[] = {
    {"", 1},
    {"b", 1},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
    {"kib", std::uint64_t{1} << 10},
    {"mib", std::uint64_t{1} << 20},
    {"gib", std::uint64_t{1} << 30},
    {"tib", std::uint64_t{1} << 40},
};
constexpr Unit kTimeUnits[] = {{"s", 1}, {"m", 60}, {"h", 3'600}, {"d", 86'400}, {"w", 604'800}};

bool same_letters(std::string_view unit, std::string_view name) {
    return std::equal(unit.begin(), unit.end(), name.begin(), name.end(), [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
}

// Not above what a signed 64-bit number holds, so that sums and clocks of the callers do not wrap.
Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::string_view expected) {
    std::uint64_t number = 0;
    const auto* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    const std::string_view name(end, static_cast<std::size_t>(last - end));
    const auto unit =
        std::ranges::find_if(units, [&](const Unit& one) { return same_letters(name, one.name); });
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (error != std::errc() || unit == units.end() || number > kMost / unit->factor) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    fmt::format("expected {}, found \"{}\"", expected, text));
    }
    return number * unit->factor;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
    return parse(text, kByteUnits, "a size like 500MB or 10GiB");
}

Result<std::chrono::seconds> parse_duration(std::string_view text) {
    const auto seconds = parse(text, kTimeUnits, "a time like 90s, 12h, 30d or 4w");
    if (!seconds) {
        return tl::unexpected(seconds.error());
    }
    return std::chrono::seconds(*seconds);
}

}  // namespace kiln
