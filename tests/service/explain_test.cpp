#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::operators::linear;
using kiln::test::open;
using kiln::test::overrides_in;
using kiln::test::Scratch;
using kiln::test::small_problem;
using kiln::test::small_table;

namespace {

struct Explained {
    Scratch scratch;
    Overrides overrides = overrides_in(scratch);
    kiln::tables::Target target = *kiln::tables::parse_target("gfx950:sramecc+:xnack-");

    Explained() { overrides.shapes_path = scratch.write("table.json", small_table()).string(); }
};

}  // namespace

TEST_CASE_FIXTURE(Explained, "explain: names row, bucket, specialisation and key, and whether it is cached") {
    const std::unique_ptr<Service> service = open(overrides);
    Explanation before = service->explain(linear(), small_problem(), 3, target);
    REQUIRE(!before.refusal);
    CHECK(before.row->origin.text().find("table.json:1") != std::string::npos);
    CHECK(before.bucket->max_m == 16);
    CHECK(before.bucket_index == 0);
    CHECK(before.pipeline->kernel_name == "kiln_linear_n16_k128_m16");
    REQUIRE(before.kept.size() == 1);
    CHECK_FALSE(before.kept.front().cached);
    CHECK(service->statistics().compiles == 0);

    REQUIRE(service->obtain(before.pipeline->stages.front().specialisation));
    const Explanation after = service->explain(linear(), small_problem(), 3, target);
    CHECK(after.kept.front().cached);
    REQUIRE(after.kept.front().key);
    CHECK(after.kept.front().key->digest() == before.kept.front().key->digest());
    CHECK(nlohmann::json::parse(after.kept.front().key->document()).contains("build"));
}

TEST_CASE_FIXTURE(Explained, "explain: says why a problem or an M is not served") {
    const std::unique_ptr<Service> service = open(overrides);
    CHECK(service->explain(linear(), small_problem(), 17, target).refusal->decline ==
          KILN_DECLINE_M_TOO_LARGE);
    CHECK(service->explain(linear(), small_problem(), -1, target).refusal->decline ==
          KILN_DECLINE_M_NEGATIVE);
    Problem problem = small_problem();
    problem["k"] = std::int64_t{256};
    CHECK(service->explain(linear(), problem, 1, target).refusal->decline == KILN_DECLINE_SHAPE);
}

TEST_CASE_FIXTURE(Explained, "explain: works without a compiler, and says what is missing") {
    overrides.worker = "/nowhere";
    const std::unique_ptr<Service> service = open(overrides);
    const Explanation explanation = service->explain(linear(), small_problem(), 3, target);
    REQUIRE(!explanation.refusal);
    REQUIRE(explanation.kept.size() == 1);
    CHECK(!explanation.kept.front().key);
    CHECK(explanation.kept.front().key_missing.find("/nowhere") != std::string::npos);
}

TEST_CASE_FIXTURE(Explained, "an artifact's metadata says what was built and what it takes") {
    const std::unique_ptr<Service> service = open(overrides);
    const auto artifact = service->obtain(kiln::test::small_specialisation(*service));
    REQUIRE_MESSAGE(artifact, artifact.error().message);
    const auto metadata = nlohmann::json::parse((*artifact)->metadata.get());
    CHECK(metadata["kernel"] == "kiln_linear_n16_k128_m16");
    CHECK(metadata["template"] == "linear/small_m");
    CHECK(metadata["target"] == "gfx950");
    CHECK(metadata["constants"]["lane_rows"] == 16);
    CHECK(metadata["problem"]["n"] == 16);
    CHECK(metadata["vgprs"] > 0);
    CHECK(metadata["scratch_bytes"] == 0);
    CHECK(metadata["vgpr_spills"] == 0);
    CHECK(metadata["arguments"].size() == 6);
    CHECK(metadata["arguments"][5]["name"] == "ldx");
    CHECK(metadata["compile_seconds"] > 0);
    CHECK((*artifact)->listing.get().starts_with("kiln-listing 1\n"));
}

TEST_CASE_FIXTURE(Explained,
                  "rows: a filter chooses by operator, field, target and file; hidden rows are left out") {
    const std::unique_ptr<Service> service = open(overrides);
    const auto count = [&](const WarmFilter& filter) { return service->rows(filter).size(); };
    const std::size_t all = count({});  // of a general row, those that it names
    CHECK(all > 3);
    const std::size_t in_tables = service->snapshot()->table->rows().size();
    WarmFilter filter;
    filter.problem["n"] = std::int64_t{16};
    CHECK(count(filter) == 1);
    filter.op = &linear();
    CHECK(count(filter) == 1);
    filter.target = kiln::tables::parse_target("gfx942").value();
    CHECK(count(filter) == 0);

    // The same problem again in a layer below is hidden.
    overrides.shapes_path =
        *overrides.shapes_path + ":" + scratch.write("second.json", small_table()).string();
    const std::unique_ptr<Service> layered = open(overrides);
    CHECK(layered->rows({}).size() == all);
    CHECK(layered->snapshot()->table->rows().size() == in_tables + 1);
}

TEST_CASE_FIXTURE(Explained, "warm: obtains all, reports each, and finds them the second time") {
    const std::unique_ptr<Service> service = open(overrides);
    WarmFilter filter;
    filter.problem["n"] = std::int64_t{16};
    std::vector<kiln::Error> errors;
    const auto wanted = service->matching(filter, errors);
    CHECK(errors.empty());
    REQUIRE(wanted.size() == 1);
    std::size_t calls = 0;
    const WarmSummary first =
        service->warm(wanted, {.progress = [&](std::size_t done, std::size_t total, const WarmItem& item) {
                          ++calls;
                          CHECK(done <= total);
                          CHECK(!item.error);
                      }});
    CHECK(calls == 1);
    CHECK(first.compiled == 1);
    CHECK(first.items.front().key_digest.size() == 64);
    const WarmSummary second = service->warm(wanted);
    CHECK(second.hits == 1);
    CHECK(second.compiled == 0);
    CHECK(service->warm({}).items.empty());
}

TEST_CASE_FIXTURE(Explained, "reload: tables and templates are of one moment, whatever is saved afterwards") {
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    const std::string name = "kernels/linear/small_m.gfx950.hip";
    const std::unique_ptr<Service> service = open(overrides);
    REQUIRE(service->reload());
    const std::string first = Scratch::read(scratch.folder() / name);
    scratch.write(name, "half of a templ");  // before anything asked for it
    CHECK(kiln::test::small_specialisation(*service).request.source == first);
    REQUIRE(service->reload());
    CHECK(kiln::test::small_specialisation(*service).request.source == "half of a templ");
    std::filesystem::remove(scratch.folder() / name);
    CHECK(kiln::test::small_specialisation(*service).request.source == "half of a templ");
}

TEST_CASE_FIXTURE(Explained,
                  "reload: what was given out lives on, and a template in use must not be missing") {
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    const std::filesystem::path source = scratch.kernels() / "linear/small_m.gfx942.hip";
    std::filesystem::copy_file(scratch.kernels() / "linear/small_m.gfx950.hip", source);
    scratch.write("table.json", small_table("gfx942"));
    const std::unique_ptr<Service> service = open(overrides);
    WarmFilter filter;
    filter.target = kiln::tables::parse_target("gfx942").value();
    std::vector<kiln::Error> errors;
    CHECK(service->matching(filter, errors).size() == 1);  // reads the template

    REQUIRE(service->reload());  // the new snapshot remembers what was in use
    std::filesystem::remove(source);
    const auto refused = service->reload();
    REQUIRE(!refused);
    CHECK(refused.error().message.find("linear/small_m.gfx942.hip") != std::string::npos);
    CHECK(service->statistics().reloads == 1);

    const Explanation before = service->explain(linear(), small_problem(), 3, *filter.target);
    REQUIRE(before.row != nullptr);
    const SnapshotPtr snapshot = service->snapshot();
    scratch.write("table.json", small_table("gfx950"));
    REQUIRE(service->reload());
    CHECK(service->snapshot() != snapshot);
    CHECK(before.row->target.text() == "gfx942");
    CHECK(before.bucket->max_m == 16);
    CHECK(service->explain(linear(), small_problem(), 3, *filter.target).refusal->decline ==
          KILN_DECLINE_PROCESSOR);
}
