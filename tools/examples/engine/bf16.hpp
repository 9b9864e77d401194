// bf16 on the host: the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace engine {

inline float bf16_to_float(std::uint16_t value) {
    return std::bit_cast<float>(std::uint32_t{value} << 16);
}

// Of a finite value, to nearest even.
inline std::uint16_t float_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace engine
