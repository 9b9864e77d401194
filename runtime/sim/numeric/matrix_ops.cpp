// Which matrix instructions there are, and how many registers they take.
#include <array>

#include "runtime/sim/numeric/matrix.hpp"

namespace kiln::sim::numeric {
namespace {

struct Named {
    std::string_view mnemonic;
    MatrixOp op;
};

constexpr auto kNamed = std::to_array<Named>({
    {"v_mfma_f32_32x32x16_bf16", {32, 16, 1, false, Format::bf16, Format::bf16}},
    {"v_mfma_f32_32x32x8_bf16", {32, 8, 1, false, Format::bf16, Format::bf16}},
    {"v_mfma_f32_16x16x32_bf16", {16, 32, 1, false, Format::bf16, Format::bf16}},
    {"v_mfma_f32_16x16x16_bf16", {16, 16, 1, false, Format::bf16, Format::bf16}},
    {"v_mfma_f32_4x4x4_16b_bf16", {4, 4, 16, false, Format::bf16, Format::bf16}},
    {"v_mfma_f32_32x32x16_f16", {32, 16, 1, false, Format::f16, Format::f16}},
    {"v_mfma_f32_32x32x8_f16", {32, 8, 1, false, Format::f16, Format::f16}},
    {"v_mfma_f32_16x16x32_f16", {16, 32, 1, false, Format::f16, Format::f16}},
    {"v_mfma_f32_16x16x16_f16", {16, 16, 1, false, Format::f16, Format::f16}},
    {"v_mfma_f32_4x4x4_16b_f16", {4, 4, 16, false, Format::f16, Format::f16}},
    {"v_mfma_f32_32x32x2_f32", {32, 2, 1, false, Format::f32, Format::f32}},
    {"v_mfma_f32_16x16x4_f32", {16, 4, 1, false, Format::f32, Format::f32}},
    {"v_mfma_f32_4x4x1_16b_f32", {4, 1, 16, false, Format::f32, Format::f32}},
    {"v_mfma_f32_32x32x16_fp8_fp8", {32, 16, 1, false, Format::e4m3, Format::e4m3}},
    {"v_mfma_f32_32x32x16_fp8_bf8", {32, 16, 1, false, Format::e4m3, Format::e5m2}},
    {"v_mfma_f32_32x32x16_bf8_fp8", {32, 16, 1, false, Format::e5m2, Format::e4m3}},
    {"v_mfma_f32_32x32x16_bf8_bf8", {32, 16, 1, false, Format::e5m2, Format::e5m2}},
    {"v_mfma_f32_16x16x32_fp8_fp8", {16, 32, 1, false, Format::e4m3, Format::e4m3}},
    {"v_mfma_f32_16x16x32_fp8_bf8", {16, 32, 1, false, Format::e4m3, Format::e5m2}},
    {"v_mfma_f32_16x16x32_bf8_fp8", {16, 32, 1, false, Format::e5m2, Format::e4m3}},
    {"v_mfma_f32_16x16x32_bf8_bf8", {16, 32, 1, false, Format::e5m2, Format::e5m2}},
});

// Their formats stand in cbsz and blgp.
constexpr auto kAnyFormat = std::to_array<Named>({
    {"v_mfma_f32_16x16x128_f8f6f4", {16, 128, 1, false, Format::e4m3, Format::e4m3}},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", {16, 128, 1, true, Format::e4m3, Format::e4m3}},
    {"v_mfma_f32_32x32x64_f8f6f4", {32, 64, 1, false, Format::e4m3, Format::e4m3}},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", {32, 64, 1, true, Format::e4m3, Format::e4m3}},
});

unsigned operand_registers(const MatrixOp& op, Format format) {
    const unsigned codes_a_lane = unsigned{op.rows} * op.depth * op.blocks / kLanes;
    return codes_a_lane * static_cast<unsigned>(layout_of(format).bits) / 32;
}

}  // namespace

unsigned MatrixOp::a_registers() const {
    return operand_registers(*this, a);
}
unsigned MatrixOp::b_registers() const {
    return operand_registers(*this, b);
}

unsigned MatrixOp::cycles() const {
    // Operands of 8 bits halve the rate of the long forms, which have room for 4 bits.
    const bool is_long = unsigned{rows} * depth == 2048;
    const bool wide = is_long && (layout_of(a).bits == 8 || layout_of(b).bits == 8);
    const bool doubled = wide || a == Format::f32;
    switch (rows) {
        case 4:
            return 8;
        case 16:
            return doubled ? 32 : 16;
        default:
            return doubled ? 64 : 32;
    }
}

std::optional<MatrixOp> find_matrix_op(std::string_view mnemonic, unsigned cbsz, unsigned blgp) {
    for (const Named& named : kAnyFormat) {
        if (named.mnemonic != mnemonic)
            continue;
        if (cbsz > static_cast<unsigned>(Format::e2m1) || blgp > static_cast<unsigned>(Format::e2m1))
            return std::nullopt;
        MatrixOp op = named.op;
        op.a = static_cast<Format>(cbsz);
        op.b = static_cast<Format>(blgp);
        return op;
    }
    for (const Named& named : kNamed) {
        if (named.mnemonic == mnemonic)
            return cbsz == 0 && blgp == 0 ? std::optional(named.op) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace kiln::sim::numeric
