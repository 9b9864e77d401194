#include "runtime/sim/numeric/matrix.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/sim/numeric/arithmetic.hpp"
#include "runtime/sim/numeric/matrix_engine.hpp"

namespace kiln::sim::numeric {
namespace {

constexpr unsigned kMaxTile = 32 * 32;
constexpr unsigned kScaleBlock = 32;  // k that share a scale

// result[row * width + lane] of the accumulator registers, and back: register i of lane group g is row
// i % 4 + 4 * (g + groups * (i / 4)), where width lanes make a group.
template <class Copy>
void for_each_row(const MatrixOp& op, Copy copy) {
    const unsigned width = unsigned{op.rows} * op.blocks;
    const unsigned groups = kLanes / width;
    for (unsigned i = 0; i < op.cd_registers(); ++i) {
        for (unsigned group = 0; group < groups; ++group)
            copy(i, group * width, (i % 4 + 4 * (group + groups * (i / 4))) * width, width);
    }
}

// Many small products side by side (4x4): the panels are 64 wide, and a lane's block is lane / rows.
void sum_blocks(const MatrixOp& op, const float* a, const float* b, Order order, float* sums) {
    const unsigned width = unsigned{op.rows} * op.blocks;
    for (unsigned row = 0; row < op.rows; ++row) {
        for (unsigned lane = 0; lane < width; ++lane) {
            const unsigned a_lane = lane / op.rows * op.rows + row;
            float products[4] = {};  // depth is at most 4
            for (unsigned k = 0; k < op.depth; ++k)
                products[k] = a[k * width + a_lane] * b[k * width + lane];
            sums[row * width + lane] = order == Order::ascending
                                           ? ((products[0] + products[1]) + products[2]) + products[3]
                                           : (products[0] + products[1]) + (products[2] + products[3]);
        }
    }
}

std::uint32_t scale_byte(const Register* source, unsigned lane, unsigned byte) {
    return (*source)[lane] >> (8 * byte) & 0xff;
}

// total += sums * 2^(a + b - 254), each product rounded to float once.
void add_scaled(const float* sums, unsigned width, unsigned block, const Scales& scales, float* total) {
    std::uint32_t a[32];
    std::uint32_t b[32];
    bool ordinary = true;  // every factor is a normal float
    for (unsigned i = 0; i < width; ++i) {
        a[i] = scale_byte(scales.a, block * width + i, scales.a_byte);
        b[i] = scale_byte(scales.b, block * width + i, scales.b_byte);
        ordinary = ordinary && a[i] >= 64 && a[i] <= 190 && b[i] >= 64 && b[i] <= 190;
    }
    for (unsigned row = 0; row < width; ++row) {
        const float* from = sums + row * width;
        float* to = total + row * width;
        if (ordinary) {
            for (unsigned column = 0; column < width; ++column)
                to[column] += from[column] * to_float((a[row] + b[column] - 127) << 23);
            continue;
        }
        for (unsigned column = 0; column < width; ++column) {
            const bool nan = a[row] == 255 || b[column] == 255;
            const double factor = to_double(std::uint64_t{a[row] + b[column] + (1023 - 254)} << 52);
            to[column] += nan ? to_float(kQuietNan) : static_cast<float>(from[column] * factor);
        }
    }
}

}  // namespace

const Engine& best_engine() {
#if defined(__x86_64__)
    static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (wide)
        return kAvx2Engine;
#endif
    return kPortableEngine;
}

void multiply_with(const Engine& engine, const MatrixOp& op, const Register* a, const Register* b,
                   const Register* c, Register* d, const Scales* scales, Order order) {
    const unsigned width = unsigned{op.rows} * op.blocks;
    alignas(64) float a_panel[kMaxPanel];
    alignas(64) float b_panel[kMaxPanel];
    alignas(64) float sums[kMaxTile];
    alignas(64) float total[kMaxTile];
    engine.unpack(op.a, a, op.a_registers(), width, a_panel);
    engine.unpack(op.b, b, op.b_registers(), width, b_panel);
    if (c == nullptr)
        std::fill_n(total, op.rows * width, 0.0f);
    else
        for_each_row(op, [&](unsigned i, unsigned lane, unsigned at, unsigned count) {
            std::memcpy(&total[at], &c[i][lane], count * sizeof(float));
        });

    const bool exact = layout_of(op.a).bits <= 8 && layout_of(op.b).bits <= 8;
    const unsigned steps = (op.depth + kScaleBlock - 1) / kScaleBlock;
    for (unsigned step = 0; step < steps; ++step) {
        const unsigned block = order == Order::ascending ? step : steps - 1 - step;
        const unsigned begin = block * kScaleBlock;
        const unsigned end = std::min<unsigned>(op.depth, begin + kScaleBlock);
        if (op.blocks > 1)
            sum_blocks(op, a_panel, b_panel, order, sums);
        else
            engine.sum(a_panel, b_panel, width, begin, end, order, exact, sums);
        if (op.scaled) {
            add_scaled(sums, width, block, *scales, total);
        } else {
            for (unsigned i = 0; i < op.rows * width; ++i)
                total[i] += sums[i];
        }
    }
    for_each_row(op, [&](unsigned i, unsigned lane, unsigned at, unsigned count) {
        std::memcpy(&d[i][lane], &total[at], count * sizeof(float));
    });
}

void multiply(const MatrixOp& op, const Register* a, const Register* b, const Register* c, Register* d,
              const Scales* scales, Order order) {
    multiply_with(best_engine(), op, a, b, c, d, scales, order);
}

}  // namespace kiln::sim::numeric
