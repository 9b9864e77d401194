#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>

#include "runtime/formats/bf16.hpp"
#include "runtime/operators/router_reference.hpp"

namespace kiln::operators {

namespace {

using formats::bf16_to_float;
using formats::Bf16Bits;
using formats::float_to_bf16;
using Random = std::mt19937_64;

constexpr Bf16Bits kInfinity = 0x7f80;
constexpr Bf16Bits kNan = 0x7fc0;

enum class TokenKind { ordinary, ties, few_values, signed_zeros, minus_infinity, infinities, nan };
constexpr TokenKind kKinds[] = {TokenKind::ordinary,   TokenKind::ties,         TokenKind::few_values,
                                TokenKind::ordinary,   TokenKind::signed_zeros, TokenKind::minus_infinity,
                                TokenKind::infinities, TokenKind::nan};

// Columns of the gate that a kind of token needs; ordinary tokens are zero there.
enum Column : std::size_t {
    kTiny,      // +-2^-40: times 2^-100 it rounds to +-0
    kSigns,     // -1, 0 or 1: times infinity every kind there is
    kNegative,  // 0 or -8: times the largest magnitudes below float32's range
    kSpecials
};
// Behind these, columns of few values: multiples of 1/4 up to 1.
constexpr std::size_t kCoarse = 64;

class Gate {
  public:
    Gate(std::int64_t hidden, Random& random) : hidden_(static_cast<std::size_t>(hidden)), random_(random) {}

    void fill(std::span<Bf16Bits> row) {
        std::normal_distribution<float> normal;
        // Logits of ordinary tokens get a spread of 3.
        const float spread = 3.0f / std::sqrt(static_cast<float>(hidden_));
        for (std::size_t k = 0; k < hidden_; ++k) {
            if (k >= kSpecials && k < kSpecials + kCoarse) {
                row[k] = float_to_bf16(0.25f * static_cast<float>(static_cast<int>(random_() % 9) - 4));
            } else {
                row[k] = float_to_bf16(normal(random_) * spread);
            }
        }
        row[kTiny] = float_to_bf16(random_() % 2 == 0 ? -0x1p-40f : 0x1p-40f);
        row[kSigns] = float_to_bf16(static_cast<float>(static_cast<int>(random_() % 3) - 1));
        row[kNegative] = float_to_bf16(random_() % 2 == 0 ? -8.0f : 0.0f);
    }

  private:
    const std::size_t hidden_;
    Random& random_;
};

std::span<Bf16Bits> coarse_columns(std::span<Bf16Bits> token) {
    return token.subspan(kSpecials, std::min(kCoarse, token.size() - kSpecials));
}

void fill_ties(std::span<Bf16Bits> token, Random& random) {
    for (Bf16Bits& value : coarse_columns(token)) {
        value = float_to_bf16(static_cast<float>(static_cast<int>(random() % 5) - 2));
    }
}

void fill_ordinary(std::span<Bf16Bits> token, Random& random) {
    std::normal_distribution<float> normal;
    for (std::size_t k = 0; k < token.size(); ++k) {
        token[k] = k < kSpecials ? Bf16Bits{0} : float_to_bf16(normal(random));
    }
}

void fill_token(std::span<Bf16Bits> token, TokenKind kind, Random& random) {
    std::ranges::fill(token, Bf16Bits{0});
    switch (kind) {
        case TokenKind::ordinary:
            fill_ordinary(token, random);
            break;
        case TokenKind::ties:
            fill_ties(token, random);
            break;
        case TokenKind::few_values:
            coarse_columns(token).front() = float_to_bf16(2.0f);
            break;
        case TokenKind::signed_zeros:
            token[kTiny] = float_to_bf16(0x1p-100f);
            break;
        case TokenKind::minus_infinity:
            fill_ties(token, random);
            token[kNegative] = float_to_bf16(0x1p127f);
            break;
        case TokenKind::infinities:
            fill_ties(token, random);
            token[kSigns] = kInfinity;
            break;
        case TokenKind::nan:
            token.back() = kNan;
            break;
    }
}

// Whether float32 sums, in any order, could choose otherwise than the exact ones: a logit that may be among
// the chosen lies so near to where bf16 rounds the other way that the errors of the sum reach over it.
bool is_doubtful(const RouterArrays& arrays, std::span<const Bf16Bits> token) {
    constexpr double kSumError = 0x1p-18;  // of the sum of magnitudes; 64 roundings to one side
    struct Logit {
        double low, high;  // as rounded
    };
    std::vector<Logit> logits;
    for (std::int64_t expert = 0; expert < arrays.experts; ++expert) {
        const Bf16Bits* row = &arrays.gate[static_cast<std::size_t>(expert * arrays.hidden)];
        double sum = 0, magnitude = 0;
        for (std::size_t k = 0; k < token.size(); ++k) {
            const double product =
                static_cast<double>(bf16_to_float(token[k])) * static_cast<double>(bf16_to_float(row[k]));
            sum += product;
            magnitude += std::fabs(product);
        }
        const auto rounded = [](double value) {
            return static_cast<double>(bf16_to_float(formats::double_to_bf16(value)));
        };
        logits.push_back({rounded(sum - kSumError * magnitude), rounded(sum + kSumError * magnitude)});
    }
    // The last of the chosen is at least this.
    std::ranges::nth_element(logits, logits.begin() + (arrays.top_k - 1), std::greater<>(), &Logit::low);
    const double last = logits[static_cast<std::size_t>(arrays.top_k - 1)].low;
    return std::ranges::any_of(logits, [&](const Logit& l) { return l.high >= last && l.low != l.high; });
}

}  // namespace

RouterArrays make_router_case(std::int64_t m, std::int64_t hidden, std::int64_t experts, std::int64_t top_k,
                              std::int64_t shared, std::uint64_t seed) {
    RouterArrays arrays;
    arrays.m = m;
    arrays.hidden = hidden;
    arrays.experts = experts;
    arrays.top_k = top_k;
    arrays.shared = shared;
    arrays.scale = 2.5f;
    // A stride other than the hidden dimension, so that nothing passes by taking one for the other. What lies
    // between rows is NaN.
    arrays.ldx = hidden + 8;
    arrays.x.assign(static_cast<std::size_t>(m * arrays.ldx), kNan);
    arrays.gate.resize(static_cast<std::size_t>(experts * hidden));
    arrays.shared_gate.resize(static_cast<std::size_t>(shared * hidden));

    // The gate first: it does not depend on m.
    Random random(seed);
    const auto length = static_cast<std::size_t>(hidden);
    Gate gate(hidden, random);
    for (std::int64_t expert = 0; expert < experts; ++expert) {
        gate.fill({&arrays.gate[static_cast<std::size_t>(expert) * length], length});
    }
    if (shared != 0) {
        gate.fill(arrays.shared_gate);
        // Its logit of an infinite token is infinite: the weight stays a number.
        arrays.shared_gate[kSigns] = float_to_bf16(1.0f);
    }
    for (std::int64_t token = 0; token < m; ++token) {
        const std::span<Bf16Bits> values(&arrays.x[static_cast<std::size_t>(token * arrays.ldx)], length);
        const TokenKind kind = kKinds[static_cast<std::size_t>(token) % std::size(kKinds)];
        do {
            fill_token(values, kind, random);
        } while (kind == TokenKind::ordinary && is_doubtful(arrays, values));
    }
    return arrays;
}

}  // namespace kiln::operators
