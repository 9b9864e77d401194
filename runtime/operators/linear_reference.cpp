#include "runtime/operators/linear_reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "base/cores.hpp"
#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/dot.hpp"

namespace kiln::operators {

namespace {

constexpr std::size_t kBlock = formats::kFp8Group;

std::array<double, 256> decode_table() {
    std::array<double, 256> table{};
    for (std::size_t code = 0; code < table.size(); ++code) {
        table[code] = formats::e4m3_to_float(static_cast<std::uint8_t>(code));
    }
    return table;
}

struct QuantisedRows {
    std::vector<double> q;      // [m, k], decoded
    std::vector<float> scales;  // [m, k / 128]
};

QuantisedRows quantise(const LinearArrays& arrays, const std::array<double, 256>& decode) {
    const auto k = static_cast<std::size_t>(arrays.k);
    const auto m = static_cast<std::size_t>(arrays.m);
    QuantisedRows rows{std::vector<double>(m * k), std::vector<float>(m * k / kBlock)};
    std::vector<std::uint8_t> codes(k);
    for (std::size_t row = 0; row < m; ++row) {
        formats::quantise_1x128({&arrays.x[row * static_cast<std::size_t>(arrays.ldx)], k}, codes,
                                {&rows.scales[row * k / kBlock], k / kBlock});
        std::transform(codes.begin(), codes.end(), &rows.q[row * k],
                       [&](std::uint8_t code) { return decode[code]; });
    }
    return rows;
}

void compute_columns(const LinearArrays& arrays, const QuantisedRows& rows,
                     const std::array<double, 256>& decode, std::size_t first, std::size_t last,
                     std::vector<double>& out) {
    const auto k = static_cast<std::size_t>(arrays.k);
    const auto n = static_cast<std::size_t>(arrays.n);
    const std::size_t blocks = k / kBlock;
    std::vector<double> weights(k);
    for (std::size_t column = first; column < last; ++column) {
        for (std::size_t i = 0; i < k; ++i) {
            weights[i] = decode[arrays.w[formats::l1_offset(column, i, k)]];
        }
        for (std::size_t row = 0; row < static_cast<std::size_t>(arrays.m); ++row) {
            // Products of e4m3 values are multiples of 2^-18 below 2^18: their sums are exact in float64.
            double sum = 0;
            for (std::size_t block = 0; block < blocks; ++block) {
                sum += static_cast<double>(rows.scales[row * blocks + block]) *
                       static_cast<double>(arrays.w_scale[column / 128 * blocks + block]) *
                       dot(std::span<const double>(&rows.q[row * k + block * kBlock], kBlock),
                           std::span<const double>(&weights[block * kBlock], kBlock));
            }
            out[row * n + column] = sum;
        }
    }
}

// bf16 codes on a line: neighbours in value are neighbours in number, and both zeros are 0.
int ordinal(std::uint16_t bits) {
    return (bits & 0x8000) != 0 ? -(bits & 0x7fff) : bits;
}

bool is_nan(std::uint16_t bits) {
    return (bits & 0x7fff) > 0x7f80;
}

}  // namespace

std::vector<double> linear_reference(const LinearArrays& arrays) {
    static const std::array<double, 256> decode = decode_table();
    const QuantisedRows rows = quantise(arrays, decode);
    std::vector<double> out(static_cast<std::size_t>(arrays.m * arrays.n));
    const auto n = static_cast<std::size_t>(arrays.n);
    const std::size_t shares = cores_of_this_process();
    std::vector<std::thread> threads;
    for (std::size_t share = 1; share < shares; ++share) {
        threads.emplace_back([&, share] {
            compute_columns(arrays, rows, decode, n * share / shares, n * (share + 1) / shares, out);
        });
    }
    compute_columns(arrays, rows, decode, 0, n / shares, out);
    for (std::thread& thread : threads) {
        thread.join();
    }
    return out;
}

LinearComparison compare_linear(std::span<const std::uint16_t> out, std::span<const double> reference,
                                std::int64_t m, std::int64_t n) {
    LinearComparison result;
    const auto columns = static_cast<std::size_t>(n);
    for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
        const std::span<const double> wanted = reference.subspan(row * columns, columns);
        double largest = 0;
        for (const double value : wanted) {
            largest = std::max(largest, std::fabs(value));
        }
        for (std::size_t column = 0; column < columns; ++column) {
            const std::uint16_t found = out[row * columns + column];
            const std::uint16_t rounded = formats::double_to_bf16(wanted[column]);
            ++result.outputs;
            if (found == rounded || (is_nan(found) && is_nan(rounded))) {
                continue;
            }
            const int units = std::abs(ordinal(found) - ordinal(rounded));
            const double gap = std::fabs(static_cast<double>(formats::bf16_to_float(found)) -
                                         static_cast<double>(formats::bf16_to_float(rounded)));
            ++result.differing;
            const bool near = units <= 1 || gap <= 1e-6 * largest;
            if (is_nan(found) || is_nan(rounded) || !near) {
                ++result.too_far;
            }
            result.worst_units = std::max(result.worst_units, static_cast<double>(units));
        }
    }
    result.error = result.too_far > 0
                       ? std::numeric_limits<double>::infinity()
                       : static_cast<double>(result.differing) / static_cast<double>(result.outputs);
    return result;
}

}  // namespace kiln::operators
