// kiln for C++20: number formats and memory layouts. Header-only over formats.h, where the formulas stand.
//
//     std::vector<std::uint8_t> shuffled(experts * rows * row_bytes);
//     auto status = kiln::shuffle_weights(w.data(), {experts, rows, row_bytes},
//                                         kiln::RowOrder::as_they_are, shuffled.data(), &why);
//
// Every function returns how it ended, and puts the message into `why` where that is given.
#ifndef KILN_FORMATS_HPP_
#define KILN_FORMATS_HPP_

#include <cstdint>

#include "kiln/formats.h"
#include "kiln/kiln.hpp"

namespace kiln {
inline namespace KILN_INTERFACE {

enum class RowOrder : std::int32_t {
    as_they_are = KILN_ROWS_AS_THEY_ARE,
    gate_up_interleaved = KILN_ROWS_GATE_UP_INTERLEAVED,
};

enum class AmaxFloor : std::int32_t {
    at_1e_10 = KILN_AMAX_FLOOR_1E_10,
    none = KILN_AMAX_FLOOR_NONE,
};

// Bytes of weights or scales: [experts, rows, columns].
struct ByteMatrix {
    std::int64_t experts = 1;
    std::int64_t rows = 0;
    std::int64_t columns = 0;  // bytes of a row of weights; 32-groups of a row's scales
};

// bf16 to be quantised: [rows, k], rows ldx elements apart.
struct Bf16Matrix {
    const void* x = nullptr;
    std::int64_t rows = 0;
    std::int64_t k = 0;
    std::int64_t ldx = 0;
};

namespace detail {
// Runs a C function that ends with `kiln_error** error`.
template <class Call>
Status call_with_error(Failure* why, const Call& call) {
    kiln_error* error = nullptr;
    const kiln_status status = call(why != nullptr ? &error : nullptr);
    if (why != nullptr && status != KILN_OK) {
        *why = Failure::take(status, error);
    }
    return Status(status);
}
}  // namespace detail

inline Status shuffle_weights(const void* row_major, const ByteMatrix& size, RowOrder order, void* shuffled,
                              Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_shuffle_weights(row_major, size.experts, size.rows, size.columns,
                                    static_cast<std::int32_t>(order), shuffled, error);
    });
}
inline Status unshuffle_weights(const void* shuffled, const ByteMatrix& size, RowOrder order, void* row_major,
                                Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_unshuffle_weights(shuffled, size.experts, size.rows, size.columns,
                                      static_cast<std::int32_t>(order), row_major, error);
    });
}

// Bytes of preshuffled scales, padding included.
[[nodiscard]] inline std::int64_t shuffled_scales_bytes(const ByteMatrix& size) {
    return kiln_shuffled_scales_bytes(size.experts, size.rows, size.columns);
}
inline Status shuffle_scales(const void* row_major, const ByteMatrix& size, RowOrder order, void* shuffled,
                             Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_shuffle_scales(row_major, size.experts, size.rows, size.columns,
                                   static_cast<std::int32_t>(order), shuffled, error);
    });
}
inline Status unshuffle_scales(const void* shuffled, const ByteMatrix& size, RowOrder order, void* row_major,
                               Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_unshuffle_scales(shuffled, size.experts, size.rows, size.columns,
                                     static_cast<std::int32_t>(order), row_major, error);
    });
}

// q e4m3fn [rows, k], scales [rows, k / 128].
inline Status quantise_1x128(const Bf16Matrix& x, void* q, float* scales, Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_quantise_1x128(x.x, x.rows, x.k, x.ldx, q, scales, error);
    });
}
// `type` is Dtype::e2m1, with q [rows, k / 2], or Dtype::e4m3fn, with q [rows, k]; scales e8m0 [rows, k /
// 32].
inline Status quantise_1x32(const Bf16Matrix& x, Dtype type, AmaxFloor floor, void* q, void* scales,
                            Failure* why = nullptr) {
    return detail::call_with_error(why, [&](kiln_error** error) {
        return kiln_quantise_1x32(x.x, x.rows, x.k, x.ldx, static_cast<std::int32_t>(type),
                                  static_cast<std::int32_t>(floor), q, scales, error);
    });
}

}  // namespace KILN_INTERFACE
}  // namespace kiln

#endif  // KILN_FORMATS_HPP_
