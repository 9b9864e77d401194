// A tune: every candidate of some problems tried in a process of its own, the best of each M chosen, rows
// made.
//
//  1. All candidates are compiled, several at once, through the service's own warming.
//  2. For each problem and M each candidate is tried: launched, checked against the reference, then timed (on
//  a
//     real GPU) or valued by the cost model (on the simulator). A process serves one candidate after the
//     other; one that does not end well takes its process along, and is tried once more in a fresh one where
//     that had served others before.
//  3. Timed: the three fastest and the present one are replayed longer, in several processes; medians decide.
//  4. Neighbouring Ms of the same template and constants share a bucket where the lesser of them loses no
//  more
//     by it than what counts as an improvement: that is tried too.
//
// With a file for all candidates every result is in it before the next begins. A tune that goes on from such
// a file tries what is not in it, and leaves the same file as one that was never stopped, dates aside. It
// also tries what is of other code than it was; what that came to follows in the file, and holds.
//
// Of a problem with a demand (operators/demands.hpp) only what meets that is tried. The row is the one that
// serves the problem without it too, which goes on being served by what is not deterministic (choice.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/service/service.hpp"
#include "runtime/tune/record.hpp"

namespace kiln::tune {

struct TuneOptions {
    std::vector<std::int64_t> m;  // ascending, at least one
    double error_bound = 1;       // as a part of the operator's own
    double min_improvement = 3;   // percent
    std::int64_t warmup = 5, iters = 20;
    std::vector<std::string> templates;         // of whose spaces candidates are; empty: of all
    std::int64_t processes = 3;                 // that replay the finalists
    std::chrono::milliseconds timeout{60'000};  // of a candidate
    std::filesystem::path all_candidates;       // empty: kept nowhere
    bool resume = false;
    bool retry = false;  // what an earlier tune saw fail, hang or crash is tried again
    std::uint64_t seed = 1;
    int ordinal = 0;
    std::vector<std::string> trial_command;  // starts serve_trials() with the service's own settings
    const std::atomic<bool>* stop = nullptr;
    // What is about to be done, of how much; and each record as it is made.
    std::function<void(std::size_t done, std::size_t total, const std::string& label)> progress;
};

struct TunedProblem {
    const operators::Operator* op = nullptr;
    operators::Problem problem;
    tables::Target target;
    service::RowPtr before;             // with all its buckets; null: there is none
    std::vector<ChoiceRecord> choices;  // by M
    std::vector<CandidateRecord> tried;
    std::optional<tables::Row> row;  // none where nothing is better than what there is
    std::string kept_because;        // a row was made, and gives way to a measured one: which
};

struct TuneResult {
    Conditions conditions;
    std::vector<TunedProblem> problems;
    bool interrupted = false;  // what is not done yet is not in `problems`
};

struct TuneSubject {
    const operators::Operator* op = nullptr;
    operators::Problem problem;  // complete
};

// Errors: bad_input of the file for all candidates; what keeps anything from being tried at all.
[[nodiscard]] Result<TuneResult> tune(service::Service& service, const std::vector<TuneSubject>& subjects,
                                      const TuneOptions& options);

}  // namespace kiln::tune
