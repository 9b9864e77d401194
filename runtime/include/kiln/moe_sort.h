/* kiln, the operator `moe_sort`; part of kiln.h.
 *
 * Groups the pairs (token, slot) that a router chose by expert, for a matrix product that works on blocks of
 * block_m rows of one expert each. Pair p is slot p % slots of token p / slots; its expert is ids[p].
 *
 *   Rows are ordered by expert, and those of one expert by pair; each expert that has a pair begins a block,
 *   and its last block is filled up with padding rows. Experts without a pair have no block.
 *
 *     sorted_ids         (slot << 24) | token for a pair, (slots << 24) | M for padding
 *     sorted_weights     the pair's weight, 0 for padding
 *     sorted_expert_ids  the expert of each block, ascending
 *     num_valid[2]       rows (blocks * block_m), and M
 *
 *   A pair whose id is outside 0..experts-1, such as the -1 of padding tokens, has no row. Nothing is written
 *   past the last row or the last block.
 *
 * Where hidden is not 0, moe_buf becomes zero: the sums of a product that adds up slots begin there.
 *
 * With the quantiser (quant = mxfp8) the tokens are also quantised, in groups of 32 consecutive elements:
 *
 *     amax  = max(|x|, 1e-10)
 *     w     = amax * float(1/448)
 *     scale = exponent(w) + (mantissa(w) != 0 ? 1 : 0)      the fields of the float32; an e8m0 byte
 *     q     = e4m3fn(x / 2^(scale - 127)), to nearest even
 *
 *   q is written once for a token. Its scales are written for each row that has the token, in layout L3 with
 *   C = hidden / 32: the byte of (row r, group c) at
 *       (r/32)*32*C + (c/8)*256 + (c%4)*64 + (r%16)*4 + ((c%8)/4)*2 + (r%32)/16
 *   Bytes of padding rows are left as they are. A group with an infinity or a NaN has scale 255 (NaN), and
 *   bytes that mean nothing.
 *
 *   ids, weights    int32, float32  [M, slots], contiguous; aligned to 4 bytes
 *   x               bf16            [M, hidden], rows ldx elements apart; aligned to 16 bytes; quantiser only
 *   sorted_ids, sorted_weights      int32, float32, kiln_moe_sort_rows() of them; aligned to 16 bytes
 *   sorted_expert_ids, num_valid    int32, kiln_moe_sort_blocks() of them, and 2; aligned to 4 bytes
 *   moe_buf         bf16            [M, hidden], contiguous; aligned to 16 bytes; where hidden is not 0
 *   q               e4m3fn          [M, hidden], contiguous; aligned to 16 bytes; quantiser only
 *   q_scale         e8m0            kiln_moe_sort_scale_bytes() bytes; aligned to 4 bytes; quantiser only
 *
 * Experts 1 to 1024, slots 1 to 16, block_m 16, 32, 64 or 128, hidden a multiple of 8 up to 262144, with the
 * quantiser one of 2048; M up to 2^24 - 1, for which an entry has room. Every such problem and M is served by
 * the shipped tables. Two launches give the same bits, whatever the template.
 */
#ifndef KILN_MOE_SORT_H_
#define KILN_MOE_SORT_H_

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_moe_sort_quant {
    KILN_MOE_SORT_QUANT_NONE = 0,
    KILN_MOE_SORT_QUANT_MXFP8 = 1 /* e4m3fn in groups of 32 with e8m0 scales */
} kiln_moe_sort_quant;

/* All that is known when a model is loaded. Zero in every member from x_type on is what kiln serves. */
typedef struct kiln_moe_sort {
    size_t struct_size;
    int64_t experts;
    int64_t slots;            /* pairs of a token */
    int64_t block_m;          /* rows of a block */
    int64_t hidden;           /* 0: no moe_buf */
    int32_t quant;            /* kiln_moe_sort_quant */
    int32_t x_type;           /* kiln_dtype; bf16 is served */
    int32_t expert_mask;      /* 1: some experts are another device's and masked out; declined */
    int32_t num_local_tokens; /* 1: the number of tokens is in device memory; declined */
    int64_t x_inner_stride;   /* elements between neighbours in a row; 0 and 1: adjacent, as is served */
    int64_t reserved;         /* zero */
} kiln_moe_sort;
#define KILN_MOE_SORT_INIT \
    { sizeof(kiln_moe_sort), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Sizes of the arrays for M tokens: entries of sorted_ids and of sorted_weights, entries of
 * sorted_expert_ids, bytes of q_scale (0 without the quantiser). What the worst ids can need: rows are
 * M*slots + experts*block_m - min(slots, experts). Minus KILN_ERROR_INVALID_ARGUMENT for a problem that can
 * not be read or whose dimensions are not served, and for M outside 0..2^24 - 1. */
KILN_API int64_t kiln_moe_sort_rows(const kiln_moe_sort* problem, int64_t m);
KILN_API int64_t kiln_moe_sort_blocks(const kiln_moe_sort* problem, int64_t m);
KILN_API int64_t kiln_moe_sort_scale_bytes(const kiln_moe_sort* problem, int64_t m);

/* As kiln_linear_supports. */
KILN_API KILN_NODISCARD kiln_status kiln_moe_sort_supports(kiln_service* service, int32_t device,
                                                           const kiln_moe_sort* problem, kiln_error** error);

/* As kiln_linear_prepare. */
KILN_API KILN_NODISCARD kiln_status kiln_moe_sort_prepare(kiln_service* service, int32_t device,
                                                          const kiln_moe_sort* problem,
                                                          const kiln_prepare_options* options,
                                                          kiln_plan** plan, kiln_error** error);

/* The arrays of one launch, all in memory that the device can reach. NULL where the problem has no use for
 * one. */
typedef struct kiln_moe_sort_args {
    const int32_t* ids;         /* [M, slots] */
    const float* weights;       /* [M, slots] */
    const void* x;              /* bf16 [M, hidden]; quantiser only */
    int64_t ldx;                /* elements between rows of x: at least hidden, a multiple of 8, below 2^25 */
    int32_t* sorted_ids;        /* kiln_moe_sort_rows() */
    float* sorted_weights;      /* kiln_moe_sort_rows() */
    int32_t* sorted_expert_ids; /* kiln_moe_sort_blocks() */
    int32_t* num_valid;         /* 2 */
    void* moe_buf;              /* bf16 [M, hidden]; where hidden is not 0 */
    void* q;                    /* e4m3fn [M, hidden]; quantiser only */
    void* q_scale;              /* kiln_moe_sort_scale_bytes(); quantiser only */
    void* workspace;            /* kiln_plan_workspace_bytes(), readied by kiln_plan_init_workspace */
} kiln_moe_sort_args;

/* Enqueues the sort of M tokens on `stream` and returns; as kiln_linear_launch. */
KILN_API kiln_status kiln_moe_sort_launch(const kiln_plan* plan, void* stream, int64_t m,
                                          const kiln_moe_sort_args* args);

#ifdef __cplusplus
}
#endif

#endif /* KILN_MOE_SORT_H_ */
