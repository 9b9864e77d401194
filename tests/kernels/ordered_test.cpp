// How routed logits travel between work-groups, over all bf16 codes.
#include "device/ordered.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "device/convert.h"

using namespace kiln::device;

namespace {

std::vector<bf16_bits> all_codes() {
    std::vector<bf16_bits> codes;
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        codes.push_back(static_cast<bf16_bits>(code));
    }
    return codes;
}

}  // namespace

TEST_CASE("ordered: a code and its order are the same value, zeros alike and NaN one of its own") {
    for (const bf16_bits code : all_codes()) {
        CAPTURE(code);
        const ordered_bf16 ordered = bf16_to_ordered(code);
        const float value = bf16_to_f32(code);
        REQUIRE(ordered > kOrderedNothing);
        REQUIRE((ordered == kOrderedNan) == std::isnan(value));
        const float back = bf16_to_f32(ordered_to_bf16(ordered));
        REQUIRE((std::isnan(value) ? std::isnan(back) : back == value));
    }
    CHECK(bf16_to_ordered(0x8000) == bf16_to_ordered(0));
}

TEST_CASE("ordered: every larger value has a larger order, and NaN is below all") {
    // Ascending: the negative codes from -infinity up, then the positive ones.
    std::uint32_t below = kOrderedNan;
    for (std::uint32_t code = 0xff80; code > 0x8000; --code) {
        const std::uint32_t ordered = bf16_to_ordered(static_cast<bf16_bits>(code));
        REQUIRE(ordered > below);
        below = ordered;
    }
    for (std::uint32_t code = 0; code <= 0x7f80; ++code) {
        const std::uint32_t ordered = bf16_to_ordered(static_cast<bf16_bits>(code));
        REQUIRE(ordered > below);
        below = ordered;
    }
}
