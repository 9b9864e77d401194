#include "runtime/tuned_config/import.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/shipped/shipped.hpp"
#include "runtime/tables/writer.hpp"
#include "tests/tables/support.hpp"
#include "tests/tuned_config/support.hpp"

using namespace kiln::tuned_config;
using kiln::tables::Row;
using nlohmann::json;

namespace {

std::vector<kiln::tables::RowFault> accept(Row&) {
    return {};
}

Import import_rows(const std::string& rows) {
    auto made = import_csv("folder/t.csv", header() + rows, accept);
    CHECK_MESSAGE(made.form.faults.empty(), kiln::tables::to_error(made.form.faults).message);
    return made;
}

std::vector<std::int64_t> edges(const Row& row) {
    std::vector<std::int64_t> made;
    for (const auto& bucket : row.buckets) {
        made.push_back(bucket.max_m);
    }
    return made;
}

std::string leftover(const Cells& cells) {
    const auto made = import_rows(row_text(cells));
    CHECK(made.rows.empty());
    REQUIRE(made.leftovers.size() == 1);
    CHECK(made.leftovers.front().line == 2);
    return made.leftovers.front().reason;
}

using Edges = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("ImportMakesARowOfTheRowsForOneProblemAndDevice") {
    const auto made = import_rows(row_text(tiles_of_32("32")) + row_text() + row_text({{"cu_num", "64"}}) +
                                  row_text({{"inter_dim", "256"}, {"cu_num", ""}}));
    REQUIRE(made.rows.size() == 3);
    CHECK(made.num_imported == 4);
    CHECK(made.leftovers.empty());
    const auto& row = made.rows[0];
    CHECK(row.operator_name == "fused_moe");
    CHECK(kiln::tables::to_text(row.problem) ==
          "experts=512 hidden=4096 intermediate=512 slots=10 weights=mxfp4");
    CHECK(row.target.text() == "gfx950");
    CHECK(row.cu_num == 256);
    CHECK(edges(row) == Edges{16, 32});  // by token, whatever the order of the file
    CHECK(row.buckets[0].template_id == "fused_moe/mxmoe");
    CHECK(row.buckets[0].constants ==
          kiln::tables::Constants{{"block_m", 16}, {"f16in", 1}, {"g1_nt", 1}, {"g2", 0}, {"g2_nt", 0}});
    CHECK(made.rows[1].cu_num == 64);
    CHECK(made.rows[2].cu_num == std::nullopt);
}

TEST_CASE("ImportKeepsInTheProvenanceWhatTheFileSays") {
    const auto made = import_rows(
        row_text() +
        row_text({{"token", "32"}, {"us1", "50.5"}, {"us2", "49.5"}, {"us", "100"}, {"err2", "0.02"}}));
    REQUIRE(made.rows.size() == 1);
    const auto said = json::parse(made.rows[0].provenance.document);
    CHECK(made.rows[0].provenance.kind == "imported");
    CHECK(said["kind"] == "imported");
    CHECK(said["file"] == "t.csv");
    CHECK(said["columns"].size() == kColumns.size());
    REQUIRE(said["rows"].size() == 2);
    CHECK(said["rows"][0]["max_m"] == 16);
    CHECK(said["rows"][0]["line"] == 2);
    CHECK(said["rows"][0]["timing"] == "end_to_end");
    CHECK(said["rows"][0]["us"] == 92.1512);
    CHECK(said["rows"][0]["err1"] == doctest::Approx(0.011));
    CHECK(said["rows"][0]["cells"][27] == "2750.25");
    CHECK(said["rows"][1]["timing"] == "sum_of_stages");
    CHECK(said["rows"][1]["us2"] == 49.5);
    CHECK(said["rows"][1]["err2"] == 0.02);
    CHECK(made.timings == std::map<Timing, std::size_t>{{Timing::end_to_end, 1}, {Timing::sum_of_stages, 1}});
}

TEST_CASE("ImportListsRowsWithoutACounterpartWithTheReason") {
    CHECK(leftover({{"act_type", "ActivationType.Gelu"}}) ==
          "act_type: fused_moe/mxmoe is for ActivationType.Silu, found ActivationType.Gelu");
    CHECK(leftover({{"dtype", "torch.float16"}}).starts_with("dtype: "));
    CHECK(leftover({{"q_dtype_a", "torch.bfloat16"}}).starts_with("q_dtype_a: "));
    CHECK(leftover({{"q_dtype_w", "torch.float8_e4m3fn"}}).starts_with("q_dtype_w: "));
    CHECK(leftover({{"q_type", "QuantType.per_1x128"}}).starts_with("q_type: "));
    CHECK(leftover({{"use_g1u1", "0"}}).starts_with("use_g1u1: "));
    CHECK(leftover({{"doweight_stage1", "1"}}).starts_with("doweight_stage1: "));
    CHECK(leftover({{"ksplit", "4"}}).starts_with("ksplit: "));
    CHECK(leftover({{"run_1stage", "1"}}).starts_with("run_1stage: "));
    CHECK(leftover({{"token", "48"}}).starts_with("token: "));
    CHECK(leftover({{"token", "65536"}}).starts_with("token: "));
    CHECK(leftover({{"block_m", "32"}}) == "block_m: the kernels' tiles have 16 rows, found 32");
    CHECK(leftover({{"kernelName1", "_ZN5aiter"}}) == "kernelName1: no kernel here stands for \"_ZN5aiter\"");

    // What the operator refuses has none either, and its words are the reason.
    const auto refused =
        import_csv("t.csv", header() + row_text() + row_text({{"model_dim", "4000"}}), [](Row& row) {
            CHECK(row.buckets.size() == 1);
            return row.problem.find("hidden")->second == kiln::tables::FieldValue(std::int64_t{4000})
                       ? std::vector<kiln::tables::RowFault>{{"/problem/hidden", "a multiple of 256", "4000"}}
                       : std::vector<kiln::tables::RowFault>{};
        });
    CHECK(refused.rows.size() == 1);
    REQUIRE(refused.leftovers.size() == 1);
    CHECK(refused.leftovers[0].line == 3);
    CHECK(refused.leftovers[0].what == "token 16 of model_dim=4000 inter_dim=512 expert=512 topk=10");
    CHECK(refused.leftovers[0].reason == "/problem/hidden: expected a multiple of 256, found 4000");
}

TEST_CASE("ImportOfAFaultyFileMakesNothing") {
    const auto made = import_csv("t.csv", header() + row_text() + row_text({{"us", "x"}}), accept);
    CHECK(made.form.faults.size() == 1);
    CHECK(made.rows.empty());
    CHECK(made.num_imported == 0);
}

TEST_CASE("ImportSaysForWhichMNothingWasPublished") {
    const auto made = import_rows(row_text() + row_text(tiles_of_32("32")) + row_text(tiles_of_32("256")));
    REQUIRE(made.gaps.size() == 2);
    CHECK(made.gaps[0].from == 1);
    CHECK(made.gaps[0].to == 8);
    CHECK(made.gaps[1].from == 33);
    CHECK(made.gaps[1].to == 128);
    CHECK(import_rows(row_text({{"token", "1"}}) + row_text({{"token", "2"}})).gaps.empty());
}

TEST_CASE("FillGapsTakesWhatServedThereBefore") {
    const auto all_alike = [](const kiln::tables::Bucket&) { return true; };
    auto made = import_rows(row_text() + row_text(tiles_of_32("32")) + row_text(tiles_of_32("256")));
    Row present = made.rows[0];
    present.buckets = {{4, "fused_moe/small_m", {{"columns", 16}}},
                       {20, "fused_moe/small_m", {{"columns", 8}}},
                       {40, "fused_moe/small_m", {{"columns", 4}}},
                       {512, "fused_moe/other", {}}};
    present.origin = {"shapes/fused_moe.json", 7};
    present.provenance = {"untuned", "", "{}"};
    const auto left = fill_gaps(made.rows[0], made.gaps, present, all_alike);
    CHECK(left.empty());
    const auto& row = made.rows[0];
    CHECK(edges(row) == Edges{4, 8, 16, 32, 40, 128, 256, 512});
    CHECK(row.buckets[1].constants.at("columns") == 8);
    CHECK(row.buckets[2].template_id == "fused_moe/mxmoe");
    CHECK(row.buckets[4].constants.at("columns") == 4);
    CHECK(row.buckets[5].template_id == "fused_moe/other");
    CHECK(row.provenance.note == "What the file has no row for is from shapes/fused_moe.json (untuned).");

    // What ends early leaves the rest of a gap to the row's next bucket.
    auto short_one = import_rows(row_text());
    present.buckets.resize(1);
    const auto rest = fill_gaps(short_one.rows[0], short_one.gaps, present, all_alike);
    CHECK(edges(short_one.rows[0]) == Edges{4, 16});
    REQUIRE(rest.size() == 1);
    CHECK(rest[0].from == 5);
    CHECK(rest[0].to == 8);
}

TEST_CASE("FillGapsKeepsWhatServesProblemsThatDemandDeterminism") {
    auto made = import_rows(row_text() + row_text(tiles_of_32("64", "")));
    Row present = made.rows[0];
    const auto present_bucket = [](std::int64_t max_m, std::int64_t same_bits) {
        return kiln::tables::Bucket{max_m, "fused_moe/other", {{"same_bits", same_bits}}};
    };
    present.buckets = {present_bucket(4, 1), present_bucket(24, 0), present_bucket(24, 1),
                       present_bucket(128, 0), present_bucket(128, 1)};
    const auto is_deterministic = [](const kiln::tables::Bucket& bucket) {
        return bucket.constants.contains("same_bits") ? bucket.constants.at("same_bits") == 1
                                                      : bucket.constants.at("g2") != 0;
    };
    const auto left = fill_gaps(made.rows[0], made.gaps, present, is_deterministic);
    CHECK(left.empty());
    const auto& row = made.rows[0];
    // Gaps: up to 8, and 17 to 32. The file's row for 16 is not deterministic, that for 64 is.
    CHECK(edges(row) == Edges{4, 8, 8, 16, 16, 24, 24, 32, 32, 64, 128, 128});
    std::vector<bool> same_bits;
    for (const auto& bucket : row.buckets) {
        same_bits.push_back(is_deterministic(bucket));
    }
    CHECK(same_bits ==
          std::vector<bool>{true, false, true, false, true, false, true, false, true, true, false, true});
    CHECK(row.buckets[3].template_id == "fused_moe/mxmoe");
    CHECK(row.buckets[4].template_id == "fused_moe/other");
    CHECK(row.buckets[9].template_id == "fused_moe/mxmoe");

    // Nothing meets the demand up there: it is declined, as it was.
    auto alone = import_rows(row_text());
    present.buckets = {present_bucket(8, 1)};
    CHECK(fill_gaps(alone.rows[0], alone.gaps, present, is_deterministic).empty());
    CHECK(edges(alone.rows[0]) == Edges{8, 16});
}

TEST_CASE("ImportedPublicRowsAreASoundTable") {
    const auto made = import_csv("public.csv", public_rows(), accept);
    CHECK(made.form.faults.empty());
    CHECK(made.num_imported == 56);
    std::map<std::string, int> words;  // that no template here has
    for (const auto& one : made.leftovers) {
        ++words[one.reason.find("\"f4out\"") != std::string::npos  ? "f4out"
                : one.reason.find("\"xcd4\"") != std::string::npos ? "xcd4"
                                                                   : one.reason];
    }
    CHECK(words == std::map<std::string, int>{{"f4out", 8}, {"xcd4", 2}});
    CHECK(made.rows.size() == 6);
    CHECK(made.timings ==
          std::map<Timing, std::size_t>{{Timing::end_to_end, 14}, {Timing::sum_of_stages, 42}});

    const auto loader = kiln::tables::make_loader(accept);
    const auto loaded =
        loader->load({kiln::tables::named({{"t.json", kiln::tables::to_table_text(made.rows)}})});
    CHECK_MESSAGE(loaded.faults.empty(), kiln::tables::to_error(loaded.faults).message);
    CHECK(loaded.table.rows().size() == 6);
}

TEST_CASE("TheShippedRowOfAPublishedProblemServesWhatWasPublished") {
    const kiln::tables::Problem problem = {{"hidden", std::int64_t{4096}},
                                           {"intermediate", std::int64_t{512}},
                                           {"experts", std::int64_t{512}},
                                           {"slots", std::int64_t{10}},
                                           {"weights", std::string("mxfp4")}};
    // A row that is checked has every other field too.
    const auto of_problem = [&](const std::vector<Row>& rows) {
        const auto found = std::ranges::find_if(
            rows, [&](const Row& row) { return std::ranges::includes(row.problem, problem); });
        REQUIRE(found != rows.end());
        return *found;
    };
    const Row published = of_problem(import_csv("public.csv", public_rows(), accept).rows);
    const Row shipped = of_problem(kiln::shipped::rows().rows);
    CHECK(shipped.provenance.kind == "published");
    CHECK(edges(published) == Edges{16, 32, 64, 128});
    for (const auto& bucket : published.buckets) {
        CAPTURE(bucket.max_m);
        const auto serves = std::ranges::find_if(
            shipped.buckets, [&](const auto& candidate) { return candidate.max_m >= bucket.max_m; });
        REQUIRE(serves != shipped.buckets.end());
        CHECK(serves->template_id == bucket.template_id);
        CHECK(serves->constants == bucket.constants);
    }
}
