/* kiln, the operator `fused_moe`; part of kiln.h.
 *
 * The experts of a mixture-of-experts layer: both matrix products of every chosen expert, the activation
 * between them, and the weighted sum over a token's slots:
 *
 *     for each token m and slot s, with e = ids[m,s] in [0, E):
 *         g[i]   = sum over the H k of  w13[e, i, k]     * x[m,k]
 *         u[i]   = sum over the H k of  w13[e, I + i, k] * x[m,k]
 *         h[i]   = round( g[i] / (1 + exp(-g[i])) * u[i] )
 *         d[n]   = sum over the I i of  w2[e, n, i] * h[i]
 *     out[m,n]   = bf16( sum over s, in order, of  weights[m,s] * d[n] )
 *
 * Sums are float32. Id -1 is padding: it contributes nothing. Any other id outside [0, E) contributes nothing
 * too, and raises a flag. The weight of such a slot is not looked at. A token without a slot that counts is
 * zero.
 *
 * Two kinds of kernels do this. Which of them serves M tokens is what the shape table's row says (`kiln
 * explain fused_moe ... --m M`); a plan has all that its row names, and a launch takes the one for its M. The
 * weights are the same for both, and so is what a caller does:
 *
 *   small_m   For few tokens: two kernels, no sort. Activations are not quantised, and h is rounded to bf16.
 *             Two launches give the same bits. Relative L2 to a float64 computation that rounds where this
 *             does: below 5e-4.
 *   mxmoe     For more, up to thousands; mxfp4 weights, H and I multiples of 256. Tokens are sorted by
 *             expert, then both products multiply blocks of 16 to 128 rows of one expert. x and h are
 *             quantised to mxfp4: e2m1 in groups of 32 along a row, with the scale of amax / 6 rounded up to
 *             a power of two. Relative L2 to a float64 computation that quantises where this does: below
 *             5e-3. Cosine difference, 1 - 2 * sum(xy) / sum(x^2 + y^2), to one that leaves h as it is: below
 *             2e-2.
 *             How slots are added up is a constant of the row's bucket. Either d is rounded to bf16, and then
 *             all goes as above; two launches give the same bits. Or bf16(weights[m,s] * d[n]) is added to
 *             out by atomic operations, rounded to bf16 at every addition, in an order that varies from
 *             launch to launch, and the last bits with it.
 *
 * Who needs the same bits launch after launch sets `deterministic`.
 *
 *   x          bf16    [M, H], rows ldx elements apart, elements of a row adjacent; aligned to 16 bytes
 *   w13        [E, 2*I, H], gate rows first, then up, preshuffled (16, 16); aligned to 16 bytes. With
 *              KILN_GATE_UP_INTERLEAVED (mxfp4 only) tiles of 16 gate rows and of 16 up rows alternate, in
 *              w13_scale too: what the shufflers make with KILN_ROWS_GATE_UP_INTERLEAVED
 *   w2         [E, H, I], preshuffled (16, 16); aligned to 16 bytes
 *   w13_scale, w2_scale   aligned to 4 bytes
 *   ids        int32   [M, S], contiguous
 *   weights    float32 [M, S], contiguous
 *   out        bf16    [M, H], contiguous; aligned to 16 bytes
 *
 * The weights' formats, as formats.h prepares them:
 *
 *   mxfp4: w e2m1, two to a byte (kiln_shuffle_weights with row_bytes K/2); scales e8m0, one for each row and
 *   32 k, preshuffled over the rows of all experts (kiln_shuffle_scales). Scale byte 0 is 2^-127. I is a
 *   multiple of 64.
 *
 *   fp8: w e4m3fn (kiln_shuffle_weights with row_bytes K); scales float32 [E, rows/128, K/128], contiguous,
 *   one for each block of 128 x 128. I is a multiple of 128.
 *
 * H a multiple of 128, E from 1 to 1024, S from 1 to 16 (a shared expert that is fused takes a slot like any
 * other). M ends at the last bucket of the shape table's row: kiln_plan_max_m(). The shipped rows end at 1024
 * where mxmoe can serve, else where sorting would win. A row can say more: of small_m up to 64 tokens and 704
 * pairs, of mxmoe up to 2^24 - 1 tokens, of H * I below 2^31. All of x, (M - 1) * ldx + H elements, is below
 * 2 GiB.
 *
 * The workspace (kiln_plan_workspace_bytes()) holds h for small_m; for mxmoe the sorted pairs, the quantised
 * rows of x and h, and, unless slots are added up by atomic operations, M * S rows of H in bf16.
 */
#ifndef KILN_FUSED_MOE_H_
#define KILN_FUSED_MOE_H_

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats of the experts' weights with their scales. The values never change. */
typedef enum kiln_moe_weights {
    KILN_MOE_WEIGHTS_DEFAULT = 0,        /* mxfp4 */
    KILN_MOE_WEIGHTS_MXFP4 = 1,          /* e2m1 with an e8m0 scale for 32 k */
    KILN_MOE_WEIGHTS_FP8 = 2,            /* e4m3fn with a float32 scale for 128 x 128 */
    KILN_MOE_WEIGHTS_FP8_PER_TENSOR = 3, /* e4m3fn with a scale for each expert */
    KILN_MOE_WEIGHTS_FP8_PER_ROW = 4,    /* e4m3fn with a scale for each row */
    KILN_MOE_WEIGHTS_MXFP8 = 5,          /* e4m3fn with an e8m0 scale for 32 k */
    KILN_MOE_WEIGHTS_FP8_FNUZ = 6,       /* gfx942's fp8 */
    KILN_MOE_WEIGHTS_BF16 = 7,
    KILN_MOE_WEIGHTS_INT4 = 8
} kiln_moe_weights;

/* The activation between the two stages, of gate g and up u. The values never change. */
typedef enum kiln_activation {
    KILN_ACTIVATION_DEFAULT = 0, /* silu */
    KILN_ACTIVATION_SILU = 1,    /* g / (1 + exp(-g)) * u */
    KILN_ACTIVATION_GELU = 2,
    KILN_ACTIVATION_SWIGLU_CLAMPED = 3 /* clamped, g / (1 + exp(-1.702 g)) * (u + 1) */
} kiln_activation;

/* How the gate and up rows of w13 and of its scales lie. The values never change. */
typedef enum kiln_gate_up {
    KILN_GATE_UP_DEFAULT = 0,    /* separated */
    KILN_GATE_UP_SEPARATED = 1,  /* of each expert, gate rows first, then up rows */
    KILN_GATE_UP_INTERLEAVED = 2 /* of each expert, tiles of 16 gate rows and of 16 up rows in turn */
} kiln_gate_up;

/* All that is known when a model is loaded. Zero in every member but the dimensions and `weights` is what
 * kiln serves. */
typedef struct kiln_fused_moe {
    size_t struct_size;
    int64_t hidden;               /* H */
    int64_t intermediate;         /* I, of this rank */
    int64_t experts;              /* E, a fused shared expert included */
    int64_t slots;                /* S */
    int32_t weights;              /* kiln_moe_weights; mxfp4 and fp8 are served */
    int32_t activation;           /* kiln_activation; silu is served */
    int32_t x_type;               /* kiln_dtype; bf16 is served */
    int32_t out_type;             /* kiln_dtype; bf16 is served */
    int32_t w_layout;             /* kiln_weight_layout; preshuffled is served */
    int32_t w_scale_layout_other; /* 1: the scales lie in another order than said above; declined */
    int32_t w_scale_strided;      /* 1: the scales are not contiguous; declined */
    int32_t x_quantised;          /* 1: x is quantised already and has a scale of its own; declined */
    int32_t bias;                 /* 1: biases are to be added; declined */
    int32_t expert_mask;          /* 1: a mask says which experts are local; declined */
    int32_t doweight_stage1;      /* 1: the routing weights are to be applied to h; declined */
    int32_t no_combine;           /* 1: the d of each slot are wanted, not their sum; declined */
    int32_t num_local_tokens;     /* 1: the number of tokens stands in device memory; declined */
    int32_t reserved;             /* zero */
    int64_t x_inner_stride;       /* elements between neighbours in a row; 0 and 1: adjacent, as is served */
    int32_t gate_up;              /* kiln_gate_up; interleaved is served with mxfp4 */
    /* 1: two launches with the same input give the same bits; kernels that add in an order that varies are
     * passed over, so that others serve, or, where the row has no others, the problem is declined. Every M
     * that a shipped row serves it serves with this too. */
    int32_t deterministic;
} kiln_fused_moe;
#define KILN_FUSED_MOE_INIT \
    { sizeof(kiln_fused_moe), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* As kiln_linear_supports and kiln_linear_prepare. */
KILN_API KILN_NODISCARD kiln_status kiln_fused_moe_supports(kiln_service* service, int32_t device,
                                                            const kiln_fused_moe* problem,
                                                            kiln_error** error);
KILN_API KILN_NODISCARD kiln_status kiln_fused_moe_prepare(kiln_service* service, int32_t device,
                                                           const kiln_fused_moe* problem,
                                                           const kiln_prepare_options* options,
                                                           kiln_plan** plan, kiln_error** error);

/* The arrays of one launch, all in memory that the device can reach. */
typedef struct kiln_fused_moe_args {
    const void* x;   /* bf16 [M, H] */
    int64_t ldx;     /* elements between rows of x: at least H, a multiple of 8, below 2^24 */
    const void* w13; /* [E, 2*I, H] */
    const void* w13_scale;
    const void* w2; /* [E, H, I] */
    const void* w2_scale;
    const int32_t* ids;   /* [M, S] */
    const float* weights; /* [M, S] */
    void* out;            /* bf16 [M, H] */
    /* Set to 1 when an id is neither -1 nor in [0, E), else left as it is; NULL where nobody looks. */
    int32_t* invalid_id;
    void* workspace; /* kiln_plan_workspace_bytes(plan, M), readied by kiln_plan_init_workspace */
} kiln_fused_moe_args;

/* Enqueues the operator for M tokens on `stream`; as kiln_linear_launch. */
KILN_API kiln_status kiln_fused_moe_launch(const kiln_plan* plan, void* stream, int64_t m,
                                           const kiln_fused_moe_args* args);

#ifdef __cplusplus
}
#endif

#endif /* KILN_FUSED_MOE_H_ */
