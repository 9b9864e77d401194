#include "runtime/tuned_config/export.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "runtime/tables/writer.hpp"
#include "runtime/tuned_config/import.hpp"
#include "tests/tables/support.hpp"
#include "tests/tuned_config/support.hpp"

using namespace kiln::tuned_config;
using kiln::tables::Row;
using nlohmann::json;

namespace {

std::vector<kiln::tables::RowFault> accept(Row&) {
    return {};
}

using Rows = std::vector<std::shared_ptr<const Row>>;

Rows shared(const std::vector<Row>& rows) {
    Rows made;
    for (const auto& row : rows) {
        made.push_back(std::make_shared<const Row>(row));
    }
    return made;
}

// Through the text of a table, as the command line has it.
Rows import_through_a_table(const std::string& csv) {
    const auto made = import_csv("t.csv", csv, accept);
    REQUIRE(made.form.faults.empty());
    const auto loaded = kiln::tables::make_loader(accept)->load(
        {kiln::tables::named({{"t.json", kiln::tables::to_table_text(made.rows)}})});
    REQUIRE(loaded.faults.empty());
    Rows rows;
    for (const auto* row : loaded.table.rows()) {
        rows.push_back(std::make_shared<const Row>(*row));
    }
    return rows;
}

Row tuned(std::vector<kiln::tables::Bucket> buckets) {
    Row row;
    row.operator_name = "fused_moe";
    row.problem = {{"hidden", std::int64_t{4096}},
                   {"intermediate", std::int64_t{512}},
                   {"experts", std::int64_t{512}},
                   {"slots", std::int64_t{10}},
                   {"weights", "mxfp4"}};
    row.target = *kiln::tables::parse_target("gfx950");
    row.buckets = std::move(buckets);
    row.provenance = {"untuned", "", R"({"kind":"untuned"})"};
    row.origin = {"t.json", 3};
    return row;
}

kiln::tables::Bucket mxmoe(std::int64_t max_m, std::int64_t g2 = 0) {
    return {
        max_m, "fused_moe/mxmoe", {{"block_m", 32}, {"f16in", 0}, {"g1_nt", 1}, {"g2", g2}, {"g2_nt", 0}}};
}

std::vector<FormRow> rows_of(const Export& made) {
    auto form = read_form("t.csv", made.text);
    CHECK_MESSAGE(form.faults.empty(), kiln::tables::to_error(form.faults).message);
    return std::move(form.rows);
}

std::set<std::string> lines_of(const std::string& text) {
    std::set<std::string> lines;
    for (std::size_t start = 0; start < text.size();) {
        const auto end = text.find('\n', start);
        lines.insert(text.substr(start, end - start));
        start = end + 1;
    }
    return lines;
}

}  // namespace

TEST_CASE("ExportGivesBackWhatWasImported") {
    // Kept to the letter: numbers as they were written, columns of no meaning here, cells with commas.
    const auto one = header() + row_text({{"us", "92.15120"}, {"tflops", "a, b"}, {"xbf16", "1"}});
    const auto made = export_csv(import_through_a_table(one), {});
    CHECK(made.text == one);
    CHECK(made.unwritten.empty());

    // All public rows with a counterpart, in whatever order.
    const auto all = public_rows();
    auto wanted = lines_of(all);
    for (const auto& left : import_csv("t.csv", all, accept).leftovers) {
        const auto form = read_form("t.csv", all);
        for (const auto& row : form.rows) {
            if (row.line == left.line) {
                auto line = csv_record(row.cells);
                line.pop_back();
                CHECK(wanted.erase(line) == 1);
            }
        }
    }
    const auto exported = export_csv(import_through_a_table(all), {});
    CHECK(exported.num_rows == 56);
    CHECK(lines_of(exported.text) == wanted);

    // And once more.
    CHECK(export_csv(import_through_a_table(exported.text), {}).text == exported.text);
}

TEST_CASE("ExportKeepsColumnsThatAreNotOfTheForm") {
    auto csv = header() + row_text();
    csv.insert(0, "_tag,");
    csv.insert(csv.find("\ngfx950") + 1, "\"x\"\"y\",");
    const auto made = export_csv(import_through_a_table(csv), {});
    CHECK(made.text.substr(0, made.text.find('\n')).ends_with(",bw,_tag"));
    CHECK(made.text.ends_with(",2750.25,\"x\"\"y\"\n"));
}

TEST_CASE("ExportWritesABucketThatWasEditedAnew") {
    const auto imported = import_through_a_table(header() + row_text());
    const auto edited = [&](auto edit) {
        Row row = *imported.front();
        edit(row);
        const auto made = export_csv(shared({row}), {});
        return rows_of(made);
    };
    const auto same = edited([](Row&) {});
    REQUIRE(same.size() == 1);
    CHECK(same[0].us == 92.1512);
    const auto others = {edited([](Row& row) { row.buckets[0].constants["g2_nt"] = 1; }),
                         edited([](Row& row) { row.buckets[0].max_m = 32; }),
                         edited([](Row& row) { row.problem["hidden"] = std::int64_t{2048}; }),
                         edited([](Row& row) { row.cu_num = 64; }), edited([](Row& row) {
                             auto said = json::parse(row.provenance.document);
                             said["rows"][0]["cells"][2] = "64";
                             row.provenance.document = said.dump();
                         })};
    for (const auto& rows : others) {
        REQUIRE(!rows.empty());
        CHECK(rows.back().us == std::nullopt);
        CHECK(rows.back().timing == Timing::none);
    }
}

TEST_CASE("ExportWritesABucketForEveryTokenThatItServes") {
    const auto made = export_csv(shared({tuned({mxmoe(4), mxmoe(32, 1)})}), 304);
    const auto rows = rows_of(made);
    std::vector<std::int64_t> tokens;
    for (const auto& row : rows) {
        tokens.push_back(row.token);
        CHECK(row.cu_num == 304);
        CHECK(row.timing == Timing::none);
    }
    CHECK(tokens == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32});
    CHECK(rows[2].kernel2 == "flydsl_mxmoe_g2_a4w4_32x256x256_atomic");
    CHECK(rows[3].kernel2 == "flydsl_mxmoe_g2_a4w4_32x256x256");
    CHECK(rows_of(export_csv(shared({tuned({mxmoe(1)})}), {}))[0].cu_num == std::nullopt);

    // It is what an import makes of it again.
    const auto again = import_csv("t.csv", made.text, accept);
    CHECK(again.leftovers.empty());
    CHECK(again.rows.front().buckets.back().constants == mxmoe(32, 1).constants);
}

TEST_CASE("ExportWritesMeasuredTimesAndNeverAModels") {
    Row row = tuned({mxmoe(16)});
    const auto exported = [&](const std::string& kind, const kiln::tables::Bucket& timed) {
        const json entry = {{"m", 16},
                            {"us", 42.5},
                            {"bucket", {{"template", timed.template_id}, {"constants", timed.constants}}}};
        row.provenance = {kind, "", json{{"kind", kind}, {"tuned", {entry}}}.dump()};
        return rows_of(export_csv(shared({row}), {}));
    };
    CHECK(exported("measured", mxmoe(16)).back().us == 42.5);
    CHECK(exported("measured", mxmoe(16)).back().timing == Timing::end_to_end);
    CHECK(exported("measured", mxmoe(16)).front().us == std::nullopt);    // token 1, of which nobody spoke
    CHECK(exported("measured", mxmoe(16, 1)).back().us == std::nullopt);  // the bucket was edited since
    CHECK(exported("model", mxmoe(16)).back().us == std::nullopt);
}

TEST_CASE("ExportListsWhatTheFormHasNoWordsFor") {
    Row other = tuned({mxmoe(16)});
    other.operator_name = "linear";
    Row fp8 = tuned({mxmoe(16)});
    fp8.problem["weights"] = "fp8";
    Row pinned = tuned({mxmoe(16)});
    pinned.target = *kiln::tables::parse_target("gfx950:xnack-");
    const Row mixed =
        tuned({{4, "fused_moe/small_m", {}}, mxmoe(20), mxmoe(64, 2), mxmoe(64, 1), mxmoe(65536)});
    const auto made = export_csv(shared({other, fp8, pinned, mixed}), {});
    CHECK(made.text == header());
    CHECK(made.num_of_other_operators == 1);
    std::vector<std::string> said;
    for (const auto& one : made.unwritten) {
        CHECK(one.origin == "t.json:3");
        said.push_back(one.what + ": " + one.reason);
    }
    CHECK(said ==
          std::vector<std::string>{": the form has no words for weights=fp8",
                                   ": the form's gfx knows no features, found gfx950:xnack-",
                                   "max_m 4: no name of the form stands for fused_moe/small_m",
                                   "max_m 20: the form's tokens are powers of two up to 32768",
                                   "max_m 64: g2=2: nonatomic with its combine fused has no published name",
                                   "max_m 64: the form has one row for a token, and the bucket before this "
                                   "one is it; this is for problems that demand more",
                                   "max_m 65536: the form's tokens are powers of two up to 32768"});
}
