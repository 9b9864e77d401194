/* kiln, the operator `router`; part of kiln.h.
 *
 * The gate of a mixture of experts: logits, softmax, the best experts and the shared one, in one launch.
 *
 *     logit[m,e] = bf16( sum over h of  x[m,h] * gate[e,h] )
 *     the k experts of largest logit, descending: of equal ones the lower id first, -0 equal to +0, NaN last
 *     p[m,e]     = exp(logit[m,e] - max over e) / sum over all e of exp(logit[m,e] - max over e)
 *     weight     = p of the chosen, each divided by the sum of all chosen (by 1 where that is not above 0)
 *     behind them, with a shared expert:  id E, weight = scale / (1 + exp(-s)),
 *     s = sum over h of  x[m,h] * shared_gate[h]
 *
 *   x            bf16    [M, H], rows ldx elements apart, elements of a row adjacent; aligned to 16 bytes
 *   gate         bf16    [E, H], contiguous; aligned to 16 bytes
 *   shared_gate  bf16    [H], aligned to 16 bytes; with a shared expert only
 *   ids          int32   [M, k + shared], contiguous; aligned to 4 bytes
 *   weights      float32 [M, k + shared], contiguous; aligned to 4 bytes
 *
 * H a multiple of 8, E up to 1024, k up to 16 and not above E, no or one shared expert. Products are exact,
 * sums float32; denormal elements of x and the gates count as zero. The shared logit is not rounded to bf16.
 * Where a logit is NaN or +infinity, or all are -infinity, the weights of the chosen are NaN, as that
 * arithmetic has it; the ids are chosen all the same.
 *
 * A launch needs a workspace (kiln_plan_workspace_bytes): the work-groups hand their logits to the last of
 * them. ids and weights are complete when the launch is, so what an engine records of its routing it can read
 * there.
 */
#ifndef KILN_ROUTER_H_
#define KILN_ROUTER_H_

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a logit before experts are compared. The values never change. */
typedef enum kiln_scoring {
    KILN_SCORING_DEFAULT = 0,
    KILN_SCORING_SOFTMAX = 1,
    KILN_SCORING_SIGMOID = 2
} kiln_scoring;

/* All that is known when a model is loaded. What KILN_ROUTER_INIT makes of every member but the first three
 * dimensions is what kiln serves; and no shared expert. */
typedef struct kiln_router {
    size_t struct_size;
    int64_t hidden;          /* H */
    int64_t experts;         /* E, the routed ones */
    int64_t top_k;           /* k */
    int32_t shared;          /* shared experts that get a column: 1, or 0; more are declined */
    int32_t x_type;          /* kiln_dtype; bf16 is served */
    int32_t gate_type;       /* kiln_dtype, of both gates; bf16 is served */
    int32_t weights_type;    /* kiln_dtype; float32 is served */
    int32_t scoring;         /* kiln_scoring; softmax is served */
    int32_t score_bias;      /* 1: a bias corrects the scores that experts are chosen by; declined */
    int32_t expert_groups;   /* groups that the choice is restricted to; 0 and 1: none, as is served */
    int32_t no_renormalise;  /* 1: p is not divided by the sum of the chosen; declined */
    int32_t expert_parallel; /* ranks that share the experts out; 0 and 1: none, as is served */
    int32_t expert_map;      /* 1: ids are mapped to where an expert lies (EPLB); declined */
    int32_t simulated;       /* 1: routing is simulated, not computed; declined */
    int32_t gate_strided;    /* 1: a gate is not contiguous; declined */
    int64_t x_inner_stride;  /* elements between neighbours in a row of x; 0 and 1: adjacent, as is served */
    int64_t reserved;        /* zero */
} kiln_router;
#define KILN_ROUTER_INIT \
    { sizeof(kiln_router), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* As kiln_linear_supports. */
KILN_API KILN_NODISCARD kiln_status kiln_router_supports(kiln_service* service, int32_t device,
                                                         const kiln_router* problem, kiln_error** error);

/* As kiln_linear_prepare. */
KILN_API KILN_NODISCARD kiln_status kiln_router_prepare(kiln_service* service, int32_t device,
                                                        const kiln_router* problem,
                                                        const kiln_prepare_options* options, kiln_plan** plan,
                                                        kiln_error** error);

/* The arrays of one launch, all in memory that the device can reach. */
typedef struct kiln_router_args {
    const void* x;           /* bf16 [M, H] */
    int64_t ldx;             /* elements between rows of x: at least H, a multiple of 8, below 2^25 */
    const void* gate;        /* bf16 [E, H] */
    const void* shared_gate; /* bf16 [H]; not looked at without a shared expert */
    int32_t* ids;            /* [M, k + shared] */
    float* weights;          /* [M, k + shared] */
    float scale;             /* of the shared expert's weight */
    void* workspace;         /* readied by kiln_plan_init_workspace; aligned to 256 bytes */
} kiln_router_args;

/* Enqueues the routing of M tokens on `stream`; all else as kiln_linear_launch. Launches that share a
 * workspace must follow one another: on one stream they do. */
KILN_API kiln_status kiln_router_launch(const kiln_plan* plan, void* stream, int64_t m,
                                        const kiln_router_args* args);

#ifdef __cplusplus
}
#endif

#endif /* KILN_ROUTER_H_ */
