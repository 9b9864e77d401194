#include "runtime/operators/moe_sort.hpp"

#include <array>

#include <fmt/format.h>

#include "runtime/operators/guards.hpp"
#include "runtime/operators/moe_sort_templates.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

namespace {

const std::array<Field, 9> kFields{{
    {"experts", "experts that ids name, 1 to 1024", std::nullopt},
    {"slots", "pairs of a token, 1 to 16", std::nullopt},
    {"block_m", "rows of a block: 16, 32, 64 or 128", std::nullopt},
    {"quant", "what the tokens are quantised to", std::nullopt, {"none", "mxfp8"}},
    {"hidden", "elements of a token, a multiple of 8 (quantised: of 2048); 0 when none are zeroed", 0},
    {"x_type", "type of the activations", std::nullopt, type_words("bf16")},
    {"x_inner_stride", "elements between neighbours in a row of x", 1},
    {"expert_mask", "1 when some experts are masked out", 0},
    {"num_local_tokens", "1 when the number of tokens is in device memory", 0},
}};

const Guard kGuards[] = {
    {"x_type", std::string("bf16"), KILN_DECLINE_X_TYPE},
    {"x_inner_stride", std::int64_t{1}, KILN_DECLINE_X_INNER_STRIDE},
    {"expert_mask", std::int64_t{0}, KILN_DECLINE_EXPERT_MASK},
    {"num_local_tokens", std::int64_t{0}, KILN_DECLINE_LOCAL_TOKENS},
};

constexpr KernelArgument kKernargs[] = {
    {"ids", offsetof(MoeSortKernargs, ids), sizeof(MoeSortKernargs::ids)},
    {"weights", offsetof(MoeSortKernargs, weights), sizeof(MoeSortKernargs::weights)},
    {"x", offsetof(MoeSortKernargs, x), sizeof(MoeSortKernargs::x)},
    {"sorted_ids", offsetof(MoeSortKernargs, sorted_ids), sizeof(MoeSortKernargs::sorted_ids)},
    {"sorted_weights", offsetof(MoeSortKernargs, sorted_weights), sizeof(MoeSortKernargs::sorted_weights)},
    {"sorted_expert_ids", offsetof(MoeSortKernargs, sorted_expert_ids),
     sizeof(MoeSortKernargs::sorted_expert_ids)},
    {"num_valid", offsetof(MoeSortKernargs, num_valid), sizeof(MoeSortKernargs::num_valid)},
    {"moe_buf", offsetof(MoeSortKernargs, moe_buf), sizeof(MoeSortKernargs::moe_buf)},
    {"q", offsetof(MoeSortKernargs, q), sizeof(MoeSortKernargs::q)},
    {"q_scale", offsetof(MoeSortKernargs, q_scale), sizeof(MoeSortKernargs::q_scale)},
    {"zeroed", offsetof(MoeSortKernargs, zeroed), sizeof(MoeSortKernargs::zeroed)},
    {"scratch", offsetof(MoeSortKernargs, scratch), sizeof(MoeSortKernargs::scratch)},
    {"m", offsetof(MoeSortKernargs, m), sizeof(MoeSortKernargs::m)},
    {"ldx", offsetof(MoeSortKernargs, ldx), sizeof(MoeSortKernargs::ldx)},
};

class MoeSort final : public Operator {
  public:
    std::string_view name() const override { return "moe_sort"; }
    std::span<const Field> fields() const override { return kFields; }
    std::span<const Template* const> templates() const override {
        static const Template* const templates[] = {
            &moe_sort_compact_gfx950(), &moe_sort_distributed_gfx950(), &moe_sort_general_gfx950()};
        return templates;
    }

    Answer<void> judge(const Problem& problem) const override {
        if (Answer<void> passed = check_guards(*this, problem, kGuards); !passed) {
            return passed;
        }
        const auto found = std::get<MoeSortProblem>(typed(problem));
        if (!has_served_dimensions(found)) {
            return declined(
                KILN_DECLINE_DIMENSIONS, Stage::configure,
                fmt::format("moe_sort: expected experts 1 to {}, slots 1 to {}, block_m 16, 32, 64 "
                            "or 128, hidden a multiple of 8 up to {}, of 2048 from 2048 on with "
                            "the quantiser; found experts={} slots={} block_m={} hidden={} quant={}",
                            kMoeSortMostExperts, kMoeSortMostSlots, kMoeSortMostHidden, found.experts,
                            found.slots, found.block_m, found.hidden, found.quantised ? "mxfp8" : "none"));
        }
        return {};
    }

    TypedProblem typed(const Problem& problem) const override {
        return MoeSortProblem{number(problem, "experts"), number(problem, "slots"),
                              number(problem, "block_m"), number(problem, "hidden"),
                              std::get<std::string>(problem.find("quant")->second) != "none"};
    }

    Result<std::vector<Bucket>> derive(const Problem& problem, const tables::Target& target) const override {
        if (target.processor != "gfx950") {
            return fail(ErrorCode::not_found, Stage::table,
                        fmt::format("moe_sort: expected a processor that there are templates for, gfx950, "
                                    "found {}",
                                    target.text()));
        }
        return derive_moe_sort_gfx950(std::get<MoeSortProblem>(typed(problem)));
    }
};

}  // namespace

bool has_served_dimensions(const MoeSortProblem& problem) {
    const auto [experts, slots, block_m, hidden, quantised] = problem;
    const bool block_fits = block_m == 16 || block_m == 32 || block_m == 64 || block_m == 128;
    const bool hidden_fits = hidden >= 0 && hidden <= kMoeSortMostHidden &&
                             (quantised ? hidden > 0 && hidden % 2048 == 0 : hidden % 8 == 0);
    return experts >= 1 && experts <= kMoeSortMostExperts && slots >= 1 && slots <= kMoeSortMostSlots &&
           block_fits && hidden_fits;
}

const KernargBlock& moe_sort_kernargs() {
    static constexpr KernargBlock block{kKernargs, sizeof(MoeSortKernargs)};
    return block;
}

const Operator& moe_sort() {
    static const MoeSort op;
    return op;
}

}  // namespace kiln::operators
