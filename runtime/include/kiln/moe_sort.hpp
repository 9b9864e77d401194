// kiln, the operator moe_sort in C++. Part of kiln.hpp.
#ifndef KILN_MOE_SORT_HPP_
#define KILN_MOE_SORT_HPP_

#include <cstdint>

#include "kiln/kiln.hpp"

namespace kiln {
inline namespace KILN_INTERFACE {

// Groups the pairs of tokens and experts by expert; what it writes where stands in moe_sort.h.
struct MoeSort {
    enum class Quant : std::int32_t {
        none = KILN_MOE_SORT_QUANT_NONE,
        mxfp8 = KILN_MOE_SORT_QUANT_MXFP8,
    };
    // The arrays of one launch; null where the problem has no use for one.
    struct Args {
        const std::int32_t* ids = nullptr;          // [M, slots]
        const float* weights = nullptr;             // [M, slots]
        const void* x = nullptr;                    // bf16 [M, hidden]
        std::int64_t ldx = 0;                       // elements between rows of x
        std::int32_t* sorted_ids = nullptr;         // rows(M)
        float* sorted_weights = nullptr;            // rows(M)
        std::int32_t* sorted_expert_ids = nullptr;  // blocks(M)
        std::int32_t* num_valid = nullptr;          // 2
        void* moe_buf = nullptr;                    // bf16 [M, hidden]
        void* q = nullptr;                          // e4m3fn [M, hidden]
        void* q_scale = nullptr;                    // scale_bytes(M)
        void* workspace = nullptr;                  // readied by Plan::init_workspace
    };

    std::int64_t experts = 0;
    std::int64_t slots = 0;
    std::int64_t block_m = 0;
    std::int64_t hidden = 0;
    Quant quant = Quant::none;
    Dtype x_type = Dtype::operator_default;
    bool expert_mask = false;
    bool num_local_tokens = false;
    std::int64_t x_inner_stride = 1;

    // Sizes of the arrays for m tokens; negative as kiln_moe_sort_rows() says.
    [[nodiscard]] std::int64_t rows(std::int64_t m) const {
        const kiln_moe_sort c = c_problem();
        return kiln_moe_sort_rows(&c, m);
    }
    [[nodiscard]] std::int64_t blocks(std::int64_t m) const {
        const kiln_moe_sort c = c_problem();
        return kiln_moe_sort_blocks(&c, m);
    }
    [[nodiscard]] std::int64_t scale_bytes(std::int64_t m) const {
        const kiln_moe_sort c = c_problem();
        return kiln_moe_sort_scale_bytes(&c, m);
    }

    // The same in C, and the C functions behind supports(), prepare() and launch().
    [[nodiscard]] kiln_moe_sort c_problem() const {
        kiln_moe_sort c = KILN_MOE_SORT_INIT;
        c.experts = experts;
        c.slots = slots;
        c.block_m = block_m;
        c.hidden = hidden;
        c.quant = static_cast<std::int32_t>(quant);
        c.x_type = static_cast<std::int32_t>(x_type);
        c.expert_mask = expert_mask ? 1 : 0;
        c.num_local_tokens = num_local_tokens ? 1 : 0;
        c.x_inner_stride = x_inner_stride;
        return c;
    }
    static kiln_status c_supports(kiln_service* service, std::int32_t device, const MoeSort& problem,
                                  kiln_error** error) {
        const kiln_moe_sort c = problem.c_problem();
        return kiln_moe_sort_supports(service, device, &c, error);
    }
    static kiln_status c_prepare(kiln_service* service, std::int32_t device, const MoeSort& problem,
                                 const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
        const kiln_moe_sort c = problem.c_problem();
        return kiln_moe_sort_prepare(service, device, &c, options, plan, error);
    }
    static kiln_status c_launch(const kiln_plan* plan, void* stream, std::int64_t m, const Args& args) {
        const kiln_moe_sort_args c{args.ids,
                                   args.weights,
                                   args.x,
                                   args.ldx,
                                   args.sorted_ids,
                                   args.sorted_weights,
                                   args.sorted_expert_ids,
                                   args.num_valid,
                                   args.moe_buf,
                                   args.q,
                                   args.q_scale,
                                   args.workspace};
        return kiln_moe_sort_launch(plan, stream, m, &c);
    }
};

}  // namespace KILN_INTERFACE
}  // namespace kiln

#endif  // KILN_MOE_SORT_HPP_
