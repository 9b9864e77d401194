#include "runtime/formats/mx.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/e8m0.hpp"

namespace kiln::formats {

namespace {
constexpr float kSmallestAmax = 1e-10f;
constexpr float kInverseE2m1Max = std::bit_cast<float>(0x3E2AAAABu);  // float(1/6)
constexpr float kInverseE4m3Max = std::bit_cast<float>(0x3B124925u);  // float(1/448)

std::uint8_t encode(float value, MxType type) {
    return type == MxType::e2m1 ? float_to_e2m1(value) : float_to_e4m3(value);
}
}  // namespace

std::uint8_t mx_scale(float amax, MxType type, AmaxFloor floor) {
    if (floor == AmaxFloor::at_1e_10) {
        amax = std::max(amax, kSmallestAmax);
    }
    const auto bits =
        std::bit_cast<std::uint32_t>(amax * (type == MxType::e2m1 ? kInverseE2m1Max : kInverseE4m3Max));
    const std::uint32_t up = (bits >> 23 & 0xff) + ((bits & 0x7fffff) != 0 ? 1 : 0);
    return static_cast<std::uint8_t>(std::min<std::uint32_t>(up, floor == AmaxFloor::none ? 254 : kE8m0Nan));
}

std::uint8_t quantise_group_mx(std::span<const Bf16Bits> x, MxType type, AmaxFloor floor,
                               std::span<std::uint8_t> q) {
    assert(x.size() == kMxGroup && q.size() == mx_bytes(type, kMxGroup));
    // Magnitudes order as their bits do, NaN above infinity.
    Bf16Bits largest = 0;
    for (const Bf16Bits bits : x) {
        largest = std::max(largest, static_cast<Bf16Bits>(bits & 0x7fff));
    }
    const std::uint8_t scale = mx_scale(bf16_to_float(largest), type, floor);
    // In double, a power of two loses nothing of a bf16: only the encoding rounds.
    const double inverse = scale == kE8m0Nan ? std::nan("") : std::ldexp(1.0, kE8m0Bias - int{scale});
    const auto code = [&](std::size_t k) {
        return encode(static_cast<float>(static_cast<double>(bf16_to_float(x[k])) * inverse), type);
    };
    if (type == MxType::e2m1) {
        for (std::size_t k = 0; k < kMxGroup; k += 2) {
            q[k / 2] = pack_e2m1(code(k), code(k + 1));
        }
    } else {
        for (std::size_t k = 0; k < kMxGroup; ++k) {
            q[k] = code(k);
        }
    }
    return scale;
}

void quantise_1x32(std::span<const Bf16Bits> x, MxType type, AmaxFloor floor, std::span<std::uint8_t> q,
                   std::span<std::uint8_t> scales) {
    assert(x.size() % kMxGroup == 0 && q.size() == mx_bytes(type, x.size()) &&
           scales.size() == x.size() / kMxGroup);
    const std::size_t bytes = mx_bytes(type, kMxGroup);
    for (std::size_t group = 0; group < scales.size(); ++group) {
        scales[group] = quantise_group_mx(x.subspan(group * kMxGroup, kMxGroup), type, floor,
                                          q.subspan(group * bytes, bytes));
    }
}

}  // namespace kiln::formats
