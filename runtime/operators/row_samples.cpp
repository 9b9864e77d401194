#include "runtime/operators/row_samples.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::operators {
namespace {

constexpr std::int64_t kLargestStep = 4096;
constexpr std::size_t kMostSamples = 16;
constexpr std::size_t kMostTries = 10'000;

// The values that are tried of one field that is open.
struct Open {
    std::string_view name;
    std::vector<tables::FieldValue> values;
};

enum class Words { default_alone, all };

std::vector<tables::FieldValue> candidates(const Field& field, const tables::FieldRange& range, Words words) {
    std::vector<tables::FieldValue> values;
    const auto add = [&](tables::FieldValue value) {
        if (range.admits(value) && std::ranges::find(values, value) == values.end()) {
            values.push_back(std::move(value));
        }
    };
    if (field.is_word()) {
        for (const std::string_view word : field.words) {
            if (words == Words::all || values.empty()) {
                add(std::string(word));
            }
        }
        return values;
    }
    if (field.default_number) {
        add(*field.default_number);
        if (!values.empty()) {
            return values;
        }
    }
    // From the coarsest: where sizes depend on each other, it is round ones that fit.
    for (std::int64_t step = kLargestStep; step >= 1; step /= 2) {
        const std::int64_t least = std::max<std::int64_t>(range.min.value_or(1), 1);
        if (least <= kLargestStep * kLargestStep) {
            add((least + step - 1) / step * step);
        }
        if (range.max && *range.max > 0) {
            add(*range.max / step * step);
        }
    }
    return values;
}

std::vector<Problem> search(const Operator& op, const tables::Row& row, Words words) {
    std::vector<Open> open;
    std::size_t combinations = 1;
    for (const Field& field : op.fields()) {
        if (const auto range = row.open.find(field.name); range != row.open.end()) {
            open.push_back({field.name, candidates(field, range->second, words)});
            combinations *= open.back().values.size();
        }
    }
    // Of many combinations a few, far from each other; of few all.
    std::size_t stride = combinations * 5 / 8 + 1;
    while (std::gcd(stride, combinations) > 1) {
        ++stride;
    }
    std::vector<Problem> samples;
    Problem problem = row.problem;
    for (std::size_t i = 0; i < std::min(combinations, kMostTries) && samples.size() < kMostSamples; ++i) {
        std::size_t rest = i * stride % combinations;
        for (const auto& [name, values] : open) {
            problem.insert_or_assign(std::string(name), values[rest % values.size()]);
            rest /= values.size();
        }
        if (op.judge(problem)) {
            samples.push_back(problem);
        }
    }
    return samples;
}

}  // namespace

// Most words of an operator with many are there to be declined, so that combinations of them are hardly ever
// served.
std::vector<Problem> legal_samples(const Operator& op, const tables::Row& row) {
    std::vector<Problem> samples = search(op, row, Words::default_alone);
    if (samples.empty()) {
        return search(op, row, Words::all);
    }
    const Problem first = samples.front();
    for (const Field& field : op.fields()) {
        const auto range = row.open.find(field.name);
        if (!field.is_word() || range == row.open.end()) {
            continue;
        }
        for (tables::FieldValue& word : candidates(field, range->second, Words::all)) {
            Problem problem = first;
            problem.insert_or_assign(std::string(field.name), std::move(word));
            if (problem != first && op.judge(problem)) {
                samples.push_back(std::move(problem));
            }
        }
    }
    return samples;
}

}  // namespace kiln::operators
