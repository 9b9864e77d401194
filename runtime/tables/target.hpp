// What a specialisation is built for: a processor and the features it pins ("gfx950", "gfx950:xnack-",
// "sm_90a").
//
// The same syntax names what a row is for, what --target asks for and what a device reports, so one type
// serves all three; serves() says which rows a device may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace kiln::tables {

struct Target {
    std::string processor;                 // "gfx950"
    std::map<std::string, bool> features;  // pinned ones only: "xnack" -> false for "xnack-"

    // Processor, then the features by name: two spellings of one target give one text. This is what a key
    // holds.
    [[nodiscard]] std::string text() const;

    friend bool operator==(const Target&, const Target&) = default;
};

// PROCESSOR(:FEATURE(+|-))*. A processor starts with a lower-case letter and goes on with lower-case letters,
// digits, '_' and '-'; a feature is lower-case letters, digits and '_', and stands there once. Anything else
// is bad_input.
[[nodiscard]] Result<Target> parse_target(std::string_view text);

// True when a row (or a code object) for `wanted` may run on `device`: the processor is equal, and every
// feature that `wanted` pins is reported by the device with the same sign. A feature of which the device says
// nothing agrees with neither sign.
[[nodiscard]] bool serves(const Target& wanted, const Target& device);

// What a lookup knows of the device that asks. Compute units choose among rows and never take part in a key:
// the same code runs on a partition of a processor.
struct DeviceTraits {
    Target target;
    std::optional<std::int64_t> cu_num;  // compute units; nothing where no device says

    // A target alone asks for a device too.
    // NOLINTNEXTLINE(google-explicit-constructor)
    DeviceTraits(Target asked, std::optional<std::int64_t> compute_units = {})
        : target(std::move(asked)), cu_num(compute_units) {}

    // "gfx950:xnack- with 256 compute units"
    [[nodiscard]] std::string text() const;
};

}  // namespace kiln::tables
