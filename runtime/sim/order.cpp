#include "runtime/sim/order.hpp"

#include <bit>
#include <charconv>

#include <fmt/format.h>

namespace kiln::sim {
namespace {

struct Name {
    RunOrder::Kind kind;
    std::string_view text;
    bool seeded;
};
constexpr Name kNames[] = {
    {RunOrder::any, "any", false},
    {RunOrder::ascending, "ascending", false},
    {RunOrder::descending, "descending", false},
    {RunOrder::shuffle, "shuffle", true},
    {RunOrder::interleave, "interleave", true},
};

// A permutation of [0, count) that takes no room: a Feistel network over the next even number of bits, walked
// until it comes back into the range.
std::uint64_t permute(std::uint64_t count, std::uint64_t seed, std::uint64_t n) {
    const auto half = static_cast<unsigned>((std::bit_width(count - 1) + 1) / 2);
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    do {
        std::uint64_t left = n >> half, right = n & mask;
        for (std::uint64_t round = 0; round < 4; ++round) {
            Dice dice(seed ^ right << 8 ^ round << 60);
            const std::uint64_t mixed = left ^ (dice() & mask);
            left = right;
            right = mixed;
        }
        n = left << half | right;
    } while (n >= count);
    return n;
}

}  // namespace

Result<RunOrder> parse_order(std::string_view text) {
    const std::size_t colon = text.find(':');
    for (const Name& name : kNames) {
        if (text.substr(0, colon) != name.text || (colon != text.npos) != name.seeded) {
            continue;
        }
        RunOrder order{name.kind, 0};
        if (!name.seeded) {
            return order;
        }
        const std::string_view digits = text.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), order.seed);
        if (error == std::errc{} && end == digits.data() + digits.size()) {
            return order;
        }
    }
    return fail(ErrorCode::bad_input, Stage::device,
                fmt::format("expected any, ascending, descending, shuffle:SEED or interleave:SEED, found "
                            "\"{}\"",
                            text));
}

std::string to_text(RunOrder order) {
    const Name& name = kNames[order.kind];
    return name.seeded ? fmt::format("{}:{}", name.text, order.seed) : std::string(name.text);
}

Result<Scopes> parse_scopes(std::string_view text) {
    if (text == "early" || text == "late") {
        return text == "early" ? Scopes::early : Scopes::late;
    }
    return fail(ErrorCode::bad_input, Stage::device,
                fmt::format("expected early or late, found \"{}\"", text));
}

std::string_view to_text(Scopes scopes) {
    return scopes == Scopes::early ? "early" : "late";
}

std::uint64_t group_at(RunOrder order, std::uint64_t count, std::uint64_t n) {
    switch (order.kind) {
        case RunOrder::descending:
            return count - 1 - n;
        case RunOrder::shuffle:
        case RunOrder::interleave:
            return count < 2 ? n : permute(count, order.seed, n);
        default:
            return n;
    }
}

}  // namespace kiln::sim
