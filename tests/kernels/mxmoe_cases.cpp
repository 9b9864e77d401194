#include "mxmoe_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/operators/fused_moe_mxmoe.hpp"
#include "runtime/tune/candidates.hpp"

namespace kiln::kernels_test {

namespace {

using operators::FusedMoeArrays;

template <class Expert>
void route(FusedMoeArrays& arrays, const Expert& expert) {
    for (std::size_t pair = 0; pair < arrays.ids.size(); ++pair) {
        arrays.ids[pair] = static_cast<std::int32_t>(expert(pair));
        arrays.weights[pair] = 0.25F + static_cast<float>(pair % 7) / 8;
    }
}

}  // namespace

std::vector<tables::Constants> mxmoe_couples() {
    const operators::FusedMoeProblem any{256, 256, 8, 2};
    return tune::combinations(operators::fused_moe_mxmoe_gfx950().space(moe_problem(any), 1));
}

FusedMoeArrays routed(FusedMoeArrays arrays, Routing routing) {
    const std::int64_t experts = arrays.problem.experts;
    switch (routing) {
        case Routing::mixed:
            break;
        case Routing::one_expert:
            route(arrays, [&](std::size_t) { return experts / 2; });
            break;
        case Routing::three:
            route(arrays, [&](std::size_t pair) {
                const std::size_t share = pair % 7;
                return share < 4 ? experts / 3 : share < 6 ? experts / 3 + 1 : 2 * experts / 3;
            });
            break;
    }
    return arrays;
}

FusedMoeArrays make_mxmoe_case(const operators::FusedMoeProblem& problem, std::int64_t m,
                               std::uint64_t seed) {
    FusedMoeArrays arrays = operators::make_fused_moe_case(problem, m, seed);
    for (const Routing routing : kRoutings) {
        FusedMoeArrays other = routed(arrays, routing);
        operators::add_experts(other);
        arrays.experts = std::move(other.experts);
    }
    return arrays;
}

std::int64_t count_blocks(const FusedMoeArrays& arrays, std::int64_t m, std::int64_t block_m) {
    std::map<std::int32_t, std::int64_t> pairs;
    for (const std::int32_t id :
         std::span(arrays.ids).first(static_cast<std::size_t>(m * arrays.problem.slots))) {
        if (id >= 0 && id < arrays.problem.experts) {
            ++pairs[id];
        }
    }
    std::int64_t blocks = 0;
    for (const auto& [expert, count] : pairs) {
        blocks += (count + block_m - 1) / block_m;
    }
    return blocks;
}

MxmoeInputs::MxmoeInputs(const MxmoeDevice& device, const operators::FusedMoeProblem& problem,
                         std::int64_t most_m, std::uint64_t seed)
    : arrays_{make_mxmoe_case(problem, most_m, seed)}, weights_(device.device(), arrays_.front()) {
    for (const Routing routing : {Routing::one_expert, Routing::three}) {
        arrays_[static_cast<std::size_t>(routing)] = routed(arrays_.front(), routing);
    }
}

const operators::MxmoeReference& MxmoeInputs::reference(Routing routing) {
    operators::MxmoeReference& reference = references_[static_cast<std::size_t>(routing)];
    if (reference.quantised.empty()) {
        reference = operators::mxmoe_reference(arrays(routing));
    }
    return reference;
}

void check_mxmoe_run(const LoadedPipeline& loaded, const MxmoeDevice::Run& run, const FusedMoeArrays& arrays,
                     const operators::MxmoeReference& reference, std::int64_t m) {
    INFO(loaded.pipeline.kernel_name, ", m ", m, ", seed ", arrays.seed);
    const auto compared = operators::compare_mxmoe(run.out, reference, m, arrays.problem.hidden);
    CHECK(compared.error < operators::MxmoeComparison::kBound);
    CHECK(compared.cosine_difference < operators::MxmoeComparison::kCosineBound);
    INFO("token ", compared.worst_token);
    CHECK(compared.token_error < operators::MxmoeComparison::kTokenBound);
    CHECK(run.margins_untouched);
    CHECK(run.gaps_untouched);
    CHECK(run.counters_zero);
    CHECK(run.flagged == operators::has_invalid_id(arrays, m));
}

}  // namespace kiln::kernels_test
