#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/fused_moe_reference.hpp"

namespace kiln::operators {

namespace {

using Random = std::mt19937_64;

constexpr std::int64_t kBlock = 128;         // k and rows that share an fp8 scale
constexpr std::int64_t kGroup = 32;          // k that share an mxfp4 scale
constexpr std::int64_t kRoutedExperts = 24;  // at most, besides the last: what a case costs goes by them

// What a token is like, in turn.
enum class TokenKind { ordinary, padded_slots, one_expert, all_padding, invalid_id, zero_row };
constexpr TokenKind kKinds[] = {TokenKind::ordinary,   TokenKind::ordinary,   TokenKind::padded_slots,
                                TokenKind::ordinary,   TokenKind::one_expert, TokenKind::ordinary,
                                TokenKind::invalid_id, TokenKind::zero_row,   TokenKind::all_padding};

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

void fill_bytes(std::span<std::uint8_t> bytes, Random& random) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(&bytes[i], &word, std::min(sizeof(word), bytes.size() - i));
    }
}

// [rows, k] of one format; sums over k stay around 1.
struct Matrix {
    std::vector<std::uint8_t> codes, scales;
};

Matrix make_mxfp4(std::int64_t rows, std::int64_t k, formats::RowOrder order, Random& random) {
    Matrix matrix;
    std::vector<std::uint8_t> codes(as_size(rows * k / 2));
    fill_bytes(codes, random);
    std::vector<std::uint8_t> scales(as_size(rows * k / kGroup));
    const int middle = 126 - static_cast<int>(std::lround(0.5 * std::log2(static_cast<double>(k))));
    for (std::uint8_t& scale : scales) {
        // One in a thousand is the code 0, whose value is no zero.
        scale =
            static_cast<std::uint8_t>(random() % 1024 == 0 ? 0 : middle - 2 + static_cast<int>(random() % 4));
    }
    matrix.codes.resize(codes.size());
    formats::shuffle_weights(codes, as_size(rows), as_size(k / 2), order, matrix.codes);
    // Without the rows that pad the whole array.
    std::vector<std::uint8_t> padded(formats::l3_bytes(as_size(rows), as_size(k / kGroup)));
    formats::shuffle_scales(scales, as_size(rows), as_size(k / kGroup), order, padded);
    padded.resize(as_size(rows) * formats::l3_padded_columns(as_size(k / kGroup)));
    matrix.scales = std::move(padded);
    return matrix;
}

Matrix make_fp8(std::int64_t rows, std::int64_t k, formats::RowOrder order, Random& random) {
    Matrix matrix;
    std::vector<std::uint8_t> codes(as_size(rows * k));
    fill_bytes(codes, random);
    for (std::uint8_t& code : codes) {
        code = (code & 0x7f) == 0x7f ? static_cast<std::uint8_t>(code - 1) : code;
    }
    matrix.codes.resize(codes.size());
    formats::shuffle_weights(codes, as_size(rows), as_size(k), order, matrix.codes);
    std::vector<float> scales(as_size(rows / kBlock * (k / kBlock)));
    // e4m3 codes taken evenly have a root mean square of about 2^6.6.
    const float middle = -7.0f - 0.5f * std::log2(static_cast<float>(k));
    std::uniform_real_distribution<float> exponent(middle - 1.5f, middle + 1.5f);
    for (float& scale : scales) {
        scale = std::exp2(exponent(random));
    }
    matrix.scales.resize(scales.size() * sizeof(float));
    std::memcpy(matrix.scales.data(), scales.data(), matrix.scales.size());
    return matrix;
}

ExpertWeights make_expert(const FusedMoeProblem& problem, std::int32_t expert, std::uint64_t seed) {
    std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(expert)};
    Random random(mixed);
    const auto make = problem.fp8 ? make_fp8 : make_mxfp4;
    Matrix w13 = make(2 * problem.intermediate, problem.hidden, w13_order(problem), random);
    Matrix w2 = make(problem.hidden, problem.intermediate, formats::RowOrder::plain(), random);
    return {std::move(w13.codes), std::move(w13.scales), std::move(w2.codes), std::move(w2.scales)};
}

// The experts that tokens choose from: spread over all of them, the first one included.
std::vector<std::int32_t> choices(const FusedMoeProblem& problem) {
    const std::int64_t count = std::min(problem.experts, kRoutedExperts);
    std::vector<std::int32_t> result;
    for (std::int64_t i = 0; i < count; ++i) {
        result.push_back(static_cast<std::int32_t>(i * problem.experts / count));
    }
    return result;
}

void route(TokenKind kind, std::int64_t experts, std::vector<std::int32_t> from, Random& random,
           std::span<std::int32_t> ids) {
    const auto last = static_cast<std::int32_t>(experts - 1);
    std::ranges::shuffle(from, random);
    for (std::size_t slot = 0; slot < ids.size(); ++slot) {
        ids[slot] = from[slot % from.size()];
    }
    ids.back() = last;
    switch (kind) {
        case TokenKind::padded_slots:
            ids[random() % ids.size()] = -1;
            ids[random() % ids.size()] = -1;
            break;
        case TokenKind::one_expert:
            std::ranges::fill(ids, ids.front());
            break;
        case TokenKind::all_padding:
            std::ranges::fill(ids, -1);
            break;
        case TokenKind::invalid_id: {
            const std::int32_t invalid[] = {last + 1, -2, std::numeric_limits<std::int32_t>::max(),
                                            std::numeric_limits<std::int32_t>::min()};
            for (std::size_t slot = random() % 2; slot < ids.size(); slot += 3) {
                ids[slot] = invalid[random() % std::size(invalid)];
            }
            break;
        }
        case TokenKind::ordinary:
        case TokenKind::zero_row:
            break;
    }
}

// All but x, ids and weights of the tokens, and the experts.
FusedMoeArrays empty_case(const FusedMoeProblem& problem, std::int64_t m, std::uint64_t seed) {
    FusedMoeArrays arrays;
    arrays.problem = problem;
    arrays.seed = seed;
    arrays.m = m;
    // A stride other than the row's length, so that nothing passes by taking one for the other. What lies
    // between rows is NaN.
    arrays.ldx = problem.hidden + 8;
    arrays.x.assign(as_size(m * arrays.ldx), 0x7fc0);
    arrays.ids.resize(as_size(m * problem.slots));
    arrays.weights.resize(arrays.ids.size());
    return arrays;
}

}  // namespace

formats::RowOrder w13_order(const FusedMoeProblem& problem) {
    return problem.interleaved ? formats::RowOrder::gate_up(as_size(problem.intermediate))
                               : formats::RowOrder::plain();
}

FusedMoeBytes fused_moe_bytes(const FusedMoeProblem& problem) {
    const auto hidden = problem.hidden, intermediate = problem.intermediate, experts = problem.experts;
    const bool fp8 = problem.fp8;
    const auto codes = [fp8](std::int64_t rows, std::int64_t k) {
        return as_size(fp8 ? rows * k : rows * k / 2);
    };
    const auto scales = [fp8](std::int64_t rows, std::int64_t k) {
        return fp8 ? as_size(rows / kBlock * (k / kBlock)) * sizeof(float)
                   : as_size(rows) * formats::l3_padded_columns(as_size(k / kGroup));
    };
    const auto all_scales = [&](std::int64_t rows, std::int64_t k) {
        return fp8 ? as_size(experts) * scales(rows, k)
                   : formats::l3_bytes(as_size(experts * rows), as_size(k / kGroup));
    };
    FusedMoeBytes bytes{};
    bytes.expert_w13 = codes(2 * intermediate, hidden);
    bytes.expert_w13_scale = scales(2 * intermediate, hidden);
    bytes.expert_w2 = codes(hidden, intermediate);
    bytes.expert_w2_scale = scales(hidden, intermediate);
    bytes.w13 = as_size(experts) * bytes.expert_w13;
    bytes.w13_scale = all_scales(2 * intermediate, hidden);
    bytes.w2 = as_size(experts) * bytes.expert_w2;
    bytes.w2_scale = all_scales(hidden, intermediate);
    return bytes;
}

FusedMoeArrays make_fused_moe_case(const FusedMoeProblem& problem, std::int64_t m, std::uint64_t seed) {
    FusedMoeArrays arrays = empty_case(problem, m, seed);
    Random random(seed);
    const std::vector<std::int32_t> from = choices(problem);
    for (std::int64_t token = 0; token < m; ++token) {
        const TokenKind kind = kKinds[as_size(token) % std::size(kKinds)];
        const std::span<std::uint16_t> row(&arrays.x[as_size(token * arrays.ldx)], as_size(problem.hidden));
        std::normal_distribution<float> normal(0.0f, std::exp2(static_cast<float>(random() % 7) - 4.0f));
        for (std::uint16_t& value : row) {
            value = kind == TokenKind::zero_row ? std::uint16_t{0} : formats::float_to_bf16(normal(random));
        }
        const std::size_t first = as_size(token * problem.slots);
        const std::span<std::int32_t> ids(&arrays.ids[first], as_size(problem.slots));
        route(kind, problem.experts, from, random, ids);
        std::uniform_real_distribution<float> weight(0.01f, 0.5f);
        for (std::size_t slot = 0; slot < ids.size(); ++slot) {
            const float value = weight(random);
            const bool valid = ids[slot] >= 0 && ids[slot] < problem.experts;
            arrays.weights[first + slot] = valid ? value : std::numeric_limits<float>::quiet_NaN();
        }
    }
    add_experts(arrays);
    return arrays;
}

FusedMoeArrays make_typical_fused_moe_case(const FusedMoeProblem& problem, std::int64_t m,
                                           std::uint64_t seed) {
    constexpr std::int32_t kDistinctExperts = 8;
    FusedMoeArrays arrays = empty_case(problem, m, seed);
    arrays.distinct_experts = kDistinctExperts;
    const bool has_shared = problem.experts % 2 == 1 && problem.experts > 1 && problem.slots > 1;
    std::vector<std::int32_t> routed(as_size(problem.experts - (has_shared ? 1 : 0)));
    std::iota(routed.begin(), routed.end(), 0);
    Random random(seed);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> weight(0.01f, 0.5f);
    for (std::int64_t token = 0; token < m; ++token) {
        for (std::int64_t i = 0; i < problem.hidden; ++i) {
            arrays.x[as_size(token * arrays.ldx + i)] = formats::float_to_bf16(normal(random));
        }
        std::ranges::shuffle(routed, random);
        for (std::int64_t slot = 0; slot < problem.slots; ++slot) {
            const std::size_t pair = as_size(token * problem.slots + slot);
            const bool is_shared = has_shared && slot == problem.slots - 1;
            arrays.ids[pair] = is_shared ? static_cast<std::int32_t>(problem.experts - 1)
                                         : routed[as_size(slot) % routed.size()];
            arrays.weights[pair] = weight(random);
        }
    }
    add_experts(arrays);
    return arrays;
}

void add_experts(FusedMoeArrays& arrays) {
    for (const std::int32_t id : arrays.ids) {
        if (id >= 0 && id < arrays.problem.experts && arrays.weights_of(id) == nullptr) {
            const std::int32_t first = arrays.distinct_experts == 0 ? id : id % arrays.distinct_experts;
            arrays.experts.emplace(first, make_expert(arrays.problem, first, arrays.seed));
        }
    }
}

const ExpertWeights* FusedMoeArrays::weights_of(std::int32_t id) const {
    if (id < 0 || id >= problem.experts) {
        return nullptr;
    }
    const auto found = experts.find(distinct_experts == 0 ? id : id % distinct_experts);
    return found == experts.end() ? nullptr : &found->second;
}

}  // namespace kiln::operators
