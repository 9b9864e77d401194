// What the decoder works out about a matrix instruction.
#pragma once

#include "runtime/sim/instruction.hpp"
#include "runtime/sim/numeric/matrix.hpp"

namespace kiln::sim {

struct MatrixInstruction {
    numeric::MatrixOp op;
    Operand scales[2];  // of A and B, where op.scaled
    unsigned scale_byte[2] = {};
    unsigned cycles = 0;  // that it keeps the SIMD's matrix unit busy
};

// src[0] is A, src[1] B, src[2] C (vector registers or a constant).
void run_matrix(Wave& wave, const Instruction& instruction);

}  // namespace kiln::sim
