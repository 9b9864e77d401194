// The loops over 64 lanes from which vector instructions are made.
//
// Sources that include this are compiled once for baseline x86-64 and once with AVX2 and FMA; KILN_SIM_LEVEL
// names the namespace, so that no symbol of the one can stand in for the other. Their tables are joined in
// table.cpp.
#pragma once

#include <emmintrin.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "runtime/sim/undefined.hpp"
#include "runtime/sim/wave.hpp"

#ifndef KILN_SIM_LEVEL
#error "compiled through runtime/sim/CMakeLists.txt, which names the instruction set"
#endif

namespace kiln::sim::KILN_SIM_LEVEL {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

inline constexpr u64 kAllLanes = ~u64{0};

// One bit a lane from 64 dwords that are all ones or zero.
KILN_INLINE u64 pack_lanes(const u32* lanes) {
    u64 mask = 0;
    for (unsigned group = 0; group < kLanes / 4; ++group) {
        const __m128i four = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes + 4 * group));
        mask |= static_cast<u64>(_mm_movemask_ps(_mm_castsi128_ps(four))) << (4 * group);
    }
    return mask;
}

KILN_INLINE void unpack_lanes(u64 mask, u32* lanes) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = 0u - static_cast<u32>(mask >> lane & 1);
    }
}

KILN_INLINE void splat(u32* lanes, u32 value) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = value;
    }
}

// A source as 64 lanes (and 64 more for the high dword of a 64-bit one); `ok` loses the lanes that are not
// defined. `room` is where scalars and modified values go.
template <int Dwords>
KILN_INLINE const u32* fetch(const Wave& w, const Operand& o, u32* room, u64& ok, u32 sign = 0x80000000u) {
    const u32* lanes = nullptr;
    if (o.kind == Operand::vgpr) [[likely]] {
        lanes = w.rows[o.index];
        ok &= w.defined[o.index];
        if constexpr (Dwords == 2) {
            ok &= w.defined[o.index + 1];
        }
    } else if (o.kind == Operand::constant) {
        lanes = o.row;
    } else if (o.kind == Operand::sgpr) {
        for (unsigned n = 0; n < Dwords; ++n) {
            splat(room + n * kLanes, w.sgprs[o.index + n]);
            if (w.sgprs_defined[o.index + n] != ~0u) {
                ok = 0;
            }
        }
        lanes = room;
    } else {
        const u32 bit = o.kind == Operand::scc     ? w.scc
                        : o.kind == Operand::vccz  ? w.sgpr64(kVcc) == 0
                        : o.kind == Operand::execz ? w.exec() == 0
                                                   : 0;
        splat(room, bit);
        if constexpr (Dwords == 2) {
            splat(room + kLanes, 0);
        }
        lanes = room;
    }
    if (o.modifiers & (Operand::kAbs | Operand::kNeg)) {
        const u32 keep = o.modifiers & Operand::kAbs ? ~sign : ~0u;
        const u32 flip = o.modifiers & Operand::kNeg ? sign : 0;
        if constexpr (Dwords == 2) {
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                room[lane] = lanes[lane];
            }
            room += kLanes;
            lanes += kLanes;
        }
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            room[lane] = (lanes[lane] & keep) ^ flip;
        }
        lanes = Dwords == 2 ? room - kLanes : room;
    }
    return lanes;
}

KILN_INLINE void finish(Wave& w, unsigned row, u64 exec, u64 ok) {
    w.defined[row] |= exec & ok;
}

// dst = Op(src...), 32 bits each. Op::apply(a, b, c) takes and returns register bits.
template <class Op, int Sources>
void lanes32(Wave& w, const Instruction& i) {
    alignas(64) u32 room[Sources][kLanes];
    u64 ok = kAllLanes;
    const u32* a = fetch<1>(w, i.src[0], room[0], ok);
    const u32* b = a;
    const u32* c = a;
    if constexpr (Sources > 1) {
        b = fetch<1>(w, i.src[1], room[1], ok);
    }
    if constexpr (Sources > 2) {
        c = fetch<1>(w, i.src[2], room[2], ok);
    }
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        follow_undefined(w, i, exec & ~ok);
    }
    u32* d = w.rows[i.dst.index];
    if (exec == kAllLanes) [[likely]] {
#pragma GCC ivdep
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            d[lane] = Op::apply(a[lane], b[lane], c[lane]);
        }
    } else {
        const u32* m = w.lanes_of_exec();
#pragma GCC ivdep
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const u32 value = Op::apply(a[lane], b[lane], c[lane]);
            d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
        }
    }
    finish(w, i.dst.index, exec, ok);
}

// dst (64 bits) = Op(src...), each source of 32 or 64 bits as `Wide` has it (bit n: source n is wide).
template <class Op, int Sources, unsigned Wide>
void lanes64(Wave& w, const Instruction& i) {
    alignas(64) u32 room[Sources][2 * kLanes];
    u64 ok = kAllLanes, ok_low = kAllLanes;
    const u32* s[3] = {};
    for (int n = 0; n < Sources; ++n) {
        if (Wide >> n & 1) {
            s[n] = fetch<2>(w, i.src[n], room[n], ok);
            ok_low &= i.src[n].kind == Operand::vgpr ? w.defined[i.src[n].index] : ok;
        } else {
            u64 this_ok = kAllLanes;
            s[n] = fetch<1>(w, i.src[n], room[n], this_ok);
            ok &= this_ok;
            ok_low &= this_ok;
        }
    }
    // Where the low half of the result depends on the low halves of the sources only, an undefined high half
    // (the compiler widens with one) leaves it defined.
    if constexpr (!Op::kLowFromLow) {
        ok_low = ok;
    }
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~(half ? ok : ok_low));
            w.origins[i.dst.index + half] = origin;
        }
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        u64 v[3] = {};
        for (int n = 0; n < Sources; ++n) {
            v[n] = s[n][lane] | (Wide >> n & 1 ? static_cast<u64>(s[n][kLanes + lane]) << 32 : 0);
        }
        const u64 value = Op::apply(v[0], v[1], v[2]);
        d[lane] = (static_cast<u32>(value) & m[lane]) | (d[lane] & ~m[lane]);
        d[kLanes + lane] = (static_cast<u32>(value >> 32) & m[lane]) | (d[kLanes + lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok_low);
    finish(w, i.dst.index + 1, exec, ok);
}

// dst (32 bits) from 64-bit sources.
template <class Op, int Sources, unsigned Wide>
void lanes64to32(Wave& w, const Instruction& i) {
    alignas(64) u32 room[Sources][2 * kLanes];
    u64 ok = kAllLanes;
    const u32* s[3] = {};
    for (int n = 0; n < Sources; ++n) {
        s[n] = Wide >> n & 1 ? fetch<2>(w, i.src[n], room[n], ok) : fetch<1>(w, i.src[n], room[n], ok);
    }
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        mark_undefined(w, i, i.dst.index, exec & ~ok);
        w.origins[i.dst.index] = origin;
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        u64 v[3] = {};
        for (int n = 0; n < Sources; ++n) {
            v[n] = s[n][lane] | (Wide >> n & 1 ? static_cast<u64>(s[n][kLanes + lane]) << 32 : 0);
        }
        d[lane] = (Op::apply(v[0], v[1], v[2]) & m[lane]) | (d[lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok);
}

// The lane masks of comparisons and carries: bits of inactive lanes are 0.
KILN_INLINE void write_mask(Wave& w, const Instruction& i, const Operand& dst, u64 mask, u64 exec, u64 ok) {
    w.set_sgpr64(dst.index, mask & exec, ok | ~exec);
    if (exec & ~ok) [[unlikely]] {
        w.sgpr_origins[dst.index] = w.sgpr_origins[dst.index + 1] = origin_of(w, i, exec & ~ok);
    }
}

// A lane mask as an operand.
KILN_INLINE u64 fetch_mask(const Wave& w, const Operand& o, u64& ok) {
    if (o.kind == Operand::sgpr) {
        ok &= w.sgpr64_defined(o.index);
        return w.sgpr64(o.index);
    }
    return o.row[0] | static_cast<u64>(o.row[kLanes]) << 32;
}

// ---- floats ----

KILN_INLINE float f(u32 bits) {
    return __builtin_bit_cast(float, bits);
}
KILN_INLINE u32 b(float value) {
    return __builtin_bit_cast(u32, value);
}
KILN_INLINE double f64(u64 bits) {
    return __builtin_bit_cast(double, bits);
}
KILN_INLINE u64 b64(double value) {
    return __builtin_bit_cast(u64, value);
}
KILN_INLINE bool is_nan(u32 bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}
KILN_INLINE bool is_nan64(u64 bits) {
    return (bits & ~(u64{1} << 63)) > 0x7ff0000000000000u;
}

// What an operation leaves when its result is NaN: the first NaN among its sources, quieted, else the
// positive quiet NaN (the host would give a negative one).
KILN_INLINE u32 settle_nan(u32 result, u32 x, u32 y, u32 z) {
    u32 nan = 0x7fc00000u;
    nan = is_nan(z) ? z | 0x400000u : nan;
    nan = is_nan(y) ? y | 0x400000u : nan;
    nan = is_nan(x) ? x | 0x400000u : nan;
    return is_nan(result) ? nan : result;
}
KILN_INLINE u64 settle_nan64(u64 result, u64 x, u64 y, u64 z) {
    u64 nan = 0x7ff8000000000000u;
    nan = is_nan64(z) ? z | (u64{1} << 51) : nan;
    nan = is_nan64(y) ? y | (u64{1} << 51) : nan;
    nan = is_nan64(x) ? x | (u64{1} << 51) : nan;
    return is_nan64(result) ? nan : result;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
