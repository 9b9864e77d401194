// Processors and features that there are. A target of right syntax may still be misspelt, and a row for
// "gfx590" would wait for its device for ever.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::tables {

// A processor that the compilers at the time of this version build for. A later one is unknown here.
[[nodiscard]] bool is_known_processor(std::string_view processor);

// What no device can ever report, in words for a fault.
struct TargetFault {
    std::string expected;
    std::string found;
};
// Nothing where the processor is known (or `is_served`: there is a template for it) and has every feature
// that the target pins.
[[nodiscard]] std::optional<TargetFault> judge_target(const Target& target, bool is_served);

// The target of a question: bad_input where the text is none, or pins a feature that no device reports. Its
// processor may be one that this version does not know: then the answer is that nothing serves it.
[[nodiscard]] Result<Target> parse_asked_target(std::string_view text);

}  // namespace kiln::tables
