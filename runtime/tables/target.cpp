#include "runtime/tables/target.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::tables {
namespace {

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_processor(std::string_view word) {
    return !word.empty() && is_lower(word.front()) && std::ranges::all_of(word, [](char c) {
        return is_lower(c) || is_digit(c) || c == '_' || c == '-';
    });
}

bool is_feature(std::string_view word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

// The part up to the next ':', which is taken off `rest` together with it.
std::string_view take_part(std::string_view& rest) {
    const auto colon = rest.find(':');
    const auto part = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    return part;
}

}  // namespace

std::string Target::text() const {
    std::string text = processor;
    for (const auto& [feature, on] : features) {
        text += fmt::format(":{}{}", feature, on ? '+' : '-');
    }
    return text;
}

Result<Target> parse_target(std::string_view text) {
    const auto refuse = [&](std::string_view expected, std::string_view part) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("target \"{}\": expected {}, found \"{}\"", text, expected, part));
    };
    Target target;
    bool more = text.find(':') != std::string_view::npos;
    std::string_view rest = text;
    const auto processor = take_part(rest);
    if (!is_processor(processor)) {
        return refuse("a processor in lower case, such as gfx950", processor);
    }
    target.processor = processor;
    while (more) {
        more = rest.find(':') != std::string_view::npos;
        const auto part = take_part(rest);
        const char sign = part.empty() ? '\0' : part.back();
        if ((sign != '+' && sign != '-') || !is_feature(part.substr(0, part.size() - 1))) {
            return refuse("a feature and its sign, such as xnack-", part);
        }
        if (!target.features.emplace(part.substr(0, part.size() - 1), sign == '+').second) {
            return refuse("every feature once", part);
        }
    }
    return target;
}

bool serves(const Target& wanted, const Target& device) {
    return wanted.processor == device.processor &&
           std::ranges::all_of(wanted.features, [&](const auto& pinned) {
               const auto reported = device.features.find(pinned.first);
               return reported != device.features.end() && reported->second == pinned.second;
           });
}

std::string DeviceTraits::text() const {
    return cu_num ? fmt::format("{} with {} compute units", target.text(), *cu_num) : target.text();
}

}  // namespace kiln::tables
