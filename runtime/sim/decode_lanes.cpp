// DPP, SDWA and the output modifiers of floats: wrappers around the plain instruction. A wrapper prepares
// sources in scratch rows, runs the plain instruction on them, and treats its result.
#include <bit>

#include <fmt/format.h>

#include "runtime/sim/decode.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/undefined.hpp"

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;

constexpr unsigned kSource0 = kScratchRow, kSource1 = kScratchRow + 1, kResult = kScratchRow + 2;
constexpr unsigned kRowLanes = 16;  // lanes of a DPP row

// The lane from which `lane` takes its first source; negative when there is none.
int dpp_source(const LaneControl& c, unsigned lane) {
    const int row = static_cast<int>(lane & ~15u), in_row = static_cast<int>(lane & 15u);
    const int amount = c.amount;
    switch (c.pattern) {
        case LaneControl::quad_perm:
            return static_cast<int>(lane & ~3u) + (amount >> (2 * (lane & 3u)) & 3);
        case LaneControl::row_shl:
            return in_row + amount < 16 ? row + in_row + amount : -1;
        case LaneControl::row_shr:
            return in_row >= amount ? row + in_row - amount : -1;
        case LaneControl::row_ror:
            return row + ((in_row - amount) & 15);
        case LaneControl::wave_shl:
            return lane + 1 < kLanes ? static_cast<int>(lane) + 1 : -1;
        case LaneControl::wave_rol:
            return static_cast<int>((lane + 1) & 63u);
        case LaneControl::wave_shr:
            return static_cast<int>(lane) - 1;
        case LaneControl::wave_ror:
            return static_cast<int>((lane - 1) & 63u);
        case LaneControl::row_mirror:
            return row + 15 - in_row;
        case LaneControl::row_half_mirror:
            return static_cast<int>(lane ^ 7u);
        case LaneControl::row_bcast15:  // the last lane of a row to the whole next row
            return lane >= 16 ? row - 1 : -1;
        case LaneControl::row_bcast31:  // lane 31 to rows 2 and 3
            return lane >= 32 ? 31 : -1;
        case LaneControl::row_newbcast:
            return row + amount;
    }
    return -1;
}

void copy_lane(Wave& w, unsigned to_row, unsigned to, unsigned from_row, unsigned from) {
    w.rows[to_row][to] = w.rows[from_row][from];
    const u64 bit = u64{1} << to;
    u64 all = bit;
    for (unsigned n = 0; n < 4; ++n) {
        const u64 byte = (w.byte_defined(from_row, n) >> from & 1) << to;
        w.bytes_defined[to_row][n] = (w.bytes_defined[to_row][n] & ~bit) | byte;
        all &= byte;
    }
    w.defined[to_row] = (w.defined[to_row] & ~bit) | all;
}

void run_dpp(Wave& w, const Instruction& i) {
    const LaneControl& c = i.control;
    const u64 exec = w.exec();
    const unsigned from_row = i.src[0].index;
    const bool all_defined = w.defined[from_row] == ~u64{0};
    u64 valid = c.has_source;
    if (exec != ~u64{0}) {
        valid = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            valid |= (c.has_source >> lane & exec >> c.source[lane] & 1) << lane;
        }
    }
    if (all_defined) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            w.rows[kSource0][lane] = valid >> lane & 1 ? w.rows[from_row][c.source[lane]] : 0;
        }
        w.defined[kSource0] = ~u64{0};
    } else {
        w.origins[kSource0] = origin_of_row(w, i, from_row);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            copy_lane(w, kSource0, lane, from_row, c.source[lane]);
            if ((valid >> lane & 1) == 0) {
                w.rows[kSource0][lane] = 0;
                w.defined[kSource0] |= u64{1} << lane;
            }
        }
    }
    const u64 write = c.selected & (c.bound_ctrl ? ~u64{0} : valid);
    w.set_exec(exec & write);
    i.inner->run(w, *i.inner);
    w.set_exec(exec);
}

unsigned first_byte(Select select) {
    switch (select) {
        case Select::word0:
        case Select::dword:
            return 0;
        case Select::word1:
            return 2;
        default:
            return static_cast<unsigned>(select);
    }
}
unsigned num_bytes(Select select) {
    return select == Select::dword ? 4 : select == Select::word0 || select == Select::word1 ? 2 : 1;
}

void extract(Wave& w, const Instruction& i, const Operand& o, Select select, unsigned row) {
    const unsigned shift = 8 * first_byte(select), bits = 8 * num_bytes(select);
    const bool sext = (o.modifiers & Operand::kSext) != 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const std::uint32_t dword = o.kind == Operand::vgpr   ? w.rows[o.index][lane]
                                    : o.kind == Operand::sgpr ? w.sgprs[o.index]
                                                              : o.row[lane];
        const std::uint32_t part = dword >> shift;
        w.rows[row][lane] =
            bits == 32 ? part
            : sext ? static_cast<std::uint32_t>(static_cast<std::int32_t>(part << (32 - bits)) >> (32 - bits))
                   : part & ((1u << bits) - 1);
    }
    u64 ok = ~u64{0};
    for (unsigned n = 0; n < bits / 8; ++n) {
        ok &= o.kind == Operand::vgpr ? w.byte_defined(o.index, first_byte(select) + n) : ~u64{0};
    }
    if (o.kind == Operand::sgpr && w.sgprs_defined[o.index] != ~0u) {
        ok = 0;
    }
    w.defined[row] = ok;
    w.origins[row] = {};
    for (auto& bytes : w.bytes_defined[row]) {
        bytes = ok;
    }
    if (ok != ~u64{0}) {
        w.origins[row] =
            o.kind == Operand::vgpr ? origin_of_row(w, i, o.index) : origin_of_sgpr(w, i, o.index);
    }
}

void run_sdwa(Wave& w, const Instruction& i) {
    const LaneControl& c = i.control;
    const unsigned sources = i.inner->src[1].kind == Operand::none ? 1 : 2;
    for (unsigned n = 0; n < sources; ++n) {
        extract(w, i, i.src[n], c.src_sel[n], n == 0 ? kSource0 : kSource1);
    }
    if (i.inner->dst.index != kResult || i.inner->dst.kind != Operand::vgpr) {
        i.inner->run(w, *i.inner);  // a lane mask or a register pair, always whole
        return;
    }
    // An instruction that accumulates reads its destination.
    if (i.opcode->form.ends_with('+')) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            copy_lane(w, kResult, lane, i.dst.index, lane);
        }
        w.origins[kResult] = w.origins[i.dst.index];
    }
    i.inner->run(w, *i.inner);
    const u64 exec = w.exec(), undefined = exec & ~w.defined[kResult];
    const unsigned first = first_byte(c.dst_sel), count = num_bytes(c.dst_sel), shift = 8 * first;
    const std::uint32_t mask = count == 4 ? ~0u : ((1u << (8 * count)) - 1) << shift;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if ((exec >> lane & 1) == 0) {
            continue;
        }
        const std::uint32_t part = w.rows[kResult][lane] << shift & mask;
        std::uint32_t rest = 0;
        if (c.unused == Unused::preserve) {
            rest = w.rows[i.dst.index][lane] & ~mask;
        } else if (c.unused == Unused::sext && part >> (shift + 8 * count - 1) & 1) {
            rest = shift + 8 * count == 32 ? 0 : ~0u << (shift + 8 * count);
        }
        w.rows[i.dst.index][lane] = part | rest;
    }
    const unsigned bytes = c.unused == Unused::preserve ? ((1u << count) - 1) << first : 0xf;
    const Origin origin = w.origins[kResult];
    mark_bytes(w, i, i.dst.index, bytes, exec, undefined);
    if (undefined != 0) {
        w.origins[i.dst.index] = origin;
    }
}

// Clamp to [0, 1] (NaN becomes 0) and multiplication by 2, 4 or 1/2, on the result of a float32 instruction.
void run_output_modifiers(Wave& w, const Instruction& i) {
    // The plain instruction may read the destination, so it runs in place; only its lanes are treated.
    i.inner->run(w, *i.inner);
    const u64 exec = w.exec();
    constexpr float kFactor[] = {1.0f, 2.0f, 4.0f, 0.5f};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (exec >> lane & 1) {
            float value = std::bit_cast<float>(w.rows[i.dst.index][lane]);
            if (i.omod != 0) {
                value *= kFactor[i.omod];
                // The multiplier flushes denormals.
                if ((std::bit_cast<std::uint32_t>(value) & 0x7f800000) == 0) {
                    value = 0;
                }
            }
            if (i.clamp != 0) {
                value = value > 0 ? (value > 1 ? 1.0f : value) : 0.0f;
            }
            w.rows[i.dst.index][lane] = std::bit_cast<std::uint32_t>(value);
        }
    }
}

bool take_number(InstructionText& text, std::string_view name, int low, int high, std::uint8_t& value) {
    const Modifier* modifier = text.take(name);
    if (modifier == nullptr) {
        return false;
    }
    const auto number = parse_number(modifier->value);
    if (!number || *number < low || *number > high) {
        return false;
    }
    value = static_cast<std::uint8_t>(*number);
    return true;
}

std::string take_dpp(InstructionText& text, LaneControl& c) {
    struct Named {
        std::string_view name;
        LaneControl::Pattern pattern;
        int low, high;  // of the amount
    };
    static constexpr Named kPatterns[] = {
        {"row_shl", LaneControl::row_shl, 1, 15},  {"row_shr", LaneControl::row_shr, 1, 15},
        {"row_ror", LaneControl::row_ror, 1, 15},  {"wave_shl", LaneControl::wave_shl, 1, 1},
        {"wave_rol", LaneControl::wave_rol, 1, 1}, {"wave_shr", LaneControl::wave_shr, 1, 1},
        {"wave_ror", LaneControl::wave_ror, 1, 1}, {"row_newbcast", LaneControl::row_newbcast, 0, 15},
    };
    bool found = false;
    if (const Modifier* quad = text.take("quad_perm")) {
        const std::string_view v = quad->value;
        if (v.size() != 9 || v.front() != '[' || v.back() != ']') {
            return "quad_perm is malformed";
        }
        for (unsigned n = 0; n < 4; ++n) {
            const char digit = v[1 + 2 * n];
            if (digit < '0' || digit > '3') {
                return "quad_perm is malformed";
            }
            c.amount = static_cast<std::uint8_t>(c.amount | (digit - '0') << (2 * n));
        }
        c.pattern = LaneControl::quad_perm;
        found = true;
    } else if (text.take("row_mirror") != nullptr) {
        c.pattern = LaneControl::row_mirror;
        found = true;
    } else if (text.take("row_half_mirror") != nullptr) {
        c.pattern = LaneControl::row_half_mirror;
        found = true;
    } else if (const Modifier* broadcast = text.take("row_bcast")) {
        c.pattern = broadcast->value == "15" ? LaneControl::row_bcast15 : LaneControl::row_bcast31;
        found = broadcast->value == "15" || broadcast->value == "31";
    } else {
        for (const Named& named : kPatterns) {
            if (!found && take_number(text, named.name, named.low, named.high, c.amount)) {
                c.pattern = named.pattern;
                found = true;
            }
        }
    }
    if (!found) {
        return "the DPP pattern is unknown";
    }
    if (!take_number(text, "row_mask", 0, 15, c.row_mask) ||
        !take_number(text, "bank_mask", 0, 15, c.bank_mask)) {
        return "row_mask or bank_mask is missing";
    }
    c.bound_ctrl = text.take("bound_ctrl") != nullptr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const int source = dpp_source(c, lane);
        c.source[lane] = static_cast<std::uint8_t>(source < 0 ? 0 : source);
        c.has_source |= static_cast<u64>(source >= 0) << lane;
        const bool selected =
            c.row_mask >> (lane / kRowLanes) & 1 && c.bank_mask >> (lane % kRowLanes / 4) & 1;
        c.selected |= static_cast<u64>(selected) << lane;
    }
    return {};
}

bool take_select(InstructionText& text, std::string_view name, Select& select) {
    static constexpr std::string_view kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                                  "WORD_0", "WORD_1", "DWORD"};
    const Modifier* modifier = text.take(name);
    if (modifier == nullptr) {
        return true;
    }
    for (unsigned n = 0; n < 7; ++n) {
        if (modifier->value == kNames[n]) {
            select = static_cast<Select>(n);
            return true;
        }
    }
    return false;
}

std::string take_sdwa(InstructionText& text, LaneControl& c) {
    if (!take_select(text, "dst_sel", c.dst_sel) || !take_select(text, "src0_sel", c.src_sel[0]) ||
        !take_select(text, "src1_sel", c.src_sel[1])) {
        return "an SDWA selection is unknown";
    }
    if (const Modifier* unused = text.take("dst_unused")) {
        if (unused->value == "UNUSED_PAD") {
            c.unused = Unused::pad;
        } else if (unused->value == "UNUSED_SEXT") {
            c.unused = Unused::sext;
        } else if (unused->value == "UNUSED_PRESERVE") {
            c.unused = Unused::preserve;
        } else {
            return "dst_unused is unknown";
        }
    }
    return {};
}

}  // namespace

std::string decode_lane_control(Code& code, Instruction& i, InstructionText& text) {
    const bool dpp = text.dpp, sdwa = text.sdwa;
    if ((dpp || sdwa) && (i.opcode->flags & kNoDpp)) {
        return "the instruction has no such form";
    }
    if (sdwa) {
        i.control.kind = LaneControl::sdwa;
    }
    if (auto reason = decode_operands(code, i, text); !reason.empty()) {
        return reason;
    }
    if (!dpp && !sdwa) {
        if ((i.clamp || i.omod) && (i.opcode->flags & kClampOmod)) {
            Instruction& inner = code.wrapped.emplace_back(i);
            inner.clamp = inner.omod = 0;
            i.inner = &inner;
            i.run = run_output_modifiers;
        }
        return {};
    }
    if (i.clamp || i.omod) {
        return "clamp or an output multiplier together with DPP or SDWA";
    }
    if (auto reason = dpp ? take_dpp(text, i.control) : take_sdwa(text, i.control); !reason.empty()) {
        return reason;
    }
    const char result = i.opcode->form[0];
    if (dpp && i.src[0].kind != Operand::vgpr) {
        return "DPP needs a vector register";
    }
    Instruction& inner = code.wrapped.emplace_back(i);
    const auto replace = [](Operand& o, unsigned row) {
        o.kind = Operand::vgpr;
        o.index = static_cast<std::uint16_t>(row);
        o.modifiers = static_cast<std::uint8_t>(o.modifiers & ~Operand::kSext);
    };
    replace(inner.src[0], kSource0);
    if (dpp) {
        if (result != 'v' || i.src[0].dwords != 1) {
            return "DPP of 64-bit or lane-mask results";
        }
        i.run = run_dpp;
    } else {
        if (i.src[0].dwords != 1 || (result != 'v' && result != 'w' && result != 'c')) {
            return "SDWA of 64-bit operands";
        }
        if (i.src[1].kind != Operand::none) {
            replace(inner.src[1], kSource1);
        }
        if (result == 'w' && (i.control.dst_sel != Select::dword)) {
            return "SDWA selects a part of a 64-bit result";
        }
        if (result == 'v') {
            replace(inner.dst, kResult);
            if (i.opcode->form.ends_with('+')) {
                inner.src[2] = inner.dst;
            }
        }
        i.run = run_sdwa;
    }
    i.inner = &inner;
    return {};
}

}  // namespace kiln::sim
