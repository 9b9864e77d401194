// The body of an Engine, included by each of its builds. Everything has internal linkage, and nothing inline
// of anyone else's is called at run time: the linker must not hand code built for AVX2 to the portable build.
#pragma once

#include <cstring>
#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "runtime/sim/numeric/matrix_engine.hpp"

namespace kiln::sim::numeric {
namespace {

#if defined(__AVX2__)
constexpr unsigned kWide = 8;
#else
constexpr unsigned kWide = 4;
#endif
using Ints = std::int32_t __attribute__((vector_size(4 * kWide)));
using Floats = float __attribute__((vector_size(4 * kWide)));

template <class Vector, class Element>
inline Vector load(const Element* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}
template <class Vector, class Element>
inline void store(Element* to, const Vector& vector) {
    std::memcpy(to, &vector, sizeof vector);
}

inline Floats as_floats(Ints x) {
    return reinterpret_cast<Floats>(x);
}
inline Ints as_ints(Floats x) {
    return reinterpret_cast<Ints>(x);
}

// The values of a vector of codes, without a host denormal on the way: those are slow.
template <Format kFormat>
inline Floats values(Ints codes) {
    if constexpr (kFormat == Format::f32) {
        return as_floats(codes);
    } else if constexpr (kFormat == Format::bf16) {
        return as_floats(codes << 16);
    } else {
        constexpr Layout kLayout = layout_of(kFormat);
        constexpr int kShift = 23 - kLayout.mantissa_bits;
        constexpr int kCodeSign = 1 << (kLayout.bits - 1);
        const Ints magnitude = (codes & (kCodeSign - 1)) << kShift;
        const Ints sign = (codes & kCodeSign) << (32 - kLayout.bits);
        Ints bits = magnitude + ((127 - kLayout.bias) << 23);
        // mantissa * 2^(1-bias) = (1 + mantissa) * 2^(1-bias) - 2^(1-bias)
        const Ints one_up = magnitude + ((128 - kLayout.bias) << 23);
        const Ints leading = Ints{} + ((128 - kLayout.bias) << 23);
        const Ints denormal = as_ints(as_floats(one_up) - as_floats(leading));
        bits = magnitude < (1 << 23) ? denormal : bits;
        if constexpr (kLayout.nan_code != 0) {
            const Ints special = kLayout.has_infinity ? bits | 0x7f800000 : Ints{} + 0x7fc00000;
            bits = magnitude > static_cast<std::int32_t>(kLayout.max_code << kShift) ? special : bits;
        }
        return as_floats(bits | sign);
    }
}

template <Format kFormat>
void unpack_format(const Register* registers, unsigned count, unsigned width, float* panel) {
    constexpr unsigned kBits = static_cast<unsigned>(layout_of(kFormat).bits);
    const unsigned codes = count * 32 / kBits;  // a lane
    const unsigned groups = kLanes / width;
    const bool halves = kBits == 8 && count == 8;
    for (unsigned code = 0; code < codes; ++code) {
        const unsigned bit = code * kBits;
        const int shift = static_cast<int>(bit % 32);
        const bool straddles = bit % 32 + kBits > 32;
        for (unsigned group = 0; group < groups; ++group) {
            unsigned k = group * codes + code;
            if (halves)
                k = (code / 16) * (codes * groups / 2) + group * 16 + code % 16;
            for (unsigned row = 0; row < width; row += kWide) {
                const std::uint32_t* lanes = &registers[bit / 32][group * width + row];
                // Shifted as signed numbers: the copies of the sign above the code are ignored or masked.
                Ints packed = load<Ints>(lanes) >> shift;
                if (straddles)
                    packed = (packed & ((1 << (32 - shift)) - 1)) | load<Ints>(lanes + kLanes)
                                                                        << (32 - shift);
                store(&panel[k * width + row], values<kFormat>(packed));
            }
        }
    }
}

void unpack(Format format, const Register* registers, unsigned count, unsigned width, float* panel) {
    switch (format) {
        case Format::e4m3:
            return unpack_format<Format::e4m3>(registers, count, width, panel);
        case Format::e5m2:
            return unpack_format<Format::e5m2>(registers, count, width, panel);
        case Format::e2m3:
            return unpack_format<Format::e2m3>(registers, count, width, panel);
        case Format::e3m2:
            return unpack_format<Format::e3m2>(registers, count, width, panel);
        case Format::e2m1:
            return unpack_format<Format::e2m1>(registers, count, width, panel);
        case Format::bf16:
            return unpack_format<Format::bf16>(registers, count, width, panel);
        case Format::f16:
            return unpack_format<Format::f16>(registers, count, width, panel);
        case Format::f32:
            return unpack_format<Format::f32>(registers, count, width, panel);
    }
}

template <bool kExact>
inline Floats multiply_add(float a, Floats b, Floats sum) {
#if defined(__FMA__)
    if constexpr (kExact)
        return reinterpret_cast<Floats>(
            _mm256_fmadd_ps(_mm256_set1_ps(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(sum)));
#endif
    return sum + a * b;
}

// A tile of the result that stays in registers while k runs.
constexpr unsigned kTileRows = 4;
constexpr unsigned kTileVectors = 2;

template <bool kExact>
inline void add_run(const float* a, const float* b, unsigned width, int begin, int end, int step,
                    Floats (&tile)[kTileRows][kTileVectors]) {
    for (int k = begin; k != end; k += step) {
        const float* row = a + static_cast<unsigned>(k) * width;
        const float* columns = b + static_cast<unsigned>(k) * width;
        const Floats left = load<Floats>(columns);
        const Floats right = load<Floats>(columns + kWide);
        for (unsigned i = 0; i < kTileRows; ++i) {
            tile[i][0] = multiply_add<kExact>(row[i], left, tile[i][0]);
            tile[i][1] = multiply_add<kExact>(row[i], right, tile[i][1]);
        }
    }
}

template <bool kExact>
inline void sum_tile(const float* a, const float* b, unsigned width, unsigned begin, unsigned end,
                     Order order, float* sums) {
    const int first = static_cast<int>(begin);
    const int last = static_cast<int>(end);
    Floats total[kTileRows][kTileVectors] = {};
    if (order == Order::ascending) {
        add_run<kExact>(a, b, width, first, last, 1, total);
    } else {
        Floats part[4][kTileRows][kTileVectors] = {};
        const int depth = last - first;
        for (int residue = 0; residue < 4 && residue < depth; ++residue) {
            const int terms = (depth - residue + 3) / 4;
            add_run<kExact>(a, b, width, first + residue + 4 * (terms - 1), first + residue - 4, -4,
                            part[residue]);
        }
        for (unsigned i = 0; i < kTileRows; ++i) {
            for (unsigned v = 0; v < kTileVectors; ++v)
                total[i][v] = (part[0][i][v] + part[1][i][v]) + (part[2][i][v] + part[3][i][v]);
        }
    }
    for (unsigned i = 0; i < kTileRows; ++i) {
        for (unsigned v = 0; v < kTileVectors; ++v)
            store(&sums[i * width + v * kWide], total[i][v]);
    }
}

void sum(const float* a, const float* b, unsigned width, unsigned begin, unsigned end, Order order,
         bool exact, float* sums) {
    for (unsigned row = 0; row < width; row += kTileRows) {
        for (unsigned column = 0; column < width; column += kTileVectors * kWide) {
            float* tile = sums + row * width + column;
            if (exact)
                sum_tile<true>(a + row, b + column, width, begin, end, order, tile);
            else
                sum_tile<false>(a + row, b + column, width, begin, end, order, tile);
        }
    }
}

}  // namespace
}  // namespace kiln::sim::numeric
