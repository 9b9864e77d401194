// What is said of rows beside whether they are well-formed.

#include "runtime/operators/row_review.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/operators/row_samples.hpp"

using namespace kiln::operators;
using kiln::tables::Row;
using kiln::tables::RowFault;

namespace {

using Severity = RowFault::Severity;

std::vector<RowFault> review(Row row) {
    const std::vector<Bucket> given = row.buckets;
    const std::vector<RowFault> faults = check_row(row);
    REQUIRE_MESSAGE(faults.empty(), faults.front().expected);
    return review_row(row, given);
}

Row sort_row() {
    Row row;
    row.operator_name = "moe_sort";
    row.open = {{"experts", {{}, 256}}, {"slots", {}}, {"block_m", {}}, {"quant", {}}, {"hidden", {}}};
    row.target = {"gfx950", {}};
    row.buckets = {{0, "moe_sort/compact", {}, {}, 32}, {4096, "moe_sort/general", {}}};
    return row;
}

Row linear_row() {
    Row row;
    row.operator_name = "linear";
    row.problem = {{"k", std::int64_t{4096}}};
    row.open = {{"n", {32, 8192}}};
    row.target = {"gfx950", {}};
    const auto derived = linear().derive(
        *complete(linear(), {{"n", std::int64_t{5120}}, {"k", std::int64_t{4096}}}), row.target);
    REQUIRE(derived);
    row.buckets = *derived;
    return row;
}

RowFault only(const std::vector<RowFault>& faults) {
    REQUIRE(faults.size() == 1);
    return faults.front();
}

}  // namespace

TEST_CASE("review: of rows that serve there is nothing to say") {
    CHECK(review(sort_row()).empty());
    CHECK(review(linear_row()).empty());
}

TEST_CASE("review: samples meet every range that has a legal problem, be it narrow") {
    Row row = linear_row();
    for (const auto& [least, most] :
         {std::pair<std::int64_t, std::int64_t>{16, 16}, {17, 32}, {4000, 4015}, {1, 1 << 20}}) {
        CAPTURE(least);
        row.open["n"] = {least, most};
        Row checked = row;
        REQUIRE(check_row(checked).empty());
        const std::vector<Problem> samples = legal_samples(linear(), checked);
        CHECK(!samples.empty());
        for (const Problem& sample : samples) {
            CHECK(checked.admits(sample));
            CHECK(linear().judge(sample));
        }
    }
    for (const Operator* op : all_operators()) {
        CAPTURE(op->name());
        Row open;
        open.operator_name = op->name();
        for (const Field& field : op->fields()) {
            if (field.is_required()) {
                open.open.emplace(field.name, kiln::tables::FieldRange{});
            } else if (field.is_word()) {
                open.problem.emplace(field.name, std::string(field.words.front()));
            } else {
                open.problem.emplace(field.name, *field.default_number);
            }
        }
        CHECK(!legal_samples(*op, open).empty());
    }
}

TEST_CASE("review: a row whose every field is open has samples, with each word that is served") {
    for (const Operator* op : all_operators()) {
        CAPTURE(op->name());
        Row row;
        row.operator_name = op->name();
        for (const Field& field : op->fields()) {
            row.open.emplace(field.name, kiln::tables::FieldRange{});
        }
        const std::vector<Problem> samples = legal_samples(*op, row);
        CHECK(!samples.empty());
        const auto has = [&](const char* field, const char* word) {
            return std::ranges::any_of(samples, [&](const Problem& sample) {
                return sample.find(field)->second == kiln::tables::FieldValue(std::string(word));
            });
        };
        if (op->name() == "fused_moe") {
            CHECK(has("weights", "mxfp4"));
            CHECK(has("weights", "fp8"));
            CHECK(has("gate_up", "interleaved"));
        }
    }
}

TEST_CASE("review: a general row without problems has the names of its constants checked") {
    Row row = sort_row();
    row.buckets[1].constants = {{"waves", 3}};
    const RowFault unknown = only(review(row));
    CHECK(unknown.pointer == "/buckets/1/constants/waves");
    CHECK(unknown.severity == Severity::fault);

    row = linear_row();
    row.buckets[0].constants.emplace("wavs", 3);
    CHECK(only(review(row)).pointer == "/buckets/0/constants/wavs");
    row.buckets[0].constants.erase("wavs");
    row.buckets[0].constants.erase("tiles_n");
    const RowFault missing = only(review(row));
    CHECK(missing.pointer == "/buckets/0/constants");
    CHECK(missing.expected == "the constant tiles_n");
    CHECK(missing.severity == Severity::fault);
}

TEST_CASE("review: constants that serve no problem of the row that was tried are a warning") {
    Row row = linear_row();
    row.buckets[0].constants["tiles_n"] = 7;  // n / 16 from 2 to 512 has few that 7 divides
    row.open["n"] = {4096, 4096};
    const RowFault untiled = only(review(row));
    CHECK(untiled.severity == Severity::warning);
    CHECK(untiled.pointer == "/buckets");
    CHECK(untiled.found.starts_with("none in 1: "));
    CHECK(untiled.found.ends_with("expected 1 to 8, a divisor of n / 16 = 256, found 7"));

    row = sort_row();
    row.buckets[0].max_pairs = 100'000;  // the compact sort has no room for that many
    row.buckets[1].max_m = 200'000;
    CHECK(only(review(row)).severity == Severity::warning);
}

TEST_CASE("review: ranges that no legal problem meets are a warning") {
    Row row = sort_row();
    row.open["experts"] = {2000000, 3000000};
    const RowFault large = only(review(row));
    CHECK(large.severity == Severity::warning);
    CHECK(large.pointer == "/problem");
    row = sort_row();
    row.open["slots"] = {{}, 0};
    CHECK(only(review(row)).pointer == "/problem");
}

TEST_CASE("review: a bucket that those before it leave nothing to is a warning") {
    Row row = sort_row();
    row.buckets = {{0, "moe_sort/compact", {}, {}, 32}, {2, "moe_sort/general", {}}};
    const RowFault hidden = only(review(row));
    CHECK(hidden.severity == Severity::warning);
    CHECK(hidden.pointer == "/buckets/1");
    CHECK(hidden.expected == "an M above 32, which the buckets before it reach with 1 slot");

    // Sixteen slots leave it M = 3 and above.
    row.open["slots"] = {16, {}};
    row.buckets[1].max_m = 3;
    CHECK(review(row).empty());

    // An exact row has dropped it by then.
    row.open.clear();
    row.problem = {{"experts", std::int64_t{8}}, {"slots", std::int64_t{2}}, {"block_m", std::int64_t{32}}};
    const RowFault exact = only(review(row));
    CHECK(exact.pointer == "/buckets/1");
    CHECK(exact.expected == "an M above 16, which the buckets before it reach with 2 slots");
    row.buckets[1].max_m = 17;
    CHECK(review(row).empty());
}
