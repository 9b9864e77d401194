// The row that a tune makes.

#include <doctest/doctest.h>

#include <memory>

#include <nlohmann/json.hpp>

#include "runtime/tune/made_row.hpp"

using kiln::tables::Bucket;
using kiln::tables::Row;
using kiln::tune::Conditions;
using kiln::tune::made_row;
using kiln::tune::TunedProblem;

namespace {

TunedProblem tuned_problem() {
    TunedProblem tuned;
    tuned.op = &kiln::operators::fused_moe();
    auto problem = kiln::operators::parse_problem(
        *tuned.op, std::vector<std::string>{"hidden=512", "intermediate=256", "experts=16", "slots=4",
                                            "weights=mxfp4", "deterministic=1"});
    REQUIRE_MESSAGE(problem, problem.error().message);
    tuned.problem = *problem;
    tuned.target = *kiln::tables::parse_target("gfx950");
    return tuned;
}

Conditions conditions_of(const char* kind) {
    Conditions conditions;
    conditions.kind = kind;
    return conditions;
}

}  // namespace

TEST_CASE("ADemandIsNoFieldOfARowAndComputeUnitsStay") {
    TunedProblem tuned = tuned_problem();
    auto before = std::make_shared<Row>();
    before->cu_num = 256;
    before->provenance.document = R"({"kind": "untuned", "note": "as shipped", "before": {"kind": "older"}})";
    tuned.before = before;
    const std::vector<Bucket> buckets{{8, "fused_moe/mxmoe", {{"g2", 1}}}};
    const Row row = made_row(tuned, conditions_of("model"), buckets);
    CHECK_FALSE(row.problem.contains("deterministic"));
    CHECK(row.problem.contains("hidden"));
    CHECK(row.buckets == buckets);
    CHECK(row.cu_num == 256);
    const auto provenance = nlohmann::json::parse(row.provenance.document);
    CHECK(provenance["kind"] == "model");
    CHECK(provenance["before"] == nlohmann::json{{"kind", "untuned"}, {"note", "as shipped"}});

    tuned.before = nullptr;
    CHECK_FALSE(made_row(tuned, conditions_of("model"), buckets).cu_num);
}

TEST_CASE("AModelGivesWayToAMeasurementAlone") {
    Row there;
    for (const char* kind : {"measured", "published", "imported"}) {
        there.provenance.kind = kind;
        CHECK(kiln::tune::gives_way_to(conditions_of("model"), there).find(kind) != std::string::npos);
        CHECK(kiln::tune::gives_way_to(conditions_of("measured"), there).empty());
    }
    there.provenance.kind = "untuned";
    CHECK(kiln::tune::gives_way_to(conditions_of("model"), there).empty());
}
