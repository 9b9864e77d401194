/* kiln, the operator `linear`; part of kiln.h.
 *
 * Small-M fp8 block-scale matrix product with the activation quantiser fused, in one launch:
 *
 *     for 128 consecutive k of a row (kb numbers them):
 *         amax  = max(|x|, 1e-10)
 *         xs    = amax * float(1/448)
 *         q     = e4m3fn(x * (1 / xs)), to nearest even
 *     out[m,n]  = bf16( sum over kb of  xs[m,kb] * w_scale[n/128,kb] * dot(m, n, kb) )
 *     dot       = sum over the 128 k of kb of  q[m,k] * w[n,k]
 *
 *   x        bf16    [M, K], rows ldx elements apart, elements of a row adjacent; aligned to 16 bytes
 *   w        e4m3fn  [N, K] preshuffled (16, 16): element (n, k) at byte
 *                    (n>>4)*16*K + (k>>4)*256 + (n&15)*16 + (k&15); aligned to 16 bytes
 *   w_scale  float32 [ceil(N/128), K/128], contiguous; aligned to 4 bytes
 *   out      bf16    [M, N], contiguous; aligned to 16 bytes
 *
 * N a multiple of 16, K of 128. The inner sum is the matrix unit's, from zero for every kb; scaling and the
 * sum over kb are float32; one rounding to bf16. e4m3fn is the fp8 format of the OCP (maximum 448, no
 * infinity); the 1x128 and 128x128 scales are those of public block-scaled fp8 checkpoints.
 */
#ifndef KILN_LINEAR_H_
#define KILN_LINEAR_H_

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All that is known when a model is loaded. Zero in every member but n and k is what kiln serves. */
typedef struct kiln_linear {
    size_t struct_size;
    int64_t n;
    int64_t k;
    int32_t x_type;              /* kiln_dtype; bf16 is served */
    int32_t w_type;              /* kiln_dtype; e4m3fn is served */
    int32_t w_scale_type;        /* kiln_dtype; float32 is served */
    int32_t out_type;            /* kiln_dtype; bf16 is served */
    int32_t w_layout;            /* kiln_weight_layout; preshuffled is served */
    int32_t w_scale_granularity; /* kiln_scale_granularity; 128x128 is served */
    int32_t w_scale_strided;     /* 1: the scales are not contiguous; declined */
    int32_t x_quantised;         /* 1: x is quantised already and has a scale of its own; declined */
    int32_t bias;                /* 1: a bias is to be added; declined */
    int32_t reserved;            /* zero */
    int64_t x_inner_stride;      /* elements between neighbours in a row; 0 and 1: adjacent, as is served */
} kiln_linear;
#define KILN_LINEAR_INIT \
    { sizeof(kiln_linear), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Whether kiln serves this problem on this device (KILN_NO_DEVICE: on the configured target). Never compiles,
 * never loads, never touches the cache. */
KILN_API KILN_NODISCARD kiln_status kiln_linear_supports(kiln_service* service, int32_t device,
                                                         const kiln_linear* problem, kiln_error** error);

/* Makes a plan of the problem for the device; `options` may be NULL: blocking. Work is shared with other
 * threads and processes that want the same. The calling thread's current device is left as it was. A build or
 * load that fails is returned as an error once, with one line in the log; from then on the service declines
 * what needs it at once (KILN_DECLINE_DISABLED). In lazy and background mode prepare itself fails only where
 * no bucket could ever be launched: what supports says, buckets that were disabled earlier aside unless all
 * are.
 */
KILN_API KILN_NODISCARD kiln_status kiln_linear_prepare(kiln_service* service, int32_t device,
                                                        const kiln_linear* problem,
                                                        const kiln_prepare_options* options, kiln_plan** plan,
                                                        kiln_error** error);

/* The arrays of one launch, all in memory that the device can reach. */
typedef struct kiln_linear_args {
    const void* x;        /* bf16 [M, K] */
    int64_t ldx;          /* elements between rows of x: at least K, a multiple of 8, below 2^25 */
    const void* w;        /* e4m3fn [N, K], preshuffled */
    const float* w_scale; /* [ceil(N/128), K/128] */
    void* out;            /* bf16 [M, N] */
} kiln_linear_args;

/* Enqueues out = linear(x, w) for M rows on `stream` (the driver's own handle; NULL is its default stream)
 * and returns. Takes no lock, allocates nothing, reads neither environment nor disk, but for the first launch
 * of a bucket in lazy mode and the one line in the log that a first decline or failure of its kind is. M = 0
 * succeeds, launches nothing and looks at no argument. The calling thread's current device must be the
 * plan's. A launch that the driver refuses disables the specialisation for this service: the call fails,
 * later ones decline. An earlier asynchronous error of the context that shows up here is
 * KILN_ERROR_DEVICE_FAILED and disables nothing. */
KILN_API kiln_status kiln_linear_launch(const kiln_plan* plan, void* stream, int64_t m,
                                        const kiln_linear_args* args);

#ifdef __cplusplus
}
#endif

#endif /* KILN_LINEAR_H_ */
