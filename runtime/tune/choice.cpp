#include "runtime/tune/choice.hpp"

#include <algorithm>

#include <fmt/format.h>

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

bool may_merge(double us, double larger_us, double min_improvement) {
    return improvement(larger_us, us) <= min_improvement;
}

std::vector<tables::Bucket> with_decisions(
    std::span<const tables::Bucket> present, std::span<const Decision> decisions,
    const std::function<bool(const tables::Bucket&)>& is_deterministic) {
    std::vector<tables::Bucket> result;
    std::size_t next = 0;     // of present
    std::int64_t begin = 1;   // the first M that nothing in `result` serves yet
    std::int64_t last_m = 0;  // the decision before
    const auto keep = [&](const tables::Bucket& bucket) {
        result.push_back(bucket);
        begin = std::max(begin, bucket.max_m + 1);
    };
    // One that ends within what is served already is out of reach, but for the problems that demand what is
    // deterministic.
    const auto is_reached = [&](const tables::Bucket& bucket) {
        return bucket.max_m >= begin || (!result.empty() && result.back().max_m == bucket.max_m &&
                                         !is_deterministic(result.back()) && is_deterministic(bucket));
    };
    for (const Decision& decision : decisions) {
        while (next < present.size() && present[next].max_m < decision.m) {
            if (is_reached(present[next])) {
                keep(present[next]);
            }
            ++next;
        }
        if (decision.bucket && decision.m >= begin) {
            // Of the bucket that serves it now, what lies at or below the decision before stays.
            if (next < present.size() && last_m >= begin) {
                tables::Bucket part = present[next];
                part.max_m = last_m;
                part.max_pairs.reset();
                keep(part);
            }
            keep(*decision.bucket);
        }
        last_m = decision.m;
    }
    for (; next < present.size(); ++next) {
        if (is_reached(present[next])) {
            keep(present[next]);
        }
    }
    return result;
}

}  // namespace kiln::tune
