// Matrix instructions: operands and undefined lanes; the arithmetic is in numeric/matrix.hpp.
#include <bit>
#include <cstring>

#include "runtime/sim/fault.hpp"
#include "runtime/sim/matrix.hpp"
#include "runtime/sim/undefined.hpp"

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

// A scale as one register of 64 lanes.
const numeric::Register* scale_register(const Wave& w, const Operand& o, numeric::Register& room) {
    if (o.kind == Operand::vgpr) {
        return &w.rows[o.index];
    }
    for (u32& lane : room) {
        lane = o.kind == Operand::sgpr ? w.sgprs[o.index] : o.row[0];
    }
    return &room;
}

bool all_defined(const Wave& w, const Operand& o) {
    for (unsigned n = 0; n < o.dwords; ++n) {
        if ((o.kind == Operand::vgpr && w.defined[o.index + n] != ~u64{0}) ||
            (o.kind == Operand::sgpr && w.sgprs_defined[o.index + n] != ~0u)) {
            return false;
        }
    }
    return true;
}

// The lanes of A or B (or their scales) that hold anything undefined, each spread over all lanes of the same
// row (column): l % rows. Where there are several blocks, a lane belongs to one and is alone.
u64 undefined_lanes(const Wave& w, const Operand& o, const numeric::MatrixOp& op) {
    u64 lanes = 0;
    for (unsigned n = 0; n < o.dwords; ++n) {
        if (o.kind == Operand::vgpr) {
            lanes |= ~w.defined[o.index + n];
        } else if (o.kind == Operand::sgpr && w.sgprs_defined[o.index + n] != ~0u) {
            lanes = ~u64{0};
        }
    }
    if (op.blocks > 1) {
        return lanes;
    }
    u64 spread = 0;
    for (unsigned shift = 0; shift < kLanes; shift += op.rows) {
        spread |= std::rotr(lanes, static_cast<int>(shift));
    }
    return spread;
}

}  // namespace

// An undefined element of A makes its row of D undefined, one of B its column, one of C itself. Lane l holds
// column l % rows; its registers hold rows as isa documents have it.
void run_matrix(Wave& w, const Instruction& i) {
    const MatrixInstruction& m = *i.matrix;
    w.mfma_cycles += m.cycles;
    const unsigned count = m.op.cd_registers(), rows = m.op.rows;
    u64 undefined[32] = {};
    Origin origin;
    bool exact = true;
    for (const Operand& o : i.src) {
        exact &= all_defined(w, o);
    }
    for (const Operand& o : m.scales) {
        exact &= all_defined(w, o);
    }
    if (!exact) [[unlikely]] {
        const u64 bad_a = undefined_lanes(w, i.src[0], m.op) | undefined_lanes(w, m.scales[0], m.op);
        const u64 bad_b = undefined_lanes(w, i.src[1], m.op) | undefined_lanes(w, m.scales[1], m.op);
        origin = origin_of(w, i, ~u64{0});
        for (unsigned n = 0; n < 2 && origin.reader == nullptr; ++n) {
            origin = all_defined(w, m.scales[n]) ? origin : origin_of_row(w, i, m.scales[n].index);
        }
        for (unsigned n = 0; n < count; ++n) {
            if (i.src[2].kind == Operand::vgpr) {
                undefined[n] = ~w.defined[i.src[2].index + n];
            }
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                // The row of D that this register holds, as the lane of A that has it.
                const unsigned row = rows == 32   ? n % 16 / 4 * 8 + 4 * (lane >> 5) + n % 4
                                     : rows == 16 ? 4 * (lane >> 4 & 3) + n % 4
                                                  : (lane & ~3u) + n % 4;
                if ((bad_a >> row & 1) || (bad_b >> lane & 1)) {
                    undefined[n] |= u64{1} << lane;
                }
            }
        }
    }

    numeric::Register room[2];
    numeric::Scales scales{};
    if (m.op.scaled) {
        scales = {scale_register(w, m.scales[0], room[0]), m.scale_byte[0],
                  scale_register(w, m.scales[1], room[1]), m.scale_byte[1]};
    }
    // An inline constant C: every element the same. Zero is known to multiply().
    numeric::Register constant[32];
    const numeric::Register* c = nullptr;
    if (i.src[2].kind == Operand::vgpr) {
        c = &w.rows[i.src[2].index];
    } else if (i.src[2].row[0] != 0) {
        for (unsigned n = 0; n < count; ++n) {
            std::memcpy(constant[n], i.src[2].row, sizeof constant[n]);
        }
        c = constant;
    }
    numeric::multiply(m.op, &w.rows[i.src[0].index], &w.rows[i.src[1].index], c, &w.rows[i.dst.index],
                      m.op.scaled ? &scales : nullptr, w.group->matrix_order);
    for (unsigned n = 0; n < count; ++n) {
        const unsigned row = i.dst.index + n;
        w.defined[row] = ~undefined[n];
        if (undefined[n] != 0) [[unlikely]] {
            mark_undefined(w, i, row, undefined[n]);
            w.origins[row] = origin;
        }
    }
}

}  // namespace kiln::sim
