#include "runtime/formats/quantise.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "runtime/formats/e4m3.hpp"

namespace kiln::formats {

namespace {
constexpr float kSmallestAmax = 1e-10f;
constexpr float kInverseMax = std::bit_cast<float>(0x3B124925u);  // float(1/448)
}  // namespace

float quantise_group_fp8(std::span<const Bf16Bits> x, std::span<std::uint8_t> q) {
    assert(x.size() == kFp8Group && q.size() == kFp8Group);
    float amax = kSmallestAmax;
    for (const Bf16Bits bits : x) {
        amax = std::max(amax, std::fabs(bf16_to_float(bits)));
    }
    const float scale = amax * kInverseMax;
    const float inverse = 1.0f / scale;
    for (std::size_t k = 0; k < kFp8Group; ++k) {
        q[k] = float_to_e4m3(bf16_to_float(x[k]) * inverse);
    }
    return scale;
}

void quantise_1x128(std::span<const Bf16Bits> x, std::span<std::uint8_t> q, std::span<float> scales) {
    assert(x.size() % kFp8Group == 0 && q.size() == x.size() && scales.size() == x.size() / kFp8Group);
    for (std::size_t group = 0; group < scales.size(); ++group) {
        scales[group] = quantise_group_fp8(x.subspan(group * kFp8Group, kFp8Group),
                                           q.subspan(group * kFp8Group, kFp8Group));
    }
}

}  // namespace kiln::formats
