// Vector instructions whose arithmetic is in numeric/: transcendentals, division, conversions of small
// formats, float16. A function call a lane; what kernels use most has a loop of its own in valu_float.cpp.
#include "runtime/sim/fault.hpp"
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/numeric/arithmetic.hpp"
#include "runtime/sim/numeric/convert.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

namespace n = numeric;
using n::Format;

template <auto Function>
struct One {
    static u32 apply(u32 x, u32, u32) { return Function(x); }
};
template <auto Function>
struct Two {
    static u32 apply(u32 x, u32 y, u32) { return Function(x, y); }
};
template <auto Function>
struct Three {
    static u32 apply(u32 x, u32 y, u32 z) { return Function(x, y, z); }
};

// Computed by a unit of its own, at a quarter of the rate.
constexpr Opcode slow(Opcode opcode) {
    opcode.category = Category::transcendental;
    return opcode;
}

constexpr std::uint32_t kFloat = kSourceModifiers | kClampOmod;
constexpr std::uint32_t kPlain = kSourceModifiers;

template <auto Function>
constexpr Opcode one(std::string_view name, std::string_view form, std::uint32_t flags = kFloat) {
    return {name, form, lanes32<One<Function>, 1>, Category::valu, flags, nullptr, 0, 0};
}
template <auto Function>
constexpr Opcode two(std::string_view name, std::string_view form, std::uint32_t flags = kFloat) {
    return {name, form, lanes32<Two<Function>, 2>, Category::valu, flags, nullptr, 0, 0};
}
template <auto Function>
constexpr Opcode three(std::string_view name, std::string_view form, std::uint32_t flags = kFloat) {
    return {name, form, lanes32<Three<Function>, 3>, Category::valu, flags, nullptr, 0, 0};
}

// ---- 64 bits ----

template <auto Function>
struct Wide {
    static constexpr bool kLowFromLow = false;
    static u64 apply(u64 x, u64, u64) { return Function(x); }
};
template <auto Function>
struct Wide3 {
    static constexpr bool kLowFromLow = false;
    static u64 apply(u64 x, u64 y, u64 z) { return Function(x, y, z); }
};
template <auto Function>
constexpr Opcode wide(std::string_view name, std::string_view form) {
    return {name, form, lanes64<Wide<Function>, 1, 1>, Category::valu, kSourceModifiers | kNoDpp, nullptr,
            0,    0};
}

// ---- division ----

void div_scale_f32(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok);
    const u32* z = fetch<1>(w, i.src[2], room[2], ok);
    const u64 exec = w.exec();
    write_mask(w, i, i.dst2, 0, exec, ok);
    if (exec & ~ok) [[unlikely]] {
        follow_undefined(w, i, exec & ~ok);
    }
    u64 mask = 0;
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const n::DivScale32 scaled = n::v_div_scale_f32(x[lane], y[lane], z[lane]);
        mask |= static_cast<u64>(scaled.vcc) << lane;
        d[lane] = scaled.value;
    }
    w.sgprs[i.dst2.index] = static_cast<u32>(mask);
    w.sgprs[i.dst2.index + 1] = static_cast<u32>(mask >> 32);
    finish(w, i.dst.index, exec, ok);
}

void div_fmas_f32(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = w.sgpr64_defined(kVcc);
    const u32* x = fetch<1>(w, i.src[0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok);
    const u32* z = fetch<1>(w, i.src[2], room[2], ok);
    const u64 exec = w.exec(), vcc = w.sgpr64(kVcc);
    if (exec & ~ok) [[unlikely]] {
        const Origin origin =
            ~w.sgpr64_defined(kVcc) & exec ? origin_of_sgpr(w, i, kVcc) : origin_of(w, i, exec & ~ok);
        mark_undefined(w, i, i.dst.index, exec & ~ok);
        w.origins[i.dst.index] = origin;
    }
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        d[lane] = n::v_div_fmas_f32(x[lane], y[lane], z[lane], vcc >> lane & 1);
    }
    finish(w, i.dst.index, exec, ok);
}

// Both on float64; the shared shape of sources is what makes one function of them.
template <bool Scale>
void div_f64(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][2 * kLanes];
    u64 ok = Scale ? kAllLanes : w.sgpr64_defined(kVcc);
    const u32* s[3];
    for (int k = 0; k < 3; ++k) {
        s[k] = fetch<2>(w, i.src[k], room[k], ok);
    }
    const u64 exec = w.exec(), vcc = w.sgpr64(kVcc);
    if constexpr (Scale) {
        write_mask(w, i, i.dst2, 0, exec, ok);
    }
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~ok);
            w.origins[i.dst.index + half] = origin;
        }
    }
    u64 mask = 0;
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        u64 v[3];
        for (int k = 0; k < 3; ++k) {
            v[k] = s[k][lane] | static_cast<u64>(s[k][kLanes + lane]) << 32;
        }
        u64 value = 0;
        if constexpr (Scale) {
            const n::DivScale64 scaled = n::v_div_scale_f64(v[0], v[1], v[2]);
            mask |= static_cast<u64>(scaled.vcc) << lane;
            value = scaled.value;
        } else {
            value = n::v_div_fmas_f64(v[0], v[1], v[2], vcc >> lane & 1);
        }
        d[lane] = static_cast<u32>(value);
        d[kLanes + lane] = static_cast<u32>(value >> 32);
    }
    if constexpr (Scale) {
        w.sgprs[i.dst2.index] = static_cast<u32>(mask);
        w.sgprs[i.dst2.index + 1] = static_cast<u32>(mask >> 32);
    }
    finish(w, i.dst.index, exec, ok);
    finish(w, i.dst.index + 1, exec, ok);
}

// ---- conversions that use a part of a register ----

// Calls convert(lane, x, y, z, old) for active lanes and writes what it returns; `bytes` of the destination
// are written.
template <int Sources, class Convert>
void convert(Wave& w, const Instruction& i, unsigned bytes, Convert&& function) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = kAllLanes;
    const u32* s[3] = {};
    for (int k = 0; k < 3; ++k) {
        s[k] = k < Sources ? fetch<1>(w, i.src[k], room[k], ok) : s[0];
    }
    const u64 exec = w.exec();
    mark_bytes(w, i, i.dst.index, bytes, exec, exec & ~ok);
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec & ok; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        d[lane] = function(lane, s[0][lane], s[1][lane], s[2][lane], d[lane]);
    }
}
// Two results in two registers.
template <int Sources, class Convert>
void convert_pair(Wave& w, const Instruction& i, Convert&& function) {
    alignas(64) u32 room[2][kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok);
    const u32* y = Sources > 1 ? fetch<1>(w, i.src[1], room[1], ok) : x;
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~ok);
            w.origins[i.dst.index + half] = origin;
        }
    }
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const n::Pair pair = function(x[lane], y[lane]);
        d[lane] = pair[0];
        d[kLanes + lane] = pair[1];
    }
    finish(w, i.dst.index, exec, ok);
    finish(w, i.dst.index + 1, exec, ok);
}

unsigned half_bytes(unsigned half) {
    return half ? 0xc : 0x3;
}

template <Format F>
void cvt_f32_8bit(Wave& w, const Instruction& i) {
    convert<1>(w, i, 0xf,
               [&](unsigned, u32 x, u32, u32, u32) { return n::v_cvt_f32_8bit(F, x, i.op_sel & 3); });
}
template <Format F>
void cvt_pk_f32_8bit(Wave& w, const Instruction& i) {
    convert_pair<1>(w, i, [&](u32 x, u32) { return n::v_cvt_pk_f32_8bit(F, x, i.op_sel & 1); });
}
template <Format F>
void cvt_pk_8bit_f32(Wave& w, const Instruction& i) {
    const unsigned half = i.op_sel >> 2 & 1;
    convert<2>(w, i, half_bytes(half), [&](unsigned, u32 x, u32 y, u32, u32 old) {
        return n::v_cvt_pk_8bit_f32(F, x, y, old, half);
    });
}
// The part of the source: a byte for fp4, a half for 8-bit formats.
template <Format From>
unsigned part_of(const Instruction& i) {
    return From == Format::e2m1 ? i.op_sel & 3 : i.op_sel & 1;
}
template <Format From>
void cvt_scalef32_pk_f32(Wave& w, const Instruction& i) {
    convert_pair<2>(w, i,
                    [&](u32 x, u32 y) { return n::v_cvt_scalef32_pk_f32(From, x, y, part_of<From>(i)); });
}
template <Format From, Format To>
void cvt_scalef32_pk_16bit(Wave& w, const Instruction& i) {
    convert<2>(w, i, 0xf, [&](unsigned, u32 x, u32 y, u32, u32) {
        return n::v_cvt_scalef32_pk_16bit(From, To, x, y, part_of<From>(i));
    });
}
template <Format From>
void cvt_scalef32_f32(Wave& w, const Instruction& i) {
    convert<2>(w, i, 0xf, [&](unsigned, u32 x, u32 y, u32, u32) {
        return n::v_cvt_scalef32_single(From, Format::f32, x, y, i.op_sel & 3);
    });
}
// The other half of the destination is kept.
template <Format From>
void cvt_scalef32_f16(Wave& w, const Instruction& i) {
    const unsigned high = i.op_sel >> 2 & 1;
    convert<2>(w, i, half_bytes(high), [&](unsigned, u32 x, u32 y, u32, u32 old) {
        const u32 half = n::v_cvt_scalef32_single(From, Format::f16, x, y, i.op_sel & 3) & 0xffff;
        return high ? (old & 0xffff) | half << 16 : (old & 0xffff0000u) | half;
    });
}
template <Format To>
void cvt_scalef32_pk_8bit_f32(Wave& w, const Instruction& i) {
    const unsigned half = i.op_sel >> 3 & 1;
    convert<3>(w, i, half_bytes(half), [&](unsigned, u32 x, u32 y, u32 z, u32 old) {
        return n::v_cvt_scalef32_pk_8bit_f32(To, x, y, z, old, half);
    });
}
template <Format To, Format From>
void cvt_scalef32_pk_8bit_16bit(Wave& w, const Instruction& i) {
    const unsigned half = i.op_sel >> 2 & 1;
    convert<2>(w, i, half_bytes(half), [&](unsigned, u32 x, u32 y, u32, u32 old) {
        return n::v_cvt_scalef32_pk_8bit_16bit(To, From, x, y, old, half);
    });
}
u32 settled(const Instruction&, unsigned lane, std::optional<u32> value) {
    if (!value) {
        fault(static_cast<int>(lane), "what NaN, or scale 255, becomes in fp4 is not specified");
    }
    return *value;
}
void cvt_scalef32_pk_fp4_f32(Wave& w, const Instruction& i) {
    const unsigned byte = i.op_sel >> 2 & 3;
    convert<3>(w, i, 1u << byte, [&](unsigned lane, u32 x, u32 y, u32 z, u32 old) {
        return settled(i, lane, n::v_cvt_scalef32_pk_fp4_f32(x, y, z, old, byte));
    });
}
template <Format From>
void cvt_scalef32_pk_fp4_16bit(Wave& w, const Instruction& i) {
    const unsigned byte = i.op_sel >> 2 & 3;
    convert<2>(w, i, 1u << byte, [&](unsigned lane, u32 x, u32 y, u32, u32 old) {
        return settled(i, lane, n::v_cvt_scalef32_pk_fp4_16bit(From, x, y, old, byte));
    });
}

u32 cvt_f16_f32(u32 x) {
    return n::f32_to_f16(x) & 0xffff;
}

constexpr std::uint32_t kParts = kSourceModifiers | kHalf | kNoDpp;

constexpr Opcode raw(std::string_view name, std::string_view form, Handler handler,
                     std::uint32_t flags = kParts) {
    return {name, form, handler, Category::valu, flags, nullptr, 0, 0};
}

constexpr Opcode kOpcodes[] = {
    slow(one<n::v_rcp_f32>("v_rcp_f32", "v:f")),
    slow(one<n::v_rcp_f32>("v_rcp_iflag_f32", "v:f")),
    slow(one<n::v_rsq_f32>("v_rsq_f32", "v:f")),
    slow(one<n::v_sqrt_f32>("v_sqrt_f32", "v:f")),
    slow(one<n::v_exp_f32>("v_exp_f32", "v:f")),
    slow(one<n::v_log_f32>("v_log_f32", "v:f")),
    slow(one<n::v_sin_f32>("v_sin_f32", "v:f")),
    slow(one<n::v_cos_f32>("v_cos_f32", "v:f")),
    one<n::v_trunc_f32>("v_trunc_f32", "v:f"),
    one<n::v_ceil_f32>("v_ceil_f32", "v:f"),
    one<n::v_floor_f32>("v_floor_f32", "v:f"),
    one<n::v_rndne_f32>("v_rndne_f32", "v:f"),
    one<n::v_fract_f32>("v_fract_f32", "v:f"),
    one<n::v_frexp_mant_f32>("v_frexp_mant_f32", "v:f"),
    one<n::v_frexp_exp_i32_f32>("v_frexp_exp_i32_f32", "v:f", kPlain),
    two<n::v_ldexp_f32>("v_ldexp_f32", "v:fu"),
    one<n::v_cvt_rpi_i32_f32>("v_cvt_rpi_i32_f32", "v:f", kPlain),
    one<n::v_cvt_flr_i32_f32>("v_cvt_flr_i32_f32", "v:f", kPlain),
    three<n::v_div_fixup_f32>("v_div_fixup_f32", "v:fff", kFloat),
    raw("v_div_scale_f32", "vc:fff", div_scale_f32, kPlain | kNoDpp),
    raw("v_div_fmas_f32", "v:fff", div_fmas_f32, kPlain | kNoDpp),
    raw("v_div_scale_f64", "wc:FFF", div_f64<true>, kPlain | kNoDpp),
    raw("v_div_fmas_f64", "w:FFF", div_f64<false>, kPlain | kNoDpp),
    {"v_div_fixup_f64", "w:FFF", lanes64<Wide3<n::v_div_fixup_f64>, 3, 7>, Category::valu, kPlain | kNoDpp,
     nullptr, 0, 0},
    slow(wide<n::v_rcp_f64>("v_rcp_f64", "w:F")),
    slow(wide<n::v_rsq_f64>("v_rsq_f64", "w:F")),
    slow(wide<n::v_sqrt_f64>("v_sqrt_f64", "w:F")),
    three<n::v_dot2_f32_bf16>("v_dot2_f32_bf16", "v:uuf", kNoDpp),
    three<n::v_dot2c_f32_bf16>("v_dot2c_f32_bf16", "v:uu+", 0),
    one<cvt_f16_f32>("v_cvt_f16_f32", "v:f", kPlain),
    two<n::v_cvt_pkrtz_f16_f32>("v_cvt_pkrtz_f16_f32", "v:ff", kPlain),
    raw("v_cvt_f32_fp8", "v:u", cvt_f32_8bit<Format::e4m3>, 0),
    raw("v_cvt_f32_bf8", "v:u", cvt_f32_8bit<Format::e5m2>, 0),
    raw("v_cvt_pk_f32_fp8", "w:u", cvt_pk_f32_8bit<Format::e4m3>, 0),
    raw("v_cvt_pk_f32_bf8", "w:u", cvt_pk_f32_8bit<Format::e5m2>, 0),
    raw("v_cvt_pk_bf8_f32", "v:ff", cvt_pk_8bit_f32<Format::e5m2>),
    raw("v_cvt_scalef32_pk_f32_fp4", "w:uf", cvt_scalef32_pk_f32<Format::e2m1>),
    raw("v_cvt_scalef32_pk_f32_fp8", "w:uf", cvt_scalef32_pk_f32<Format::e4m3>),
    raw("v_cvt_scalef32_pk_f32_bf8", "w:uf", cvt_scalef32_pk_f32<Format::e5m2>),
    raw("v_cvt_scalef32_pk_bf16_fp4", "v:uf", cvt_scalef32_pk_16bit<Format::e2m1, Format::bf16>),
    raw("v_cvt_scalef32_pk_bf16_fp8", "v:uf", cvt_scalef32_pk_16bit<Format::e4m3, Format::bf16>),
    raw("v_cvt_scalef32_pk_bf16_bf8", "v:uf", cvt_scalef32_pk_16bit<Format::e5m2, Format::bf16>),
    raw("v_cvt_scalef32_pk_f16_fp4", "v:uf", cvt_scalef32_pk_16bit<Format::e2m1, Format::f16>),
    raw("v_cvt_scalef32_pk_f16_fp8", "v:uf", cvt_scalef32_pk_16bit<Format::e4m3, Format::f16>),
    raw("v_cvt_scalef32_pk_f16_bf8", "v:uf", cvt_scalef32_pk_16bit<Format::e5m2, Format::f16>),
    raw("v_cvt_scalef32_f32_fp8", "v:uf", cvt_scalef32_f32<Format::e4m3>),
    raw("v_cvt_scalef32_f32_bf8", "v:uf", cvt_scalef32_f32<Format::e5m2>),
    raw("v_cvt_scalef32_f16_fp8", "v:uf", cvt_scalef32_f16<Format::e4m3>),
    raw("v_cvt_scalef32_f16_bf8", "v:uf", cvt_scalef32_f16<Format::e5m2>),
    raw("v_cvt_scalef32_pk_fp8_f32", "v:fff", cvt_scalef32_pk_8bit_f32<Format::e4m3>),
    raw("v_cvt_scalef32_pk_bf8_f32", "v:fff", cvt_scalef32_pk_8bit_f32<Format::e5m2>),
    raw("v_cvt_scalef32_pk_fp8_bf16", "v:uf", cvt_scalef32_pk_8bit_16bit<Format::e4m3, Format::bf16>),
    raw("v_cvt_scalef32_pk_bf8_bf16", "v:uf", cvt_scalef32_pk_8bit_16bit<Format::e5m2, Format::bf16>),
    raw("v_cvt_scalef32_pk_fp8_f16", "v:uf", cvt_scalef32_pk_8bit_16bit<Format::e4m3, Format::f16>),
    raw("v_cvt_scalef32_pk_bf8_f16", "v:uf", cvt_scalef32_pk_8bit_16bit<Format::e5m2, Format::f16>),
    raw("v_cvt_scalef32_pk_fp4_f32", "v:fff", cvt_scalef32_pk_fp4_f32),
    raw("v_cvt_scalef32_pk_fp4_bf16", "v:uf", cvt_scalef32_pk_fp4_16bit<Format::bf16>),
    raw("v_cvt_scalef32_pk_fp4_f16", "v:uf", cvt_scalef32_pk_fp4_16bit<Format::f16>),
};

}  // namespace

std::span<const Opcode> convert_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
