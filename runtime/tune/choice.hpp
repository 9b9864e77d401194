// From what candidates came to, to which one serves, and to a row that says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tune/record.hpp"

namespace kiln::tune {

// Those that are ok, the fastest first; of equals, the one that was tried first. Indices.
[[nodiscard]] std::vector<std::size_t> ranking(std::span<const CandidateRecord> candidates);

// Microseconds as it was screened: of one that was replayed longer since, too.
[[nodiscard]] double screened_us(const CandidateRecord& candidate);

// Those that are to be replayed longer: by the screening the `count` fastest, and the present one. Indices.
[[nodiscard]] std::vector<std::size_t> finalists(std::span<const CandidateRecord> candidates,
                                                 std::size_t count);

// The fastest, and the present one, which stays where nothing is faster by more than `min_improvement`
// percent of its time. Candidates are of one problem and M; where any has finals, only those that have are
// compared.
[[nodiscard]] ChoiceRecord choose(std::span<const CandidateRecord> candidates, double min_improvement);

// What to make of a row: for an M that was tuned, the bucket that is to serve it.
struct Decision {
    std::int64_t m = 0;
    // Ends at m, or at a larger one of the decisions whose bucket it shares. None: what serves it now stays.
    std::optional<tables::Bucket> bucket;
};

// Whether the bucket of the larger of two neighbouring decisions may serve the lesser's M too, as far as can
// be said without trying: it has the same template and constants, and none of the buckets that serve now ends
// between the two.
[[nodiscard]] bool may_share(std::span<const tables::Bucket> present, const Decision& lesser,
                             const Decision& larger);
// Whether a launch of the lesser M may as well be served by a bucket that takes `larger_us` for it, when its
// own winner takes `us`: not slower by more than `min_improvement` percent.
[[nodiscard]] bool may_merge(double us, double larger_us, double min_improvement);

// What the problem that was tuned demands of what serves it.
enum class Demand { none, deterministic };

// The buckets of a row with the decisions, ascending by m, in force. An M speaks for those below it down to
// the M before, but not beyond the bucket that serves it now: what other buckets serve was not looked at.
// Buckets that stay keep their budgets.
//
// A row serves problems with a demand and problems without one, and what one of them is served by where the
// decisions are the other's stays as it is. So a bucket that is not deterministic is followed by one that is,
// of the same end, wherever there is one for its Ms. Where one that is deterministic serves both, both get
// what was decided.
[[nodiscard]] std::vector<tables::Bucket> with_decisions(
    std::span<const tables::Bucket> present, std::span<const Decision> decisions, Demand demand,
    const std::function<bool(const tables::Bucket&)>& is_deterministic);

}  // namespace kiln::tune
