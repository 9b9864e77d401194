// Rows for every problem that their open fields admit, as a service takes them. Nothing is compiled.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::operators::linear;
using kiln::operators::Problem;

namespace {

struct General {
    kiln::test::Scratch scratch;
    const kiln::tables::Target target = *kiln::tables::parse_target("gfx950");

    std::unique_ptr<Service> open() {
        auto overrides = kiln::test::overrides_in(scratch);
        overrides.shapes_path = scratch
                                    .write("table.json",
                                           R"({"schema": 1, "rows": [
{"operator": "linear", "problem": {"n": {"min": 32, "max": 4096}, "k": 128}, "target": "gfx950",
 "problems": [{"n": 64}, {"n": 96}],
 "buckets": [{"max_m": 16, "template": "linear/small_m",
              "constants": {"tiles_n": 2, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}],
 "provenance": {"kind": "untuned"}},
{"operator": "linear", "problem": {"n": 96, "k": 128}, "target": "gfx950",
 "buckets": [{"max_m": 32, "template": "linear/small_m",
              "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}],
 "provenance": {"kind": "untuned"}}]})")
                                    .string();
        return kiln::test::open(overrides);
    }
    static Problem problem(std::int64_t n) {
        return *kiln::operators::complete(linear(), {{"n", n}, {"k", std::int64_t{128}}});
    }
    static std::vector<std::int64_t> widths(const std::vector<RowPtr>& rows) {
        std::vector<std::int64_t> all;
        for (const RowPtr& row : rows) {
            CHECK(!row->is_general());
            all.push_back(std::get<std::int64_t>(row->problem.at("n")));
        }
        return all;
    }
};

using Widths = std::vector<std::int64_t>;

}  // namespace

TEST_CASE_FIXTURE(General, "general row: a problem that it admits is selected, explained and specialised") {
    const auto service = open();
    const auto row = service->select(linear(), problem(2048), target);
    REQUIRE_MESSAGE(row, row.error().error.message);
    CHECK((*row)->problem == problem(2048));
    const auto made = service->pipeline(**row, (*row)->buckets.front());
    REQUIRE(made);
    CHECK(made->kernel_name == "kiln_linear_n2048_k128_m16");

    const auto explained = service->explain(linear(), problem(2048), 16, target);
    CHECK(!explained.refusal);
    CHECK(explained.found->is_general());
    CHECK(explained.pipeline->stages.front().specialisation.request_document ==
          made->stages.front().specialisation.request_document);
    CHECK(service->explain(linear(), problem(2048), 17, target).refusal->decline == KILN_DECLINE_M_TOO_LARGE);

    const auto exact = service->explain(linear(), problem(96), 32, target);
    CHECK(!exact.refusal);
    CHECK(!exact.found->is_general());
    REQUIRE(exact.shadowed.size() == 1);
    CHECK(exact.shadowed[0].row->is_general());

    CHECK(service->select(linear(), problem(4112), target).error().decline == KILN_DECLINE_SHAPE);
}

TEST_CASE_FIXTURE(General,
                  "general row: a problem that its constants do not tile declines, and is told why") {
    const auto row = open()->select(linear(), problem(48), target);
    REQUIRE(!row);
    CHECK(row.error().decline == KILN_DECLINE_SHAPE);
    CHECK(row.error().error.message.find("tiles_n: expected 1 to 8, a divisor of n / 16 = 3, found 2") !=
          std::string::npos);
}

TEST_CASE_FIXTURE(General,
                  "general row: warming takes the problems that it lists, and one that is spelt out") {
    const auto service = open();
    WarmFilter filter;
    filter.op = &linear();
    filter.problem = {{"k", std::int64_t{128}}};
    filter.target = target;
    CHECK(widths(service->rows(filter)) == Widths{64, 96});  // the second from the exact row
    filter.target.reset();
    CHECK(widths(service->rows(filter)) == Widths{64, 96});
    filter.problem["n"] = std::int64_t{2048};
    CHECK(widths(service->rows(filter)) == Widths{2048});
    filter.target = target;
    CHECK(widths(service->rows(filter)) == Widths{2048});
    filter.problem["n"] = std::int64_t{64};
    CHECK(widths(service->rows(filter)) == Widths{64});
    filter.problem["n"] = std::int64_t{48};  // not tiled
    CHECK(service->rows(filter).empty());
    filter.problem["n"] = std::int64_t{8192};
    CHECK(service->rows(filter).empty());
}
