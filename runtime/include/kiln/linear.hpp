// kiln, the operator linear in C++. Part of kiln.hpp.
#ifndef KILN_LINEAR_HPP_
#define KILN_LINEAR_HPP_

#include <cstdint>

#include "kiln/kiln.hpp"

namespace kiln {
inline namespace KILN_INTERFACE {

// Small-M fp8 block-scale matrix product; the mathematics and the layouts stand in linear.h.
struct Linear {
    // The arrays of one launch.
    struct Args {
        const void* x = nullptr;         // bf16 [M, K]
        std::int64_t ldx = 0;            // elements between rows of x
        const void* w = nullptr;         // e4m3fn [N, K], preshuffled
        const float* w_scale = nullptr;  // [ceil(N/128), K/128]
        void* out = nullptr;             // bf16 [M, N]
    };

    std::int64_t n = 0;
    std::int64_t k = 0;
    Dtype x_type = Dtype::operator_default;
    Dtype w_type = Dtype::operator_default;
    Dtype w_scale_type = Dtype::operator_default;
    Dtype out_type = Dtype::operator_default;
    WeightLayout w_layout = WeightLayout::operator_default;
    ScaleGranularity w_scale_granularity = ScaleGranularity::operator_default;
    bool w_scale_strided = false;
    bool x_quantised = false;
    bool bias = false;
    std::int64_t x_inner_stride = 1;

    // The same in C, and the C functions behind supports(), prepare() and launch().
    [[nodiscard]] kiln_linear c_problem() const {
        kiln_linear c = KILN_LINEAR_INIT;
        c.n = n;
        c.k = k;
        c.x_type = static_cast<std::int32_t>(x_type);
        c.w_type = static_cast<std::int32_t>(w_type);
        c.w_scale_type = static_cast<std::int32_t>(w_scale_type);
        c.out_type = static_cast<std::int32_t>(out_type);
        c.w_layout = static_cast<std::int32_t>(w_layout);
        c.w_scale_granularity = static_cast<std::int32_t>(w_scale_granularity);
        c.w_scale_strided = w_scale_strided ? 1 : 0;
        c.x_quantised = x_quantised ? 1 : 0;
        c.bias = bias ? 1 : 0;
        c.x_inner_stride = x_inner_stride;
        return c;
    }
    static kiln_status c_supports(kiln_service* service, std::int32_t device, const Linear& problem,
                                  kiln_error** error) {
        const kiln_linear c = problem.c_problem();
        return kiln_linear_supports(service, device, &c, error);
    }
    static kiln_status c_prepare(kiln_service* service, std::int32_t device, const Linear& problem,
                                 const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
        const kiln_linear c = problem.c_problem();
        return kiln_linear_prepare(service, device, &c, options, plan, error);
    }
    static kiln_status c_launch(const kiln_plan* plan, void* stream, std::int64_t m, const Args& args) {
        const kiln_linear_args c{args.x, args.ldx, args.w, args.w_scale, args.out};
        return kiln_linear_launch(plan, stream, m, &c);
    }
};

}  // namespace KILN_INTERFACE
}  // namespace kiln

#endif  // KILN_LINEAR_HPP_
