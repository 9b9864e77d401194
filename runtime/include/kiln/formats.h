/* kiln: number formats and memory layouts, so that an engine can prepare what the operators take.
 *
 * Host functions over host memory; none needs a service or a device, none is on the path of a launch. All are
 * pure: they read their inputs, write their outputs, and may be called from any thread at any time. `error`
 * is as in kiln.h; what can go wrong is KILN_ERROR_INVALID_ARGUMENT alone (a size that the layout does not
 * allow, NULL, arrays that overlap or are misaligned), found before anything is written. A size of 0 does
 * nothing and looks at no array.
 *
 * Below, KB is the bytes of a row: K for fp8, K/2 for fp4; `/` on integers truncates. Experts lie one after
 * the other; a matrix without experts is one expert.
 */
#ifndef KILN_FORMATS_H_
#define KILN_FORMATS_H_

#include "kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number formats, the OCP's but for bf16:
 *
 *   e4m3fn: fp8 of sign, 4 exponent bits (bias 7), 3 mantissa bits; maximum 448, no infinity, 0x7f and 0xff
 *   are NaN.
 *
 *   e2m1: fp4, codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign. Two to a byte, the even k in the
 *   low nibble.
 *
 *   e8m0: a scale, 2^(b-127); 255 is NaN.
 *
 *   bf16: the upper half of a float32.
 *
 * Whatever is made here is rounded to nearest even. */

/* ---- layouts --------------------------------------------------------------------------------- */

/* The order in which a preshuffled layout takes the rows of an expert. The values never change. */
typedef enum kiln_row_order {
    KILN_ROWS_AS_THEY_ARE = 0, /* L1 of weights, L3 of scales */
    /* L2 of weights, L4 of scales: the N = 2*I rows of an expert are gate, then up. Row g*I + m (g = 0 gate,
     * 1 up) goes to row (m>>4)*32 + g*16 + (m&15): tiles of 16 rows alternate. I a multiple of 16. */
    KILN_ROWS_GATE_UP_INTERLEAVED = 1
} kiln_row_order;

/* Weights preshuffled (16, 16): bytes [experts, rows, row_bytes] to the same number of bytes at
 *
 *     off(e, n, kb) = e*N*KB + (n>>4)*16*KB + (kb>>4)*256 + (n&15)*16 + (kb&15)
 *
 * with N = rows, a multiple of 16, and KB = row_bytes, a multiple of 32 (of 64 with gate and up interleaved).
 * unshuffle is the way back. No alignment is asked for. */
KILN_API KILN_NODISCARD kiln_status kiln_shuffle_weights(const void* row_major, int64_t experts, int64_t rows,
                                                         int64_t row_bytes, int32_t order, void* shuffled,
                                                         kiln_error** error);
KILN_API KILN_NODISCARD kiln_status kiln_unshuffle_weights(const void* shuffled, int64_t experts,
                                                           int64_t rows, int64_t row_bytes, int32_t order,
                                                           void* row_major, kiln_error** error);

/* e8m0 scales preshuffled: bytes [experts, rows, columns], one for each row and 32 k, as one matrix of R =
 * experts*rows rows and C = columns columns, with R padded to a multiple of 256 and C to one of 8 (Cp):
 *
 *     off(r, c) = (r/32)*32*Cp + (c/8)*256 + (c%4)*64 + (r%16)*4 + ((c%8)/4)*2 + (r%32)/16
 *
 * What pads is zero. `shuffled` is kiln_shuffled_scales_bytes() large, `row_major` experts*rows*columns. Any
 * sizes; with gate and up interleaved, rows is a multiple of 32. */
KILN_API KILN_NODISCARD kiln_status kiln_shuffle_scales(const void* row_major, int64_t experts, int64_t rows,
                                                        int64_t columns, int32_t order, void* shuffled,
                                                        kiln_error** error);
KILN_API KILN_NODISCARD kiln_status kiln_unshuffle_scales(const void* shuffled, int64_t experts, int64_t rows,
                                                          int64_t columns, int32_t order, void* row_major,
                                                          kiln_error** error);
/* Bytes of preshuffled scales, padding included; 0 when a size is 0, negative or too large. */
KILN_API int64_t kiln_shuffled_scales_bytes(int64_t experts, int64_t rows, int64_t columns);

/* ---- quantisers ------------------------------------------------------------------------------
 *
 * x is bf16 [rows, K], rows ldx elements apart (at least K), aligned to 2 bytes. Results are contiguous. */

/* Groups of 128 along k to e4m3fn:
 *
 *     amax  = max(|x|, 1e-10) over the group
 *     s     = amax * float(1/448)
 *     q     = e4m3fn(x * (1 / s))        a true division
 *
 * in float32. q is [rows, K], scales float32 [rows, K/128], aligned to 4 bytes; K a multiple of 128. A group
 * with an infinity or a NaN in it has no meaningful bytes. */
KILN_API KILN_NODISCARD kiln_status kiln_quantise_1x128(const void* x, int64_t rows, int64_t k, int64_t ldx,
                                                        void* q, float* scales, kiln_error** error);

/* What counts as the amax of a group that is zero, or nearly so. The values never change. */
typedef enum kiln_amax_floor {
    KILN_AMAX_FLOOR_1E_10 = 0, /* max(|x|, 1e-10): a zero group has scale 92 in fp4, 85 in fp8 */
    KILN_AMAX_FLOOR_NONE = 1   /* max |x|: a zero group has scale 0; the largest scale is 254 */
} kiln_amax_floor;

/* Groups of 32 along k to an MX format, the scale rounded up so that nothing overflows:
 *
 *     w     = amax * float(1/6) for fp4, amax * float(1/448) for fp8     in float32, denormals kept
 *     scale = exponent(w) + (mantissa(w) != 0 ? 1 : 0)
 *     q     = x / 2^(scale-127)                                          rounded once
 *
 * `type` is KILN_DTYPE_E2M1 or KILN_DTYPE_E4M3FN, `floor` a kiln_amax_floor. q is [rows, K/2] or [rows, K],
 * scales e8m0 [rows, K/32], not shuffled; K a multiple of 32. Examples in fp4: amax 6 has scale 127, 6.03125
 * has 128, 3 has 126, 1 has 125. A group with an infinity or a NaN in it has scale 255, without the floor
 * 254, and bytes that mean nothing. */
KILN_API KILN_NODISCARD kiln_status kiln_quantise_1x32(const void* x, int64_t rows, int64_t k, int64_t ldx,
                                                       int32_t type, int32_t floor, void* q, void* scales,
                                                       kiln_error** error);

#ifdef __cplusplus
}
#endif

#endif /* KILN_FORMATS_H_ */
