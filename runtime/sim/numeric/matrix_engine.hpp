// The two inner loops of a matrix instruction, built once for any host and once for AVX2 with FMA. Both
// builds give the same bits: vectors run over columns only, so no sum is ever split by the vector's width,
// and a fused multiply-add is used only where the product is exact.
//
// A panel is one operand as floats, k by k: panel[k * width + row] of A, panel[k * width + column] of B.
#pragma once

#include "runtime/sim/numeric/matrix.hpp"

namespace kiln::sim::numeric {

inline constexpr unsigned kMaxDepth = 128;
inline constexpr unsigned kMaxPanel = kMaxDepth * 16;  // floats; 64 * 32 is as many

struct Engine {
    // Registers to a panel. `lanes_a_row` is the panel's width: lane l holds row l % width of k group l /
    // width. A group's codes are consecutive k, but for 8-bit codes in eight registers: the upper four hold
    // the k of the panel's upper half.
    void (*unpack)(Format format, const Register* registers, unsigned count, unsigned width, float* panel);
    // sums[row * width + column] = the sum over k in [begin, end) in the given order; width is 16 or 32.
    // `exact` says that every product of an A and a B number is a float.
    void (*sum)(const float* a, const float* b, unsigned width, unsigned begin, unsigned end, Order order,
                bool exact, float* sums);
};

extern const Engine kPortableEngine;
#if defined(__x86_64__)
extern const Engine kAvx2Engine;  // to be called only where the host has AVX2 and FMA
#endif

// The fastest that this host can run.
const Engine& best_engine();

// multiply() with an engine of the caller's choice.
void multiply_with(const Engine& engine, const MatrixOp& op, const Register* a, const Register* b,
                   const Register* c, Register* d, const Scales* scales, Order order);

}  // namespace kiln::sim::numeric
