#include "runtime/operators/router_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/formats/bf16.hpp"

namespace kiln::operators {

namespace {

using formats::Bf16Bits;
using Row = std::span<const Bf16Bits>;

double dot(Row a, Row b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += static_cast<double>(formats::bf16_to_float(a[i])) *
               static_cast<double>(formats::bf16_to_float(b[i]));
    }
    return sum;
}

Row row_of(const std::vector<Bf16Bits>& rows, std::size_t row, std::int64_t stride, std::int64_t length) {
    return Row(rows).subspan(row * static_cast<std::size_t>(stride), static_cast<std::size_t>(length));
}

// Descending; the lower number of equal ones first, NaN after everything.
bool comes_before(const std::vector<double>& logits, std::size_t a, std::size_t b) {
    const bool is_nan = std::isnan(logits[a]);
    if (is_nan != std::isnan(logits[b])) {
        return !is_nan;
    }
    return logits[a] > logits[b] || (!(logits[b] > logits[a]) && a < b);
}

void choose(const RouterArrays& arrays, std::size_t token, std::int32_t* ids, double* weights) {
    const Row x = row_of(arrays.x, token, arrays.ldx, arrays.hidden);
    const auto experts = static_cast<std::size_t>(arrays.experts);
    std::vector<double> logits(experts);
    for (std::size_t expert = 0; expert < experts; ++expert) {
        const double logit = dot(x, row_of(arrays.gate, expert, arrays.hidden, arrays.hidden));
        logits[expert] = static_cast<double>(formats::bf16_to_float(formats::double_to_bf16(logit)));
    }
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return comes_before(logits, a, b); });

    const double largest = logits[order.front()];
    const auto power = [&](std::size_t expert) { return std::exp(logits[expert] - largest); };
    double sum = 0;
    for (std::size_t expert = 0; expert < experts; ++expert) {
        sum += power(expert);
    }
    const auto top_k = static_cast<std::size_t>(arrays.top_k);
    double chosen_sum = 0;
    for (std::size_t i = 0; i < top_k; ++i) {
        chosen_sum += power(order[i]) / sum;
    }
    for (std::size_t i = 0; i < top_k; ++i) {
        ids[i] = static_cast<std::int32_t>(order[i]);
        weights[i] = power(order[i]) / sum / (chosen_sum <= 0 ? 1 : chosen_sum);
    }
    if (arrays.shared != 0) {
        ids[top_k] = static_cast<std::int32_t>(experts);
        weights[top_k] = static_cast<double>(arrays.scale) / (1 + std::exp(-dot(x, arrays.shared_gate)));
    }
}

double difference(double found, double wanted) {
    if (std::isnan(found) || std::isnan(wanted)) {
        return std::isnan(found) && std::isnan(wanted) ? 0 : std::numeric_limits<double>::infinity();
    }
    return std::fabs(found - wanted) / std::max(1.0, std::fabs(wanted));
}

}  // namespace

RouterResults router_reference(const RouterArrays& arrays) {
    const auto columns = static_cast<std::size_t>(arrays.columns());
    const auto m = static_cast<std::size_t>(arrays.m);
    RouterResults results{std::vector<std::int32_t>(m * columns), std::vector<double>(m * columns)};
    for (std::size_t token = 0; token < m; ++token) {
        choose(arrays, token, &results.ids[token * columns], &results.weights[token * columns]);
    }
    return results;
}

RouterComparison compare_router(std::span<const std::int32_t> ids, std::span<const float> weights,
                                const RouterResults& reference, std::int64_t m, std::int64_t columns) {
    RouterComparison result;
    result.results = static_cast<std::size_t>(m * columns);
    for (std::size_t i = 0; i < result.results; ++i) {
        const double gap = difference(static_cast<double>(weights[i]), reference.weights[i]);
        result.error = std::max(result.error, gap);
        result.too_far += gap <= RouterComparison::kBound ? 0 : 1;
        result.wrong_ids += ids[i] == reference.ids[i] ? 0 : 1;
    }
    if (result.wrong_ids > 0) {
        result.error = std::numeric_limits<double>::infinity();
    }
    return result;
}

}  // namespace kiln::operators
