// The rows that the build wrote down against their texts, and rows of every kind through the archive.

#include "runtime/shipped/shipped.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "runtime/operators/operator.hpp"
#include "runtime/shipped/archive.hpp"

using namespace kiln;

namespace {

tables::RowLayer loaded(tables::LayerKind kind) {
    tables::Layer texts = shipped::texts();
    texts.kind = kind;
    const auto schema = shipped::schema();
    REQUIRE(schema);
    const auto loader = tables::Loader::create(*schema, operators::check_row);
    REQUIRE(loader);
    const tables::LoadedTable table = (*loader)->load({texts});
    CHECK_MESSAGE(table.faults.empty(), tables::to_error(table.faults).message);
    CHECK(table.warnings.empty());
    return table.table.layers().front();
}

tables::RowLayer through_the_archive(tables::RowLayer layer) {
    shipped::Writer writer;
    transfer(writer, layer);
    const std::vector<std::string_view> texts(writer.texts().begin(), writer.texts().end());
    shipped::Reader reader(writer.numbers(), texts);
    tables::RowLayer read;
    transfer(reader, read);
    return read;
}

}  // namespace

TEST_CASE("shipped: the rows are those of the texts, to the last member") {
    const tables::RowLayer rows = shipped::rows();
    const tables::RowLayer expected = loaded(tables::LayerKind::shipped);
    CHECK(rows.kind == tables::LayerKind::shipped);
    CHECK(rows.files == expected.files);
    REQUIRE(rows.rows.size() == expected.rows.size());
    CHECK(rows.rows.size() > 100);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
        CAPTURE(expected.rows[i].origin.text());
        CHECK(rows.rows[i] == expected.rows[i]);
    }
}

TEST_CASE("shipped: the schema and the operators have nothing to say of the texts") {
    CHECK(!loaded(tables::LayerKind::named).rows.empty());
}

TEST_CASE("shipped: a row of every kind comes out of the archive as it went in") {
    tables::Row general;
    general.operator_name = "moe_sort";
    general.problem = {{"quant", std::string("none")}, {"hidden", std::numeric_limits<std::int64_t>::min()}};
    general.open = {
        {"experts", {1, {}}}, {"slots", {{}, std::numeric_limits<std::int64_t>::max()}}, {"any", {}}};
    general.problems = {{{"experts", std::int64_t{8}}, {"quant", std::string()}}, {}};
    general.target = {"gfx950", {{"xnack", false}, {"sramecc", true}}};
    general.buckets = {{1, "a/b", {{"waves", -3}}, {2, {}}, {}}, {0, "a/b", {}, {{}, 65536}, 40}};
    general.provenance = {"measured", "on a \"real\"\\ GPU\n\t\x01 \xC3\xA9", "{}"};
    general.origin = {"some/file.json", 7};
    general.layer = tables::LayerKind::user;
    const tables::RowLayer layer{tables::LayerKind::system, "place", {"a", "b", "a"}, {general, {}, general}};
    CHECK(through_the_archive(layer) == layer);
    CHECK(through_the_archive({}) == tables::RowLayer{});
}
