#include "kiln/formats.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/api/handles.hpp"
#include "runtime/formats/mx.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"

namespace {

using kiln::api::guarded;
using kiln::formats::RowOrder;

// What is wrong with a call: expected and found. Nothing is wrong when there is none.
using Complaint = std::optional<std::string>;

struct Array {
    std::string_view name;
    const void* data;
    std::int64_t bytes;  // at least 1
    std::uintptr_t alignment = 1;
};

Complaint check_size(std::string_view name, std::int64_t value, std::int64_t multiple) {
    if (value >= 0 && value % multiple == 0) {
        return std::nullopt;
    }
    return multiple == 1
               ? fmt::format("expected {} at or above 0, found {}", name, value)
               : fmt::format("expected {} a multiple of {} at or above 0, found {}", name, multiple, value);
}

Complaint check_array(const Array& array) {
    const auto address = reinterpret_cast<std::uintptr_t>(array.data);
    if (array.data == nullptr) {
        return fmt::format("expected an array for {}, found NULL", array.name);
    }
    if (address % array.alignment != 0) {
        return fmt::format("expected {} aligned to {} bytes, found it {} beyond", array.name, array.alignment,
                           address % array.alignment);
    }
    return std::nullopt;
}

bool overlap(const Array& a, const Array& b) {
    const auto first = reinterpret_cast<std::uintptr_t>(a.data);
    const auto second = reinterpret_cast<std::uintptr_t>(b.data);
    return first < second + static_cast<std::uintptr_t>(b.bytes) &&
           second < first + static_cast<std::uintptr_t>(a.bytes);
}

Complaint check_arrays(std::initializer_list<Array> arrays) {
    for (const Array& array : arrays) {
        if (Complaint complaint = check_array(array)) {
            return complaint;
        }
    }
    for (const Array* a = arrays.begin(); a != arrays.end(); ++a) {
        for (const Array* b = a + 1; b != arrays.end(); ++b) {
            if (overlap(*a, *b)) {
                return fmt::format("expected {} and {} apart, found that they overlap", a->name, b->name);
            }
        }
    }
    return std::nullopt;
}

// A product of sizes; none when it does not fit.
std::optional<std::int64_t> product(std::initializer_list<std::int64_t> factors) {
    std::int64_t result = 1;
    for (const std::int64_t factor : factors) {
        if (__builtin_mul_overflow(result, factor, &result)) {
            return std::nullopt;
        }
    }
    return result;
}

constexpr const char* kTooLarge = "expected sizes whose product is below 2^63, found larger ones";

kiln_status refuse(const Complaint& complaint, kiln_error** error) {
    return kiln::api::report(kiln::ErrorCode::invalid_argument, kiln::Stage::configure, *complaint, error);
}

std::span<const std::uint8_t> bytes_of(const Array& array) {
    return {static_cast<const std::uint8_t*>(array.data), static_cast<std::size_t>(array.bytes)};
}
std::span<std::uint8_t> writable_bytes_of(void* data, std::int64_t bytes) {
    return {static_cast<std::uint8_t*>(data), static_cast<std::size_t>(bytes)};
}

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

Complaint check_order(std::int32_t order) {
    if (order == KILN_ROWS_AS_THEY_ARE || order == KILN_ROWS_GATE_UP_INTERLEAVED) {
        return std::nullopt;
    }
    return fmt::format("expected a value of kiln_row_order, found {}", order);
}

// Requires rows that are not 0, a multiple of 32 where gate and up are interleaved.
RowOrder to_order(std::int32_t order, std::int64_t rows) {
    return order == KILN_ROWS_AS_THEY_ARE ? RowOrder::plain() : RowOrder::gate_up(as_size(rows / 2));
}

// What both layouts have in common. `convert(all rows, order, input, output)` runs once everything is in
// order.
struct Shuffle {
    std::int64_t experts, rows, columns;
    std::int32_t order;
    std::int64_t input_bytes, output_bytes;
    std::string_view input_name, output_name;
};
template <class Convert>
kiln_status run_shuffle(const Shuffle& shuffle, const void* input, void* output, kiln_error** error,
                        const Convert& convert) {
    if (shuffle.input_bytes == 0) {
        return KILN_OK;
    }
    const Array from{shuffle.input_name, input, shuffle.input_bytes};
    if (const Complaint complaint =
            check_arrays({from, {shuffle.output_name, output, shuffle.output_bytes}})) {
        return refuse(complaint, error);
    }
    convert(bytes_of(from), as_size(shuffle.experts * shuffle.rows), as_size(shuffle.columns),
            to_order(shuffle.order, shuffle.rows), writable_bytes_of(output, shuffle.output_bytes));
    return KILN_OK;
}

Complaint check_weights(std::int64_t experts, std::int64_t rows, std::int64_t row_bytes, std::int32_t order) {
    const bool interleaved = order == KILN_ROWS_GATE_UP_INTERLEAVED;
    Complaint complaint = check_order(order);
    if (!complaint) {
        complaint = check_size("experts", experts, 1);
    }
    if (!complaint) {
        complaint = check_size("rows", rows, interleaved ? 32 : 16);
    }
    if (!complaint) {
        complaint = check_size("row_bytes", row_bytes, interleaved ? 64 : 32);
    }
    if (!complaint && !product({experts, rows, row_bytes})) {
        complaint = kTooLarge;
    }
    return complaint;
}

Complaint check_scales(std::int64_t experts, std::int64_t rows, std::int64_t columns, std::int32_t order) {
    Complaint complaint = check_order(order);
    if (!complaint) {
        complaint = check_size("experts", experts, 1);
    }
    if (!complaint) {
        complaint = check_size("rows", rows, order == KILN_ROWS_GATE_UP_INTERLEAVED ? 32 : 1);
    }
    if (!complaint) {
        complaint = check_size("columns", columns, 1);
    }
    const bool empty = experts == 0 || rows == 0 || columns == 0;
    if (!complaint && !empty && kiln_shuffled_scales_bytes(experts, rows, columns) == 0) {
        complaint = kTooLarge;
    }
    return complaint;
}

// The input of a quantiser and its sizes, in groups of `group` elements.
Complaint check_rows(std::int64_t rows, std::int64_t k, std::int64_t ldx, std::int64_t group) {
    Complaint complaint = check_size("rows", rows, 1);
    if (!complaint) {
        complaint = check_size("k", k, group);
    }
    if (!complaint && ldx < k) {
        complaint = fmt::format("expected ldx at or above k = {}, found {}", k, ldx);
    }
    if (!complaint && !product({rows, ldx, 4})) {
        complaint = kTooLarge;
    }
    return complaint;
}

Array input_rows(const void* x, std::int64_t rows, std::int64_t k, std::int64_t ldx) {
    return {"x", x, ((rows - 1) * ldx + k) * 2, alignof(std::uint16_t)};
}

std::span<const std::uint16_t> row_of(const void* x, std::int64_t row, std::int64_t k, std::int64_t ldx) {
    return {static_cast<const std::uint16_t*>(x) + row * ldx, as_size(k)};
}

}  // namespace

extern "C" {

kiln_status kiln_shuffle_weights(const void* row_major, int64_t experts, int64_t rows, int64_t row_bytes,
                                 int32_t order, void* shuffled, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const Complaint complaint = check_weights(experts, rows, row_bytes, order)) {
            return refuse(complaint, error);
        }
        const std::int64_t bytes = experts * rows * row_bytes;
        return run_shuffle({experts, rows, row_bytes, order, bytes, bytes, "row_major", "shuffled"},
                           row_major, shuffled, error, kiln::formats::shuffle_weights);
    });
}

kiln_status kiln_unshuffle_weights(const void* shuffled, int64_t experts, int64_t rows, int64_t row_bytes,
                                   int32_t order, void* row_major, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const Complaint complaint = check_weights(experts, rows, row_bytes, order)) {
            return refuse(complaint, error);
        }
        const std::int64_t bytes = experts * rows * row_bytes;
        return run_shuffle({experts, rows, row_bytes, order, bytes, bytes, "shuffled", "row_major"}, shuffled,
                           row_major, error, kiln::formats::unshuffle_weights);
    });
}

kiln_status kiln_shuffle_scales(const void* row_major, int64_t experts, int64_t rows, int64_t columns,
                                int32_t order, void* shuffled, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const Complaint complaint = check_scales(experts, rows, columns, order)) {
            return refuse(complaint, error);
        }
        return run_shuffle({experts, rows, columns, order, experts * rows * columns,
                            kiln_shuffled_scales_bytes(experts, rows, columns), "row_major", "shuffled"},
                           row_major, shuffled, error, kiln::formats::shuffle_scales);
    });
}

kiln_status kiln_unshuffle_scales(const void* shuffled, int64_t experts, int64_t rows, int64_t columns,
                                  int32_t order, void* row_major, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const Complaint complaint = check_scales(experts, rows, columns, order)) {
            return refuse(complaint, error);
        }
        return run_shuffle({experts, rows, columns, order, kiln_shuffled_scales_bytes(experts, rows, columns),
                            experts * rows * columns, "shuffled", "row_major"},
                           shuffled, row_major, error, kiln::formats::unshuffle_scales);
    });
}

int64_t kiln_shuffled_scales_bytes(int64_t experts, int64_t rows, int64_t columns) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - 256;
    if (experts <= 0 || rows <= 0 || columns <= 0 || columns > kMost) {
        return 0;
    }
    const auto all_rows = product({experts, rows});
    if (!all_rows || *all_rows > kMost || !product({(*all_rows + 255) / 256 * 256, (columns + 7) / 8 * 8})) {
        return 0;
    }
    return static_cast<std::int64_t>(kiln::formats::l3_bytes(as_size(*all_rows), as_size(columns)));
}

kiln_status kiln_quantise_1x128(const void* x, int64_t rows, int64_t k, int64_t ldx, void* q, float* scales,
                                kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        constexpr std::int64_t kGroup = kiln::formats::kFp8Group;
        if (const Complaint complaint = check_rows(rows, k, ldx, kGroup)) {
            return refuse(complaint, error);
        }
        if (rows == 0 || k == 0) {
            return KILN_OK;
        }
        const std::int64_t groups = k / kGroup;
        if (const Complaint complaint =
                check_arrays({input_rows(x, rows, k, ldx),
                              {"q", q, rows * k},
                              {"scales", scales, rows * groups * 4, alignof(float)}})) {
            return refuse(complaint, error);
        }
        const std::span<std::uint8_t> codes = writable_bytes_of(q, rows * k);
        for (std::int64_t row = 0; row < rows; ++row) {
            kiln::formats::quantise_1x128(row_of(x, row, k, ldx), codes.subspan(as_size(row * k), as_size(k)),
                                          {scales + row * groups, as_size(groups)});
        }
        return KILN_OK;
    });
}

kiln_status kiln_quantise_1x32(const void* x, int64_t rows, int64_t k, int64_t ldx, int32_t type,
                               int32_t floor, void* q, void* scales, kiln_error** error) {
    using kiln::formats::AmaxFloor;
    using kiln::formats::MxType;
    return guarded(error, [&]() -> kiln_status {
        constexpr std::int64_t kGroup = kiln::formats::kMxGroup;
        Complaint complaint = check_rows(rows, k, ldx, kGroup);
        if (type != KILN_DTYPE_E2M1 && type != KILN_DTYPE_E4M3FN) {
            complaint = fmt::format("expected KILN_DTYPE_E2M1 or KILN_DTYPE_E4M3FN, found {}", type);
        }
        if (floor != KILN_AMAX_FLOOR_1E_10 && floor != KILN_AMAX_FLOOR_NONE) {
            complaint = fmt::format("expected a value of kiln_amax_floor, found {}", floor);
        }
        if (complaint) {
            return refuse(complaint, error);
        }
        if (rows == 0 || k == 0) {
            return KILN_OK;
        }
        const MxType to = type == KILN_DTYPE_E2M1 ? MxType::e2m1 : MxType::e4m3fn;
        const auto row_bytes = static_cast<std::int64_t>(kiln::formats::mx_bytes(to, as_size(k)));
        const std::int64_t groups = k / kGroup;
        complaint = check_arrays(
            {input_rows(x, rows, k, ldx), {"q", q, rows * row_bytes}, {"scales", scales, rows * groups}});
        if (complaint) {
            return refuse(complaint, error);
        }
        const std::span<std::uint8_t> codes = writable_bytes_of(q, rows * row_bytes);
        const std::span<std::uint8_t> bytes = writable_bytes_of(scales, rows * groups);
        for (std::int64_t row = 0; row < rows; ++row) {
            kiln::formats::quantise_1x32(
                row_of(x, row, k, ldx), to,
                floor == KILN_AMAX_FLOOR_NONE ? AmaxFloor::none : AmaxFloor::at_1e_10,
                codes.subspan(as_size(row * row_bytes), as_size(row_bytes)),
                bytes.subspan(as_size(row * groups), as_size(groups)));
        }
        return KILN_OK;
    });
}

}  // extern "C"
