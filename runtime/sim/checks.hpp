// What is looked for besides the rules that always hold (machine.hpp: run()).
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace kiln::sim {

struct Checks {
    // Two accesses to the same bytes of LDS, or of memory, by different waves, of which one writes and which
    // nothing orders: races.hpp has the rule. Such a launch runs on one thread, and slower: see README.md.
    bool races = false;
    // Values loaded from memory that nothing wrote since it was allocated are undefined: undefined.hpp has
    // the rule.
    bool uninitialised = true;
    // Freed memory is kept apart for a while, so that who still uses it is told so.
    bool freed = true;

    static constexpr Checks none() { return {false, false, false}; }
    static constexpr Checks all() { return {true, true, true}; }
    friend bool operator==(const Checks&, const Checks&) = default;
};

// "all", "none", or some of "races", "uninitialised" and "freed" with commas between; bad_input names the
// word that is none of them.
[[nodiscard]] Result<Checks> parse_checks(std::string_view text);

}  // namespace kiln::sim
