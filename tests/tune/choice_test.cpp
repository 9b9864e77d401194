// Which candidate serves, and the buckets of the row that says so.

#include <doctest/doctest.h>

#include "runtime/tune/choice.hpp"

using kiln::tables::Bucket;
using kiln::tune::CandidateRecord;
using kiln::tune::choose;
using kiln::tune::Decision;
using kiln::tune::Demand;
using kiln::tune::Status;
using kiln::tune::with_decisions;

namespace {

Bucket bucket(std::int64_t max_m, std::int64_t waves) {
    return {max_m, "linear/small_m", {{"waves", waves}}};
}

CandidateRecord candidate(std::int64_t waves, double us, bool present = false) {
    CandidateRecord record;
    record.bucket = bucket(present ? 32 : 8, waves);
    record.present = present;
    record.finding.status = Status::ok;
    record.finding.us = us;
    return record;
}

bool always(const Bucket&) {
    return true;
}
bool all_but_nine_waves(const Bucket& one) {
    return one.constants.at("waves") != 9;
}

}  // namespace

TEST_CASE("ThePresentOneStaysOnATieAndWithinTheMargin") {
    for (const double us : {10.0, 9.8, 9.71, 12.0}) {
        const std::vector<CandidateRecord> all{candidate(1, 10, true), candidate(2, us)};
        const auto choice = choose(all, 3);
        CHECK(choice.stays);
        CHECK(choice.winner->bucket.max_m == 32);
        CHECK(choice.runner_up->us == us);
        CHECK(choice.why.starts_with("stays"));
    }
    const std::vector<CandidateRecord> all{candidate(1, 10, true), candidate(2, 9.6), candidate(3, 11)};
    const auto choice = choose(all, 3);
    CHECK_FALSE(choice.stays);
    CHECK(choice.winner->bucket == bucket(8, 2));
    CHECK(choice.runner_up->bucket == bucket(32, 1));
    CHECK(choice.present->us == 10);
    CHECK(choose(std::vector{candidate(1, 10, true), candidate(2, 10)}, 0).stays);
}

TEST_CASE("WhatDidNotEndWellIsNoChoiceAndFinalsDecide") {
    auto failed = candidate(1, 1, true);
    failed.finding = {.status = Status::crashed};
    const std::vector<CandidateRecord> all{failed, candidate(2, 5), candidate(3, 5)};
    auto choice = choose(all, 3);
    CHECK_FALSE(choice.stays);
    CHECK_FALSE(choice.present);
    CHECK(choice.winner->bucket == bucket(8, 2));  // of equals the first
    CHECK(kiln::tune::choose(std::vector{failed}, 3).winner.has_value() == false);

    // The fastest of the screening was not replayed longer, so that its time is no final one.
    std::vector<CandidateRecord> finals{candidate(2, 4), candidate(3, 6), candidate(4, 5)};
    finals[1].finals_us = {6, 6, 6};
    finals[2].finals_us = {5, 5, 5};
    CHECK(choose(finals, 3).winner->bucket == bucket(8, 4));
}

TEST_CASE("TheScreeningSaysWhichAreReplayedLongerWhateverFinalsThereAre") {
    std::vector<CandidateRecord> all{candidate(1, 9, true), candidate(2, 5), candidate(3, 4), candidate(4, 6),
                                     candidate(5, 7)};
    for (auto& one : all) {
        one.finding.samples_us = {*one.finding.us};
    }
    all[3].finding.status = Status::wrong;
    CHECK(kiln::tune::finalists(all, 2) == std::vector<std::size_t>{2, 1, 0});
    // A tune that goes on finds some of their finals done.
    all[2].finals_us = {8, 8, 8};
    all[2].finding.us = 8;
    CHECK(kiln::tune::finalists(all, 2) == std::vector<std::size_t>{2, 1, 0});
    CHECK(kiln::tune::screened_us(all[2]) == 4);
}

TEST_CASE("NeighboursShareABucketOfTheSameTemplateAndConstants") {
    const std::vector<Bucket> present{bucket(8, 1), bucket(32, 2)};
    const auto may = [&](Decision lesser, Decision larger) {
        return kiln::tune::may_share(present, lesser, larger);
    };
    CHECK(may({4, bucket(4, 7)}, {8, bucket(8, 7)}));
    CHECK(may({8, bucket(8, 7)}, {16, bucket(16, 7)}));
    CHECK_FALSE(may({4, bucket(4, 7)}, {16, bucket(16, 7)}));  // M = 8 was not looked at
    CHECK_FALSE(may({4, bucket(4, 7)}, {8, bucket(8, 6)}));
    CHECK_FALSE(may({4, std::nullopt}, {8, bucket(8, 7)}));
    CHECK_FALSE(may({4, bucket(4, 7)}, {8, std::nullopt}));
    auto other = bucket(8, 7);
    other.template_id = "linear/other";
    CHECK_FALSE(may({4, bucket(4, 7)}, {8, other}));

    // Not slower by more than what counts as faster.
    CHECK(kiln::tune::may_merge(10, 10, 0));
    CHECK(kiln::tune::may_merge(10, 9, 0));
    CHECK_FALSE(kiln::tune::may_merge(10, 10.1, 0));
    CHECK(kiln::tune::may_merge(9.75, 10, 3));
    CHECK_FALSE(kiln::tune::may_merge(9.5, 10, 3));
}

TEST_CASE("AnMSpeaksForNoMoreThanTheBucketThatServesIt") {
    const std::vector<Bucket> present{bucket(4, 1), bucket(8, 2), bucket(16, 3), bucket(32, 4)};
    const auto with = [&](std::vector<Decision> decisions) {
        return with_decisions(present, decisions, Demand::none, always);
    };
    CHECK(with({{8, std::nullopt}}) == present);
    CHECK(with({{8, bucket(8, 7)}}) == std::vector{present[0], bucket(8, 7), present[2], present[3]});
    // M = 16 was not looked at.
    CHECK(with({{8, std::nullopt}, {32, bucket(32, 7)}}) ==
          std::vector{present[0], present[1], present[2], bucket(32, 7)});
    // In the middle of a bucket: below it, down to the one before; above it what there was.
    CHECK(with({{24, bucket(24, 7)}}) ==
          std::vector{present[0], present[1], present[2], bucket(24, 7), present[3]});
    // What was tried and stays, stays.
    CHECK(with({{20, std::nullopt}, {24, bucket(24, 7)}}) ==
          std::vector{present[0], present[1], present[2], bucket(20, 4), bucket(24, 7), present[3]});
    // Beyond the last.
    CHECK(with({{64, bucket(64, 7)}}) ==
          std::vector{present[0], present[1], present[2], present[3], bucket(64, 7)});
    // Two that share a bucket.
    CHECK(with({{4, bucket(8, 7)}, {8, bucket(8, 7)}}) == std::vector{bucket(8, 7), present[2], present[3]});
    CHECK(with_decisions({}, std::vector<Decision>{{4, bucket(4, 1)}, {8, std::nullopt}}, Demand::none,
                         always) == std::vector{bucket(4, 1)});
}

TEST_CASE("ADeterministicBucketStaysBehindOneThatIsNot") {
    const std::vector<Bucket> present{bucket(8, 2), bucket(16, 9), bucket(16, 3)};
    const auto with = [](const std::vector<Bucket>& before, std::vector<Decision> decisions) {
        return with_decisions(before, decisions, Demand::none, all_but_nine_waves);
    };
    CHECK(with(present, {{8, bucket(8, 9)}}) ==
          std::vector{bucket(8, 9), bucket(8, 2), bucket(16, 9), bucket(16, 3)});
    CHECK(with(present, {{16, bucket(16, 9)}}) == present);
    CHECK(with(present, {{16, bucket(16, 5)}}) == std::vector{bucket(8, 2), bucket(16, 5)});
    // One bucket for both Ms: what was deterministic for the lesser one still is what serves it.
    CHECK(with({bucket(8, 2), bucket(16, 3)}, {{8, bucket(16, 9)}, {16, bucket(16, 9)}}) ==
          std::vector{bucket(8, 9), bucket(8, 2), bucket(16, 9), bucket(16, 3)});
    // Below what is not deterministic as before; that one bucket follows for both is no reason to end it.
    CHECK(with({bucket(16, 3)}, {{8, bucket(8, 9)}}) == std::vector{bucket(8, 9), bucket(16, 3)});
}

TEST_CASE("WhatADemandDecidesLeavesTheOtherProblemsWhatTheyHave") {
    const auto with = [](const std::vector<Bucket>& present, std::vector<Decision> decisions) {
        return with_decisions(present, decisions, Demand::deterministic, all_but_nine_waves);
    };
    const std::vector<Bucket> present{bucket(8, 2), bucket(32, 9), bucket(32, 3)};
    CHECK(with(present, {{32, bucket(32, 4)}}) == std::vector{bucket(8, 2), bucket(32, 9), bucket(32, 4)});
    // In the middle: the one that is not deterministic ends there too, or it would not serve there any more.
    CHECK(with(present, {{16, bucket(16, 4)}}) ==
          std::vector{bucket(8, 2), bucket(16, 9), bucket(16, 4), bucket(32, 9), bucket(32, 3)});
    // What serves both is beaten for both.
    CHECK(with(present, {{8, bucket(8, 4)}}) == std::vector{bucket(8, 4), bucket(32, 9), bucket(32, 3)});
    // Beyond the last, and where nothing met the demand yet.
    CHECK(with(present, {{64, bucket(64, 4)}}) ==
          std::vector{bucket(8, 2), bucket(32, 9), bucket(32, 3), bucket(64, 4)});
    CHECK(with({bucket(32, 9)}, {{16, bucket(16, 4)}}) ==
          std::vector{bucket(16, 9), bucket(16, 4), bucket(32, 9)});
    CHECK(with(present, {{8, std::nullopt}, {32, std::nullopt}}) == present);
}
