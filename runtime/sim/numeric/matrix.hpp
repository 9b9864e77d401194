// The matrix instructions on whole registers of 64 lanes.
//
// They read every lane whatever EXEC is, round to nearest even and keep denormals. How the hardware orders
// and how wide it keeps its sums is not specified, so the machine offers two orders, and what a kernel
// computes must hold under both. Results are the same bits on every host: neither order depends on the host's
// vector width or on fused operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/sim/numeric/minifloat.hpp"

namespace kiln::sim::numeric {

inline constexpr unsigned kLanes = 64;
using Register = std::uint32_t[kLanes];

// Both form the float32 sum of each block of up to 32 consecutive k first, multiply it by the block's scale,
// and add it to the accumulator, which starts from C.
enum class Order : std::uint8_t {
    ascending,    // k upward within a block, blocks upward
    interleaved,  // four sums of every fourth k, downward, added in pairs; blocks downward
};

// One instruction: D (rows x columns, times `blocks` independent ones) = A (rows x depth) * B (depth x
// columns) + C.
struct MatrixOp {
    std::uint8_t rows = 0;  // and columns
    std::uint8_t depth = 0;
    std::uint8_t blocks = 1;
    bool scaled = false;  // takes Scales
    Format a = Format::bf16;
    Format b = Format::bf16;

    // Consecutive registers of each operand. An f8f6f4 operand has 8 for 8-bit formats, 6 for 6-bit, 4 for
    // fp4.
    unsigned a_registers() const;
    unsigned b_registers() const;
    unsigned cd_registers() const { return unsigned{rows} * rows * blocks / kLanes; }
    // For which a SIMD's matrix unit is busy: four for each of its passes (CDNA4 ISA, table 28; those that
    // table leaves out as LLVM schedules them).
    unsigned cycles() const;
};

// The instruction of that mnemonic, without _e64 and the like; cbsz and blgp give the formats of A and B of
// an f8f6f4 instruction and must be 0 for any other. Nothing when there is no such instruction here.
std::optional<MatrixOp> find_matrix_op(std::string_view mnemonic, unsigned cbsz = 0, unsigned blgp = 0);

// Where the block scales of an f8f6f4 instruction come from: lane l gives the scale of row (of A; column of
// B) l % rows and of k block l / rows. byte = op_sel[i] + 2*op_sel_hi[i], i = 0 for A and 1 for B. In
// listings an absent op_sel, and here an absent op_sel_hi too, is 0.
struct Scales {
    const Register* a;
    unsigned a_byte;
    const Register* b;
    unsigned b_byte;
};

// D may be any of the sources. `c` null means zeros. `scales` is given exactly when op.scaled.
void multiply(const MatrixOp& op, const Register* a, const Register* b, const Register* c, Register* d,
              const Scales* scales, Order order);

}  // namespace kiln::sim::numeric
