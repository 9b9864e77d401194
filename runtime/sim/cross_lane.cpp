// Instructions that move values between lanes, and between lanes and scalars.
#include <algorithm>
#include <utility>

#include "runtime/sim/access.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A scalar source of a vector instruction, whose constants are rows.
u32 uniform(const Wave& w, const Instruction& i, const Operand& o, const char* what) {
    if (o.kind == Operand::constant) {
        return o.row[0];
    }
    return static_cast<u32>(require_scalar(w, i, o, what));
}

void lane_to_scalar(Wave& w, const Instruction& i, unsigned lane) {
    const Operand& o = i.src[0];
    if (o.kind != Operand::vgpr) {
        fault(-1, "the source is no vector register");
    }
    u32 defined = 0;
    for (unsigned n = 0; n < 4; ++n) {
        defined |= (w.byte_defined(o.index, n) >> lane & 1 ? 0xffu : 0) << (8 * n);
    }
    const Origin origin = defined == ~0u ? Origin{} : origin_of_row(w, i, o.index);
    write_scalar(w, i, i.dst, w.rows[o.index][lane], u64{defined} | ~u64{0xffffffff});
    w.sgpr_origins[i.dst.index] = origin;
}

void readlane(Wave& w, const Instruction& i) {
    lane_to_scalar(w, i, uniform(w, i, i.src[1], "the number of a lane") & 63);
}

void readfirstlane(Wave& w, const Instruction& i) {
    lane_to_scalar(w, i, w.exec() == 0 ? 0 : static_cast<unsigned>(std::countr_zero(w.exec())));
}

void writelane(Wave& w, const Instruction& i) {
    const u32 value = uniform(w, i, i.src[0], "the value for a lane");
    const unsigned lane = uniform(w, i, i.src[1], "the number of a lane") & 63;
    w.rows[i.dst.index][lane] = value;
    w.defined[i.dst.index] |= u64{1} << lane;
}

// Where the bytes of one lane of a row are defined, as bits 0 to 3.
unsigned lane_bytes(const Wave& w, unsigned row, unsigned lane) {
    unsigned bytes = 0;
    for (unsigned n = 0; n < 4; ++n) {
        bytes |= static_cast<unsigned>(w.byte_defined(row, n) >> lane & 1) << n;
    }
    return bytes;
}

// Writes row `to` from `from[lane]` of row `source`; lanes in `zero` become 0.
void gather(Wave& w, const Instruction& i, unsigned to, unsigned source, const std::uint8_t* from, u64 zero) {
    alignas(64) u32 value[kLanes];
    const u64 exec = w.exec();
    u64 ok[4] = {};
    const bool all_defined = w.defined[source] == ~u64{0};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const bool none = zero >> lane & 1;
        value[lane] = none ? 0 : w.rows[source][from[lane]];
        const unsigned bytes = none || all_defined ? 0xf : lane_bytes(w, source, from[lane]);
        for (unsigned n = 0; n < 4; ++n) {
            ok[n] |= static_cast<u64>(bytes >> n & 1) << lane;
        }
    }
    const u64 all = ok[0] & ok[1] & ok[2] & ok[3];
    if (exec & ~all) {
        const Origin origin = origin_of_row(w, i, source);
        w.origins[to] = origin;
        w.defined[to] &= ~(exec & ~all);
        for (unsigned n = 0; n < 4; ++n) {
            w.bytes_defined[to][n] = (w.bytes_defined[to][n] & ~exec) | (exec & ok[n]);
        }
    }
    for_lanes(exec, [&](unsigned lane) { w.rows[to][lane] = value[lane]; });
    w.defined[to] |= exec & all;
}

void require_lanes(const Wave& w, const Instruction& i) {
    require_row(w, i, i.src[0].index, w.exec(), 0xf, "the number of a lane");
}

// dst = data of the lane that this lane names (a byte address); 0 from a lane that is switched off.
void bpermute(Wave& w, const Instruction& i) {
    require_lanes(w, i);
    std::uint8_t from[kLanes];
    u64 zero = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        from[lane] =
            static_cast<std::uint8_t>((w.rows[i.src[0].index][lane] + static_cast<u32>(i.offset)) >> 2 & 63);
        zero |= static_cast<u64>((w.exec() >> from[lane] & 1) == 0) << lane;
    }
    gather(w, i, i.dst.index, i.src[1].index, from, zero);
}

// This lane sends its data to the lane it names; the highest sender wins, and who gets nothing gets 0.
void permute(Wave& w, const Instruction& i) {
    require_lanes(w, i);
    std::uint8_t from[kLanes] = {};
    u64 zero = ~u64{0};
    for_lanes(w.exec(), [&](unsigned lane) {
        const unsigned to = (w.rows[i.src[0].index][lane] + static_cast<u32>(i.offset)) >> 2 & 63;
        from[to] = static_cast<std::uint8_t>(lane);
        zero &= ~(u64{1} << to);
    });
    gather(w, i, i.dst.index, i.src[1].index, from, zero);
}

// Instruction::offset: and mask, or mask and xor mask of five bits each; or bit 15 and four times two bits.
void swizzle(Wave& w, const Instruction& i) {
    const auto control = static_cast<u32>(i.offset);
    std::uint8_t from[kLanes];
    u64 zero = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const unsigned source = control >> 15 & 1
                                    ? (lane & ~3u) | (control >> (2 * (lane & 3)) & 3)
                                    : (lane & 32) | ((((lane & 31) & (control & 31)) | (control >> 5 & 31)) ^
                                                     (control >> 10 & 31));
        from[lane] = static_cast<std::uint8_t>(source);
        zero |= static_cast<u64>((w.exec() >> source & 1) == 0) << lane;
    }
    gather(w, i, i.dst.index, i.src[0].index, from, zero);
}

void swap_lanes(Wave& w, unsigned row_a, unsigned lane_a, unsigned row_b, unsigned lane_b) {
    std::swap(w.rows[row_a][lane_a], w.rows[row_b][lane_b]);
    if ((w.defined[row_a] >> lane_a & w.defined[row_b] >> lane_b & 1) != 0) {
        return;
    }
    const unsigned bytes_a = lane_bytes(w, row_a, lane_a), bytes_b = lane_bytes(w, row_b, lane_b);
    const auto set = [&](unsigned row, unsigned lane, unsigned bytes) {
        const u64 bit = u64{1} << lane;
        w.defined[row] = bytes == 0xf ? w.defined[row] | bit : w.defined[row] & ~bit;
        for (unsigned n = 0; n < 4; ++n) {
            w.bytes_defined[row][n] =
                bytes >> n & 1 ? w.bytes_defined[row][n] | bit : w.bytes_defined[row][n] & ~bit;
        }
    };
    set(row_a, lane_a, bytes_b);
    set(row_b, lane_b, bytes_a);
}

// The upper of each two groups of `Lanes` lanes of the destination against the lower one of the source. What
// happens when EXEC has only one lane of a pair is not settled.
template <unsigned Lanes>
void permlane_swap(Wave& w, const Instruction& i) {
    const u64 exec = w.exec();
    const unsigned to = i.dst.index, source = i.src[0].index;
    if (i.src[0].kind != Operand::vgpr) {
        fault(-1, "the source is no vector register");
    }
    if ((w.defined[to] & w.defined[source] & exec) == ~u64{0}) {
        for (unsigned lane = 0; lane < kLanes; lane += 2 * Lanes) {
            std::swap_ranges(w.rows[to] + lane + Lanes, w.rows[to] + lane + 2 * Lanes, w.rows[source] + lane);
        }
        return;
    }
    if ((w.defined[to] & w.defined[source]) != ~u64{0}) {
        const Origin a = w.origins[to], b = w.origins[source];
        w.origins[to] = b.reader != nullptr ? b : origin_of_row(w, i, source);
        w.origins[source] = a.reader != nullptr ? a : origin_of_row(w, i, to);
    }
    // The lower lane of each pair. (Masks, because g++ 12 miscompiles the comparison of two bits picked by
    // shifts.)
    constexpr u64 kLower = Lanes == 32 ? 0x00000000ffffffffu : 0x0000ffff0000ffffu;
    const u64 low = exec & kLower, high = exec >> Lanes & kLower;
    if (low != high) {
        fault(std::countr_zero(low ^ high), "half a pair of lanes is switched off");
    }
    for_lanes(low, [&](unsigned lane) { swap_lanes(w, to, lane + Lanes, source, lane); });
}

void swap(Wave& w, const Instruction& i) {
    for_lanes(w.exec(), [&](unsigned lane) { swap_lanes(w, i.dst.index, lane, i.src[0].index, lane); });
}

constexpr Opcode op(std::string_view name, std::string_view form, Handler handler) {
    return {name, form, handler, Category::valu, kNoDpp, nullptr, 0, 0};
}

constexpr Opcode kOpcodes[] = {
    op("v_readlane_b32", "s:uu", readlane),
    op("v_readfirstlane_b32", "s:u", readfirstlane),
    op("v_writelane_b32", "v:uu", writelane),
    op("v_permlane16_swap_b32", "v:u", permlane_swap<16>),
    op("v_permlane32_swap_b32", "v:u", permlane_swap<32>),
    op("v_swap_b32", "v:u", swap),
    op("v_nop", ":", [](Wave&, const Instruction&) {}),
    {"ds_bpermute_b32", "!ds_permute", bpermute, Category::lds, 0, nullptr, 0, 0},
    {"ds_permute_b32", "!ds_permute", permute, Category::lds, 0, nullptr, 0, 0},
    {"ds_swizzle_b32", "!ds_swizzle", swizzle, Category::lds, 0, nullptr, 0, 0},
};

}  // namespace

std::span<const Opcode> cross_lane_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
