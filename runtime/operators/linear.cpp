#include "runtime/operators/linear.hpp"

#include <array>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "runtime/operators/guards.hpp"
#include "runtime/operators/linear_derivation_gfx950.hpp"
#include "runtime/operators/linear_derivation_sm_90a.hpp"
#include "runtime/operators/linear_small_m.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

namespace {

const std::array<Field, 12> kFields{{
    {"n", "columns of the result, a multiple of 16", std::nullopt},
    {"k", "columns of x, a multiple of 128", std::nullopt},
    {"x_type", "type of the activations", std::nullopt, type_words("bf16")},
    {"x_quantised", "1 when the activations are quantised already", 0},
    {"x_inner_stride", "elements between neighbours in a row of x", 1},
    {"w_type", "type of the weights", std::nullopt, type_words("e4m3fn")},
    {"w_layout", "order of the weights in memory", std::nullopt, {"preshuffled", "row_major"}},
    {"w_scale_type", "type of the weight scales", std::nullopt, type_words("fp32")},
    {"w_scale_granularity",
     "what shares a weight scale",
     std::nullopt,
     {"block_128x128", "per_tensor", "per_row", "group_32"}},
    {"w_scale_strided", "1 when the weight scales are not contiguous", 0},
    {"out_type", "type of the result", std::nullopt, type_words("bf16")},
    {"bias", "1 when a bias is to be added", 0},
}};

const Guard kGuards[] = {
    {"x_type", std::string("bf16"), KILN_DECLINE_X_TYPE},
    {"x_quantised", std::int64_t{0}, KILN_DECLINE_X_QUANTISED},
    {"x_inner_stride", std::int64_t{1}, KILN_DECLINE_X_INNER_STRIDE},
    {"w_type", std::string("e4m3fn"), KILN_DECLINE_W_TYPE},
    {"w_layout", std::string("preshuffled"), KILN_DECLINE_W_LAYOUT},
    {"w_scale_type", std::string("fp32"), KILN_DECLINE_W_SCALE_TYPE},
    {"w_scale_granularity", std::string("block_128x128"), KILN_DECLINE_W_SCALE_SHAPE},
    {"w_scale_strided", std::int64_t{0}, KILN_DECLINE_W_SCALE_STRIDE},
    {"out_type", std::string("bf16"), KILN_DECLINE_OUT_TYPE},
    {"bias", std::int64_t{0}, KILN_DECLINE_BIAS},
};

constexpr KernelArgument kKernargs[] = {
    {"x", offsetof(LinearKernargs, x), sizeof(LinearKernargs::x)},
    {"w", offsetof(LinearKernargs, w), sizeof(LinearKernargs::w)},
    {"w_scale", offsetof(LinearKernargs, w_scale), sizeof(LinearKernargs::w_scale)},
    {"out", offsetof(LinearKernargs, out), sizeof(LinearKernargs::out)},
    {"m", offsetof(LinearKernargs, m), sizeof(LinearKernargs::m)},
    {"ldx", offsetof(LinearKernargs, ldx), sizeof(LinearKernargs::ldx)},
};

class Linear final : public Operator {
  public:
    std::string_view name() const override { return "linear"; }
    std::span<const Field> fields() const override { return kFields; }
    std::span<const Template* const> templates() const override {
        static const Template* const templates[] = {&linear_small_m_gfx950(), &linear_small_m_sm_90a()};
        return templates;
    }

    Answer<void> judge(const Problem& problem) const override {
        if (Answer<void> passed = check_guards(*this, problem, kGuards); !passed) {
            return passed;
        }
        const auto [n, k] = std::get<LinearProblem>(typed(problem));
        if (n < 16 || n % 16 != 0 || k < 128 || k % 128 != 0) {
            return declined(
                KILN_DECLINE_DIMENSIONS, Stage::configure,
                fmt::format("linear: expected n a multiple of 16 and k of 128, found n={} k={}", n, k));
        }
        return {};
    }

    TypedProblem typed(const Problem& problem) const override {
        return LinearProblem{number(problem, "n"), number(problem, "k")};
    }

    Result<std::vector<Bucket>> derive(const Problem& problem, const tables::Target& target) const override {
        if (target.processor == "gfx950") {
            return derive_linear_small_m_gfx950(problem);
        }
        if (target.processor == "sm_90a") {
            return derive_linear_small_m_sm_90a(problem);
        }
        return fail(ErrorCode::not_found, Stage::table,
                    fmt::format("linear: expected a processor that constants are derived for, gfx950 or "
                                "sm_90a, found {}",
                                target.text()));
    }
};

}  // namespace

const KernargBlock& linear_kernargs() {
    static constexpr KernargBlock block{kKernargs, sizeof(LinearKernargs)};
    return block;
}

const Operator& linear() {
    static const Linear op;
    return op;
}

}  // namespace kiln::operators
