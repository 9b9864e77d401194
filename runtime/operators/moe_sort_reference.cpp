#include "runtime/operators/moe_sort_reference.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "runtime/formats/mx.hpp"
#include "runtime/formats/scale_layout.hpp"

namespace kiln::operators {

namespace {

using formats::kMxGroup;

std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

template <class T>
T filled(std::uint8_t filler) {
    T value;
    std::memset(&value, filler, sizeof(value));
    return value;
}

// Rows of the pairs, in the order of the pairs; -1 for one that is left out.
std::vector<std::int64_t> sort_pairs(const MoeSortArrays& arrays, MoeSortResult& result) {
    const MoeSortProblem& problem = arrays.problem;
    std::vector<std::vector<std::size_t>> pairs_of(size(problem.experts));
    for (std::size_t pair = 0; pair < arrays.ids.size(); ++pair) {
        const std::int32_t id = arrays.ids[pair];
        if (id >= 0 && id < problem.experts) {
            pairs_of[static_cast<std::size_t>(id)].push_back(pair);
        }
    }
    std::vector<std::int64_t> row_of(arrays.ids.size(), -1);
    std::int64_t row = 0;
    for (std::size_t expert = 0; expert < pairs_of.size(); ++expert) {
        for (const std::size_t pair : pairs_of[expert]) {
            const std::size_t slot = pair % size(problem.slots);
            const std::size_t token = pair / size(problem.slots);
            if (row % problem.block_m == 0) {
                result.sorted_expert_ids[size(row / problem.block_m)] = static_cast<std::int32_t>(expert);
            }
            result.sorted_ids[size(row)] = static_cast<std::int32_t>(slot << 24 | token);
            result.sorted_weights[size(row)] = arrays.weights[pair];
            row_of[pair] = row++;
        }
        for (; row % problem.block_m != 0; ++row) {
            result.sorted_ids[size(row)] = static_cast<std::int32_t>(problem.slots << 24 | arrays.m);
            result.sorted_weights[size(row)] = 0.0f;
        }
    }
    result.num_valid = {static_cast<std::int32_t>(row), static_cast<std::int32_t>(arrays.m)};
    return row_of;
}

void quantise(const MoeSortArrays& arrays, const std::vector<std::int64_t>& row_of, MoeSortResult& result) {
    const std::size_t hidden = size(arrays.problem.hidden);
    const std::size_t groups = hidden / kMxGroup;
    std::vector<std::uint8_t> scales(groups);
    for (std::size_t token = 0; token < size(arrays.m); ++token) {
        formats::quantise_1x32({&arrays.x[token * size(arrays.ldx)], hidden}, formats::MxType::e4m3fn,
                               formats::AmaxFloor::at_1e_10, {&result.q[token * hidden], hidden}, scales);
        for (std::size_t slot = 0; slot < size(arrays.problem.slots); ++slot) {
            const std::int64_t row = row_of[token * size(arrays.problem.slots) + slot];
            for (std::size_t group = 0; row >= 0 && group < groups; ++group) {
                result.q_scale[formats::l3_offset(size(row), group, groups)] = scales[group];
            }
        }
    }
}

template <class T>
void compare(std::string_view name, const std::vector<T>& expected, const std::vector<T>& found,
             MoeSortComparison& result) {
    std::size_t differing = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::memcmp(&expected[i], &found[i], sizeof(T)) != 0 && differing++ == 0) {
            result.remark += fmt::format("{}{}[{}]: expected {}, found {}", result.remark.empty() ? "" : "; ",
                                         name, i, expected[i], found[i]);
        }
    }
    if (differing > 1) {
        result.remark += fmt::format(" ({} of {} differ)", differing, expected.size());
    }
    result.differing += differing;
}

// The bytes of groups that have an infinity or a NaN in them, taken from `expected`.
std::vector<std::uint8_t> without_meaningless(const MoeSortArrays& arrays, const MoeSortResult& expected,
                                              std::vector<std::uint8_t> q) {
    const std::size_t hidden = size(arrays.problem.hidden);
    for (std::size_t first = 0; first < q.size(); first += kMxGroup) {
        const std::span<const std::uint16_t> x(&arrays.x[first / hidden * size(arrays.ldx) + first % hidden],
                                               kMxGroup);
        if (std::ranges::any_of(x, [](std::uint16_t bits) { return (bits & 0x7f80) == 0x7f80; })) {
            std::copy_n(expected.q.begin() + static_cast<std::ptrdiff_t>(first), kMxGroup,
                        q.begin() + static_cast<std::ptrdiff_t>(first));
        }
    }
    return q;
}

}  // namespace

MoeSortResult filled_moe_sort_result(const MoeSortProblem& problem, std::int64_t m, std::uint8_t filler) {
    const std::size_t rows = size(moe_sort_rows(problem, m));
    const std::size_t tokens = size(m * problem.hidden);
    MoeSortResult result;
    result.sorted_ids.assign(rows, filled<std::int32_t>(filler));
    result.sorted_weights.assign(rows, filled<float>(filler));
    result.sorted_expert_ids.assign(size(moe_sort_blocks(problem, m)), filled<std::int32_t>(filler));
    result.num_valid.assign(2, filled<std::int32_t>(filler));
    result.moe_buf.assign(2 * tokens, filler);
    if (problem.quantised) {
        result.q.assign(tokens, filler);
        result.q_scale.assign(size(moe_sort_scale_bytes(problem, m)), filler);
    }
    return result;
}

MoeSortResult moe_sort_reference(const MoeSortArrays& arrays, std::uint8_t filler) {
    MoeSortResult result = filled_moe_sort_result(arrays.problem, arrays.m, filler);
    const std::vector<std::int64_t> row_of = sort_pairs(arrays, result);
    std::fill(result.moe_buf.begin(), result.moe_buf.end(), std::uint8_t{0});
    if (arrays.problem.quantised) {
        quantise(arrays, row_of, result);
    }
    return result;
}

MoeSortComparison compare_moe_sort(const MoeSortArrays& arrays, const MoeSortResult& expected,
                                   const MoeSortResult& found) {
    MoeSortComparison result;
    compare("num_valid", expected.num_valid, found.num_valid, result);
    compare("sorted_expert_ids", expected.sorted_expert_ids, found.sorted_expert_ids, result);
    compare("sorted_ids", expected.sorted_ids, found.sorted_ids, result);
    compare("sorted_weights", expected.sorted_weights, found.sorted_weights, result);
    compare("moe_buf", expected.moe_buf, found.moe_buf, result);
    if (arrays.problem.quantised) {
        compare("q", expected.q, without_meaningless(arrays, expected, found.q), result);
        compare("q_scale", expected.q_scale, found.q_scale, result);
    }
    return result;
}

}  // namespace kiln::operators
