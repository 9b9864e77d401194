// Which candidate serves, and the buckets of the row that says so.

#include <doctest/doctest.h>

#include "runtime/tune/choice.hpp"

using kiln::tables::Bucket;
using kiln::tune::CandidateRecord;
using kiln::tune::choose;
using kiln::tune::Decision;
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

TEST_CASE("AnMSpeaksForNoMoreThanTheBucketThatServesIt") {
    const std::vector<Bucket> present{bucket(4, 1), bucket(8, 2), bucket(16, 3), bucket(32, 4)};
    const auto with = [&](std::vector<Decision> decisions) {
        return with_decisions(present, decisions, always);
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
    CHECK(with_decisions({}, std::vector<Decision>{{4, bucket(4, 1)}, {8, std::nullopt}}, always) ==
          std::vector{bucket(4, 1)});
}

TEST_CASE("ADeterministicBucketStaysBehindOneThatIsNot") {
    const std::vector<Bucket> present{bucket(8, 2), bucket(16, 9), bucket(16, 3)};
    CHECK(with_decisions(present, std::vector<Decision>{{8, bucket(8, 9)}}, all_but_nine_waves) ==
          std::vector{bucket(8, 9), bucket(8, 2), bucket(16, 9), bucket(16, 3)});
    CHECK(with_decisions(present, std::vector<Decision>{{16, bucket(16, 9)}}, all_but_nine_waves) ==
          std::vector{bucket(8, 2), bucket(16, 9), bucket(16, 3)});
    CHECK(with_decisions(present, std::vector<Decision>{{16, bucket(16, 5)}}, all_but_nine_waves) ==
          std::vector{bucket(8, 2), bucket(16, 5)});
}
