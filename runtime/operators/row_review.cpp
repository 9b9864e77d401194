#include "runtime/operators/row_review.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "runtime/operators/row_samples.hpp"

namespace kiln::operators {
namespace {

using tables::Row;
using tables::RowFault;

constexpr std::string_view kSlots = "slots";
constexpr std::string_view kConstants = "/constants";
constexpr std::int64_t kMostSlots = 64;

RowFault warning(std::string pointer, std::string expected, std::string found) {
    return {std::move(pointer), std::move(expected), std::move(found), RowFault::At::value,
            RowFault::Severity::warning};
}

bool misses_a_constant(const std::vector<RowFault>& faults) {
    return std::ranges::any_of(faults, [](const RowFault& fault) { return fault.pointer == kConstants; });
}

// Of what a template says of a bucket, what it says whatever the problem: which constants it takes. It says
// that first, and of a name that it takes it says that it is missing once it is gone.
std::vector<RowFault> wrong_names(const Template& source, const Problem& problem, const Bucket& bucket) {
    std::vector<RowFault> faults = source.check(problem, bucket);
    if (misses_a_constant(faults)) {
        return faults;
    }
    std::erase_if(faults, [&](const RowFault& fault) {
        Bucket without = bucket;
        return !fault.pointer.starts_with(kConstants) ||
               without.constants.erase(fault.pointer.substr(kConstants.size() + 1)) == 0 ||
               misses_a_constant(source.check(problem, without));
    });
    return faults;
}

// A general row that lists no problem, by problems that it admits.
std::vector<RowFault> review_constants(const Operator& op, const Row& row,
                                       const std::vector<Problem>& samples) {
    if (samples.empty()) {
        return {warning("/problem",
                        fmt::format("open fields that a problem which {} serves can meet", op.name()),
                        fmt::format("none that does: {}", tables::to_text(row.open)))};
    }
    std::vector<RowFault> faults;
    for (std::size_t i = 0; i < row.buckets.size(); ++i) {
        const Template* source = op.find_template(row.buckets[i].template_id, row.target.processor);
        if (source == nullptr) {
            continue;  // check_row() has said so, or the target is of nobody's processors
        }
        for (RowFault& fault : wrong_names(*source, samples.front(), row.buckets[i])) {
            fault.pointer = fmt::format("/buckets/{}{}", i, fault.pointer);
            faults.push_back(std::move(fault));
        }
    }
    if (!faults.empty()) {
        return faults;
    }
    std::optional<std::string> refused;
    for (const Problem& sample : samples) {
        const Result<Row> exact = row_at(row, sample);
        if (exact) {
            return {};
        }
        refused = refused.value_or(exact.error().message);
    }
    return {warning("/buckets",
                    "buckets that serve a problem of the row; without \"problems\" they are not checked "
                    "before one is asked for",
                    fmt::format("none in {}: {}", samples.size(), *refused))};
}

// Buckets that another one before them leaves nothing to, where a token has so many slots.
void review_order(const Row& row, std::span<const Bucket> given, std::int64_t slots,
                  std::vector<std::optional<RowFault>>& found) {
    Row whole = row;
    whole.buckets.assign(given.begin(), given.end());
    const Row exact = whole.at(row.problem, slots);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Bucket& bucket = given[i];
        const std::int64_t last = bucket.max_pairs ? *bucket.max_pairs / slots : bucket.max_m;
        const bool serves = std::ranges::any_of(exact.buckets, [&](const Bucket& served) {
            return served.template_id == bucket.template_id && served.constants == bucket.constants &&
                   served.max_pairs == bucket.max_pairs && served.max_m == last;
        });
        if (!serves && last > 0 && !found[i]) {
            found[i] = warning(fmt::format("/buckets/{}", i),
                               fmt::format("an M above {}, which the buckets before it reach with {} slot{}",
                                           before, slots, slots == 1 ? "" : "s"),
                               fmt::format("{}: it never serves there", last));
        }
        before = std::max(before, last);
    }
}

std::vector<RowFault> review_buckets(const Operator& op, const Row& row, std::span<const Bucket> given,
                                     const std::vector<Problem>& samples) {
    if (std::ranges::none_of(given, [](const Bucket& bucket) { return bucket.max_pairs.has_value(); })) {
        return {};  // the loader has seen to their order
    }
    std::vector<std::optional<RowFault>> found(given.size());
    if (const auto settled = row.problem.find(kSlots); settled != row.problem.end()) {
        review_order(row, given, std::get<std::int64_t>(settled->second), found);
    } else if (!samples.empty()) {
        Problem problem = samples.front();
        for (std::int64_t slots = 1; slots <= kMostSlots; ++slots) {
            problem.insert_or_assign(std::string(kSlots), slots);
            if (row.admits(problem) && op.judge(problem)) {
                review_order(row, given, slots, found);
            }
        }
    }
    std::vector<RowFault> faults;
    for (std::optional<RowFault>& fault : found) {
        if (fault) {
            faults.push_back(*std::move(fault));
        }
    }
    return faults;
}

}  // namespace

std::vector<RowFault> review_row(const Row& row, std::span<const Bucket> given) {
    const Operator* op = find_operator(row.operator_name);
    if (op == nullptr) {
        return {};
    }
    const bool is_unlisted = row.is_general() && row.problems.empty();
    const std::vector<Problem> samples = is_unlisted ? legal_samples(*op, row) : row.problems;
    std::vector<RowFault> faults;
    if (is_unlisted) {
        faults = review_constants(*op, row, samples);
    }
    std::ranges::move(review_buckets(*op, row, given, samples), std::back_inserter(faults));
    return faults;
}

}  // namespace kiln::operators
