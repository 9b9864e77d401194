// The file of all candidates: what is written is read, and what is not its own is refused.

#include <doctest/doctest.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/tune/record.hpp"

using kiln::tune::CandidateRecord;
using kiln::tune::ChoiceRecord;
using kiln::tune::parse_records;
using kiln::tune::Status;

namespace {

CandidateRecord candidate() {
    CandidateRecord record;
    record.subject = {"linear", {{"n", std::int64_t{16}}, {"kind", std::string("a")}}, "gfx950", 8};
    record.conditions = {.kind = "model",
                         .device = "a simulator",
                         .device_target = "gfx950:xnack-",
                         .compute_units = 256,
                         .simulated = true,
                         .driver = "a driver",
                         .compiler = "a compiler",
                         .seed = 3,
                         .error_bound = 0.5,
                         .min_improvement = 2.5,
                         .warmup = 5,
                         .iters = 20,
                         .processes = 3,
                         .model = 2,
                         .date = "2026-01-31"};
    record.bucket = {8, "linear/small_m", {{"waves", 2}}};
    record.code = "0123456789abcdef";
    record.finding = {.status = Status::ok, .message = {}, .error = 0.25, .bound = 1, .us = 3.5};
    record.finding.cost = kiln::tune::Cost{3.5, {{.symbol = "k", .us = 3.5, .bound_by = "memory"}}};
    return record;
}

}  // namespace

TEST_CASE("WhatIsWrittenIsRead") {
    auto second = candidate();
    second.bucket.constants["waves"] = 4;
    second.present = true;
    second.finding = {.status = Status::ok, .message = {}, .error = 0.25, .bound = 1, .us = 4};
    second.finding.samples_us = {4, 4.25};
    auto final_record = second;
    final_record.finals_us = {3, 3.25, 3.5};
    final_record.finding.us = 3.25;
    auto wrong = candidate();
    wrong.bucket.max_m = 4;
    wrong.finding = {.status = Status::wrong, .message = "NaN", .bound = 1};
    wrong.finding.error = std::numeric_limits<double>::quiet_NaN();
    ChoiceRecord choice;
    choice.subject = second.subject;
    choice.conditions = second.conditions;
    choice.winner = {second.bucket, 3.25};
    choice.why = "because";

    const auto text = candidate_line(candidate()) + candidate_line(second) + candidate_line(wrong) +
                      final_line(final_record) + choice_line(choice);
    const auto records = parse_records(text + R"({"schema":1,"rec)", "file");
    REQUIRE_MESSAGE(records, records.error().message);
    REQUIRE(records->candidates.size() == 3);
    CHECK(candidate_line(records->candidates[0]) == candidate_line(candidate()));
    CHECK(records->candidates[1].present);
    CHECK(records->candidates[1].finding.us == 3.25);  // the final one
    CHECK(records->candidates[1].finals_us.size() == 3);
    CHECK(records->candidates[1].finding.samples_us == second.finding.samples_us);
    CHECK(records->candidates[2].finding.status == Status::wrong);
    CHECK_FALSE(records->candidates[2].finding.us);
    CHECK(records->candidates[0].conditions.difference(second.conditions).empty());
    REQUIRE(records->choices.size() == 1);
    CHECK(records->choices[0].winner->bucket == second.bucket);
    CHECK_FALSE(records->choices[0].runner_up);
}

TEST_CASE("OfFilesThatWerePutTogetherEachFinalIsOfItsOwnFile") {
    auto first = candidate();
    first.finals_us = {3};
    first.finding.us = 3;
    auto second = first;
    second.conditions.driver = "another driver";
    second.finals_us = {2};
    second.finding.us = 2;
    auto again = first;
    again.conditions.date = "2026-02-01";
    again.finals_us = {4};
    again.finding.us = 4;
    const auto whole = [](const CandidateRecord& record) {
        auto screened = record;
        screened.finding.us = 5;
        return candidate_line(screened) + final_line(record);
    };
    const auto records = parse_records(whole(first) + whole(second) + whole(again), "file");
    REQUIRE_MESSAGE(records, records.error().message);
    REQUIRE(records->candidates.size() == 2);
    CHECK(records->candidates[0].finding.us == 2);
    CHECK(records->candidates[1].finding.us == 4);
    // A final whose candidate is in no file.
    second.conditions.driver = "a third driver";
    CHECK_FALSE(parse_records(candidate_line(first) + final_line(second), "file"));
}

TEST_CASE("OfRecordsOfTheSameTheLastOneHolds") {
    const auto first = candidate();
    auto again = first;
    again.code = "fedcba9876543210";
    again.finding.us = 2;
    auto elsewhere = first;
    elsewhere.conditions.seed = 9;
    auto present = first;
    present.present = true;
    auto present_later = present;
    present_later.bucket.constants["waves"] = 4;
    ChoiceRecord choice;
    choice.subject = first.subject;
    choice.conditions = first.conditions;
    choice.winner = {first.bucket, 3.5};
    auto chosen_later = choice;
    chosen_later.winner->us = 2;
    chosen_later.conditions.date = "2026-02-01";
    CHECK_FALSE(choice.says_same(chosen_later));

    const auto records = parse_records(candidate_line(first) + candidate_line(present) + choice_line(choice) +
                                           candidate_line(elsewhere) + candidate_line(again) +
                                           candidate_line(present_later) + choice_line(chosen_later),
                                       "file");
    REQUIRE_MESSAGE(records, records.error().message);
    REQUIRE(records->candidates.size() == 3);
    CHECK(records->candidates[0].conditions.seed == 9);
    CHECK(records->candidates[1].code == again.code);
    CHECK(records->candidates[1].finding.us == 2);
    CHECK(records->candidates[2].bucket == present_later.bucket);
    REQUIRE(records->choices.size() == 1);
    CHECK(records->choices[0].says_same(chosen_later));
    CHECK(records->choices[0].winner->us == 2);
}

TEST_CASE("OnlyTheBeginningOfARecordIsPassedOverAtTheEnd") {
    const auto good = candidate_line(candidate());
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{14}, good.size() - 1}) {
        const auto records = parse_records(good + good.substr(0, size), "file");
        CAPTURE(size);
        REQUIRE(records);
        CHECK(records->candidates.size() == 1);
    }
    for (const std::string other : {"my notes", "[]", "{}", R"({"schema":1,"rows":[]})"}) {
        const auto records = parse_records(good + other, "file");
        CAPTURE(other);
        REQUIRE_FALSE(records);
        CHECK(records.error().message.find("file:2: expected a record of kiln tune") == 0);
        CHECK(records.error().message.find(other) != std::string::npos);
    }
}

TEST_CASE("WhatIsNoRecordIsNamedWithItsLine") {
    const auto good = candidate_line(candidate());
    const auto refused = [&](const std::string& line, const std::string& said) {
        const auto records = parse_records(good + line + "\n", "file");
        REQUIRE_FALSE(records);
        INFO(records.error().message);
        CHECK(records.error().message.find("file:2:") == 0);
        CHECK(records.error().message.find(said) != std::string::npos);
    };
    refused("my notes", "record of kiln tune");
    refused("[]", "record of kiln tune");
    refused("{}", "schema");
    auto other = good.substr(0, good.size() - 1);
    other.replace(other.find("\"schema\":1"), 10, "\"schema\":2");
    refused(other, "expected schema 1, found 2");
    auto unknown = good.substr(0, good.size() - 1);
    unknown.replace(unknown.find("\"status\":\"ok\""), 13, "\"status\":\"so\"");
    refused(unknown, "so");
    for (const std::string name : {"us", "m"}) {
        auto below = nlohmann::json::parse(good);
        below[name] = -1;
        refused(below.dump(), "found -1");
    }
}

TEST_CASE("ConditionsDifferByNameButForTheDate") {
    auto one = candidate().conditions;
    auto other = one;
    other.date = "2030-01-01";
    CHECK(one.difference(other).empty());
    other.compiler = "another compiler";
    CHECK(one.difference(other).find("compiler") == 0);
    other = one;
    other.seed = 4;
    CHECK(one.difference(other).find("seed 3 and 4") == 0);
    other = one;
    other.model = 3;
    CHECK(one.difference(other).find("cost model 2 and 3") == 0);
}
