// What the numeric tests share: seeded random bits, and number formats computed from their definitions in
// double, with none of the code under test.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kiln::sim::test {

// KILN_TEST_SEED repeats a run; the seed in use is printed with every failure.
class Random {
  public:
    Random() : seed_(choose()), engine_(seed_) {}
    std::uint64_t seed() const { return seed_; }
    std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }
    unsigned below(unsigned bound) { return bits() % bound; }
    double uniform(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }

  private:
    static std::uint64_t choose() {
        if (const char* given = std::getenv("KILN_TEST_SEED"))
            return std::strtoull(given, nullptr, 0);
        return std::random_device{}();
    }
    const std::uint64_t seed_;
    std::mt19937_64 engine_;
};

// sign, exponent and mantissa as the format's standard states them.
struct Definition {
    const char* name;
    int exponent_bits;
    int mantissa_bits;
    int bias;
    enum { finite_only, nan_at_the_top, ieee } specials;

    unsigned codes() const { return 1u << (1 + exponent_bits + mantissa_bits); }
    double value(unsigned code) const {
        const unsigned mantissa = code % (1u << mantissa_bits);
        const unsigned exponent = (code >> mantissa_bits) % (1u << exponent_bits);
        const double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
        const unsigned top = (1u << exponent_bits) - 1;
        if (specials == ieee && exponent == top)
            return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN();
        if (specials == nan_at_the_top && exponent == top && mantissa == (1u << mantissa_bits) - 1)
            return std::numeric_limits<double>::quiet_NaN();
        const double fraction = mantissa / std::pow(2.0, mantissa_bits);
        if (exponent == 0)
            return sign * fraction * std::pow(2.0, 1 - bias);
        return sign * (1 + fraction) * std::pow(2.0, static_cast<int>(exponent) - bias);
    }
    // The positive finite codes are 0 .. this.
    unsigned largest() const {
        const unsigned positive = codes() / 2;
        if (specials == finite_only)
            return positive - 1;
        return specials == nan_at_the_top ? positive - 2 : positive - (1u << mantissa_bits) - 1;
    }
};

inline constexpr Definition kE4m3{"e4m3", 4, 3, 7, Definition::nan_at_the_top};
inline constexpr Definition kE5m2{"e5m2", 5, 2, 15, Definition::ieee};
inline constexpr Definition kE2m3{"e2m3", 2, 3, 1, Definition::finite_only};
inline constexpr Definition kE3m2{"e3m2", 3, 2, 3, Definition::finite_only};
inline constexpr Definition kE2m1{"e2m1", 2, 1, 1, Definition::finite_only};
inline constexpr Definition kF16{"f16", 5, 10, 15, Definition::ieee};
inline constexpr Definition kBf16{"bf16", 8, 7, 127, Definition::ieee};

inline float as_float(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
inline std::uint32_t as_bits(float value) {
    return std::bit_cast<std::uint32_t>(value);
}
inline double as_double(std::uint32_t bits) {
    return as_float(bits);
}

}  // namespace kiln::sim::test
