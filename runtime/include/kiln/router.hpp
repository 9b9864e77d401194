// kiln, the operator router in C++. Part of kiln.hpp.
#ifndef KILN_ROUTER_HPP_
#define KILN_ROUTER_HPP_

#include <cstdint>

#include "kiln/kiln.hpp"

namespace kiln {
inline namespace KILN_INTERFACE {

enum class Scoring : std::int32_t {
    operator_default = KILN_SCORING_DEFAULT,
    softmax = KILN_SCORING_SOFTMAX,
    sigmoid = KILN_SCORING_SIGMOID,
};

// The gate of a mixture of experts; the mathematics and the arrays stand in router.h.
struct Router {
    // The arrays of one launch.
    struct Args {
        const void* x = nullptr;            // bf16 [M, H]
        std::int64_t ldx = 0;               // elements between rows of x
        const void* gate = nullptr;         // bf16 [E, H]
        const void* shared_gate = nullptr;  // bf16 [H]; not looked at without a shared expert
        std::int32_t* ids = nullptr;        // [M, k + shared]
        float* weights = nullptr;           // [M, k + shared]
        float scale = 1;                    // of the shared expert's weight
        void* workspace = nullptr;          // readied by Plan::init_workspace
    };

    std::int64_t hidden = 0;
    std::int64_t experts = 0;
    std::int64_t top_k = 0;
    std::int32_t shared = 1;
    Dtype x_type = Dtype::operator_default;
    Dtype gate_type = Dtype::operator_default;
    Dtype weights_type = Dtype::operator_default;
    Scoring scoring = Scoring::operator_default;
    bool score_bias = false;
    std::int32_t expert_groups = 1;
    bool renormalise = true;
    std::int32_t expert_parallel = 1;
    bool expert_map = false;
    bool simulated = false;
    bool gate_strided = false;
    std::int64_t x_inner_stride = 1;

    // The same in C, and the C functions behind supports(), prepare() and launch().
    [[nodiscard]] kiln_router c_problem() const {
        kiln_router c = KILN_ROUTER_INIT;
        c.hidden = hidden;
        c.experts = experts;
        c.top_k = top_k;
        c.shared = shared;
        c.x_type = static_cast<std::int32_t>(x_type);
        c.gate_type = static_cast<std::int32_t>(gate_type);
        c.weights_type = static_cast<std::int32_t>(weights_type);
        c.scoring = static_cast<std::int32_t>(scoring);
        c.score_bias = score_bias ? 1 : 0;
        c.expert_groups = expert_groups;
        c.no_renormalise = renormalise ? 0 : 1;
        c.expert_parallel = expert_parallel;
        c.expert_map = expert_map ? 1 : 0;
        c.simulated = simulated ? 1 : 0;
        c.gate_strided = gate_strided ? 1 : 0;
        c.x_inner_stride = x_inner_stride;
        return c;
    }
    static kiln_status c_supports(kiln_service* service, std::int32_t device, const Router& problem,
                                  kiln_error** error) {
        const kiln_router c = problem.c_problem();
        return kiln_router_supports(service, device, &c, error);
    }
    static kiln_status c_prepare(kiln_service* service, std::int32_t device, const Router& problem,
                                 const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
        const kiln_router c = problem.c_problem();
        return kiln_router_prepare(service, device, &c, options, plan, error);
    }
    static kiln_status c_launch(const kiln_plan* plan, void* stream, std::int64_t m, const Args& args) {
        const kiln_router_args c{args.x,   args.ldx,     args.gate,  args.shared_gate,
                                 args.ids, args.weights, args.scale, args.workspace};
        return kiln_router_launch(plan, stream, m, &c);
    }
};

}  // namespace KILN_INTERFACE
}  // namespace kiln

#endif  // KILN_ROUTER_HPP_
