// In which order a launch's work-groups start and their waves take turns. The hardware promises none, so what
// a kernel computes must hold under every one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kiln::sim {

struct RunOrder {
    enum Kind : std::uint8_t {
        any,         // ascending, but host threads share the work-groups
        ascending,   // as all that follow: on one host thread, so that the same run comes again
        descending,  // the last work-group starts first, its last wave too
        shuffle,     // work-groups start in a random order; their waves take turns in random orders
        interleave,  // the same, with several work-groups in flight: after any instruction another wave of
                     // any of them may go on
    };
    Kind kind = any;
    std::uint64_t seed = 0;  // of the last two

    bool operator==(const RunOrder&) const = default;
};

// "any", "ascending", "descending", "shuffle:SEED", "interleave:SEED". bad_input says what was expected.
[[nodiscard]] Result<RunOrder> parse_order(std::string_view text);
[[nodiscard]] std::string to_text(RunOrder order);

// When what one work-group stores becomes visible to others: the two extremes that the memory model allows.
enum class Scopes : std::uint8_t {
    early,  // at once, to everybody
    late,   // not before it must; see late_memory.hpp
};
// "early", "late".
[[nodiscard]] Result<Scopes> parse_scopes(std::string_view text);
[[nodiscard]] std::string_view to_text(Scopes scopes);

// A small generator whose numbers are the same everywhere.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
    }
    std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }

  private:
    std::uint64_t state_;
};

// The n-th work-group that starts, of `count`.
[[nodiscard]] std::uint64_t group_at(RunOrder order, std::uint64_t count, std::uint64_t n);

}  // namespace kiln::sim
