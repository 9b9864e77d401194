#include "runtime/tune/choice.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "runtime/tune/median.hpp"

namespace kiln::tune {

namespace {

bool is_finalist(const CandidateRecord& candidate) {
    return !candidate.finals_us.empty();
}

double us_of(const CandidateRecord& candidate) {
    return candidate.finding.us.value_or(0);
}

Ranked ranked(const CandidateRecord& candidate) {
    return {candidate.bucket, us_of(candidate)};
}

// Percent of the present one's time that the other saves.
double improvement(double present_us, double us) {
    return (present_us - us) / present_us * 100;
}

std::string why_it_stays(const CandidateRecord& present, const CandidateRecord* other, double wanted) {
    if (other == nullptr) {
        return "stays: nothing else came to an end well";
    }
    const double saved = improvement(us_of(present), us_of(*other));
    return saved <= 0 ? fmt::format("stays: the best other takes {:.2f} us", us_of(*other))
                      : fmt::format("stays: the best other, {:.2f} us, is {:.1f}% below, not more than {:g}%",
                                    us_of(*other), saved, wanted);
}

}  // namespace

std::vector<std::size_t> ranking(std::span<const CandidateRecord> candidates) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].finding.status == Status::ok) {
            order.push_back(i);
        }
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return us_of(candidates[i]); });
    return order;
}

double screened_us(const CandidateRecord& candidate) {
    std::vector<double> samples = candidate.finding.samples_us;
    return samples.empty() ? us_of(candidate) : median(samples);
}

std::vector<std::size_t> finalists(std::span<const CandidateRecord> candidates, std::size_t count) {
    std::vector<CandidateRecord> screened(candidates.begin(), candidates.end());
    for (CandidateRecord& candidate : screened) {
        candidate.finding.us = screened_us(candidate);
    }
    std::vector<std::size_t> order = ranking(screened);
    std::size_t taken = 0;
    std::erase_if(order, [&](std::size_t i) { return !candidates[i].present && ++taken > count; });
    return order;
}

ChoiceRecord choose(std::span<const CandidateRecord> candidates, double min_improvement) {
    ChoiceRecord choice;
    choice.subject = candidates.front().subject;
    choice.conditions = candidates.front().conditions;
    std::vector<std::size_t> order = ranking(candidates);
    if (std::ranges::any_of(candidates, is_finalist)) {
        std::erase_if(order, [&](std::size_t i) { return !is_finalist(candidates[i]); });
    }
    const auto there = std::ranges::find_if(candidates, &CandidateRecord::present);
    const CandidateRecord* present =
        there != candidates.end() && there->finding.status == Status::ok ? &*there : nullptr;
    if (present != nullptr) {
        choice.present = ranked(*present);
    }
    if (order.empty()) {
        choice.why = "no candidate came to an end well";
        return choice;
    }
    // The best of all but the present one, and what is next.
    std::vector<const CandidateRecord*> others;
    for (const std::size_t i : order) {
        if (!candidates[i].present) {
            others.push_back(&candidates[i]);
        }
    }
    const CandidateRecord* best = others.empty() ? nullptr : others.front();
    if (present != nullptr &&
        (best == nullptr || improvement(us_of(*present), us_of(*best)) <= min_improvement)) {
        choice.stays = true;
        choice.winner = choice.present;
        choice.why = why_it_stays(*present, best, min_improvement);
        if (best != nullptr) {
            choice.runner_up = ranked(*best);
        }
        return choice;
    }
    choice.winner = ranked(*best);
    const CandidateRecord* next = others.size() > 1 ? others[1] : nullptr;
    if (present != nullptr && (next == nullptr || us_of(*present) <= us_of(*next))) {
        next = present;
    }
    if (next != nullptr) {
        choice.runner_up = ranked(*next);
    }
    if (present != nullptr) {
        choice.why = fmt::format("{:.1f}% below the {:.2f} us of what serves it now",
                                 improvement(us_of(*present), us_of(*best)), us_of(*present));
    } else if (there != candidates.end()) {
        choice.why = fmt::format("what serves it now did not come to an end well ({})",
                                 to_text(there->finding.status));
    } else {
        choice.why = "nothing serves it now";
    }
    return choice;
}

bool may_share(std::span<const tables::Bucket> present, const Decision& lesser, const Decision& larger) {
    if (!lesser.bucket || !larger.bucket) {
        return false;
    }
    const bool lies_between = std::ranges::any_of(present, [&](const tables::Bucket& bucket) {
        return bucket.max_m > lesser.m && bucket.max_m < larger.m;
    });
    return !lies_between && lesser.bucket->template_id == larger.bucket->template_id &&
           lesser.bucket->constants == larger.bucket->constants;
}

bool may_merge(double us, double larger_us, double min_improvement) {
    return improvement(larger_us, us) <= min_improvement;
}

namespace {

using Buckets = std::vector<tables::Bucket>;
using IsDeterministic = std::function<bool(const tables::Bucket&)>;

// The first of the buckets that reaches m; null: none does.
const tables::Bucket* serving(std::span<const tables::Bucket> buckets, std::int64_t m) {
    const auto found =
        std::ranges::find_if(buckets, [m](const tables::Bucket& bucket) { return bucket.max_m >= m; });
    return found == buckets.end() ? nullptr : &*found;
}

// Those that `is_one` takes and that some M reaches.
Buckets reached(std::span<const tables::Bucket> buckets, const IsDeterministic& is_one) {
    Buckets result;
    for (const tables::Bucket& bucket : buckets) {
        if (is_one(bucket) && (result.empty() || bucket.max_m > result.back().max_m)) {
            result.push_back(bucket);
        }
    }
    return result;
}

tables::Bucket ending_at(tables::Bucket bucket, std::int64_t m) {
    if (bucket.max_m != m) {
        bucket.max_m = m;
        bucket.max_pairs.reset();
    }
    return bucket;
}

// The decisions put into buckets whose ends ascend.
Buckets decided(std::span<const tables::Bucket> present, std::span<const Decision> decisions) {
    Buckets result;
    std::size_t next = 0;     // of present
    std::int64_t begin = 1;   // the first M that nothing in `result` serves yet
    std::int64_t last_m = 0;  // the decision before
    const auto keep = [&](const tables::Bucket& bucket) {
        if (bucket.max_m >= begin) {
            result.push_back(bucket);
            begin = bucket.max_m + 1;
        }
    };
    for (const Decision& decision : decisions) {
        for (; next < present.size() && present[next].max_m < decision.m; ++next) {
            keep(present[next]);
        }
        if (decision.bucket && decision.m >= begin) {
            // Of the bucket that serves it now, what lies at or below the decision before stays.
            if (next < present.size()) {
                keep(ending_at(present[next], last_m));
            }
            keep(*decision.bucket);
        }
        last_m = decision.m;
    }
    for (; next < present.size(); ++next) {
        keep(present[next]);
    }
    return result;
}

// What serves one run of Ms: a problem without demands, and one that demands what is deterministic. The same
// bucket where the former is deterministic: a lookup for the latter finds it.
struct Served {
    std::int64_t last = 0;  // of the run
    const tables::Bucket* plain = nullptr;
    const tables::Bucket* deterministic = nullptr;  // null: none does
};

bool is_same(const tables::Bucket* one, const tables::Bucket* other) {
    return one == nullptr || other == nullptr ? one == other : *one == *other;
}

// The last Ms of the runs in which neither row of buckets changes, in order.
std::vector<std::int64_t> ends_of(const Buckets& one, const Buckets& other) {
    std::set<std::int64_t> ends;
    for (const Buckets* buckets : {&one, &other}) {
        for (const tables::Bucket& bucket : *buckets) {
            ends.insert(bucket.max_m);
        }
    }
    return {ends.begin(), ends.end()};
}

// One row of buckets that serves as the runs say.
Buckets merged(std::span<const Served> runs) {
    Buckets result;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto& [last, plain, deterministic] = runs[i];
        const Served next = i + 1 < runs.size() ? runs[i + 1] : Served{};
        const bool ends_deterministic =
            deterministic != nullptr && !is_same(deterministic, next.deterministic);
        // One that is not deterministic ends where the one behind it does, which would serve in its place.
        if (ends_deterministic || !is_same(plain, next.plain)) {
            result.push_back(ending_at(*plain, last));
        }
        if (ends_deterministic && !is_same(plain, deterministic)) {
            result.push_back(ending_at(*deterministic, last));
        }
    }
    return result;
}

}  // namespace

std::vector<tables::Bucket> with_decisions(std::span<const tables::Bucket> present,
                                           std::span<const Decision> decisions, Demand demand,
                                           const IsDeterministic& is_deterministic) {
    Buckets plain = reached(present, [](const tables::Bucket&) { return true; });
    Buckets deterministic = reached(present, is_deterministic);
    Buckets& tuned = demand == Demand::none ? plain : deterministic;
    tuned = decided(tuned, decisions);
    std::vector<Served> runs;
    for (const std::int64_t last : ends_of(plain, deterministic)) {
        Served run{last, serving(plain, last), serving(deterministic, last)};
        if (run.plain == nullptr || is_deterministic(*run.plain)) {
            // One bucket serves both: the one that was tuned.
            const bool takes_plain = run.plain != nullptr && (demand == Demand::none || !run.deterministic);
            run.plain = run.deterministic = takes_plain ? run.plain : run.deterministic;
        }
        runs.push_back(run);
    }
    return merged(runs);
}

}  // namespace kiln::tune
