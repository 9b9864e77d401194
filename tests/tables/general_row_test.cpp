// Rows for every problem that their open fields admit.
#include <doctest/doctest.h>

#include "tests/tables/support.hpp"

using namespace kiln::tables;

namespace {

const std::string kGeneral = R"({"n": {"min": 16, "max": 64}, "k": "*"})";

// Of a general row all of n and k are said, so nothing is missing.
std::vector<RowFault> accept(Row&) {
    return {};
}

LoadedTable load(std::vector<std::string> layers) {
    std::vector<Layer> named_layers;
    for (const auto& rows : layers) {
        named_layers.push_back(named({{fmt::format("{}.json", named_layers.size()), table_of(rows)}}));
    }
    return make_loader(accept)->load(named_layers);
}

Problem problem(std::int64_t n, FieldValue k) {
    return {{"n", n}, {"k", std::move(k)}};
}

// "0.json:1" of the row that answers.
std::string find(const LoadedTable& loaded, const Problem& asked, const char* device = "gfx950") {
    const auto* row = loaded.table.find("linear", asked, *parse_target(device)).row;
    return row != nullptr ? row->origin.text() + " " + row->target.text() + " " + to_text(row->open) : "none";
}

}  // namespace

TEST_CASE("GeneralRowSaysWhatIsOpenAndWhatIsSettled") {
    const auto loaded = load({row_text(R"({"n": {"min": 16}, "k": {"max": 5}, "a": "*", "b": 3})", "gfx950",
                                       R"([{"max_pairs": 64, "template": "linear/a", "constants": {},
                                            "budget": {"waves_per_simd": 2, "lds_bytes": 4096}},
                                           {"max_m": 16, "template": "linear/b", "constants": {}}])")});
    REQUIRE_MESSAGE(loaded.faults.empty(), loaded.faults.front().text());
    const auto& row = *loaded.table.rows().front();
    CHECK(row.is_general());
    CHECK(row.problem == Problem{{"b", std::int64_t{3}}});
    CHECK(to_text(row.open) == "a=any k=..5 n=16..");
    CHECK(row.buckets[0].max_pairs == 64);
    CHECK(row.buckets[0].budget.waves_per_simd == 2);
    CHECK(row.buckets[0].budget.lds_bytes == 4096);
    CHECK(!row.buckets[1].max_pairs);
    CHECK(row.buckets[1].budget == Budget{});
}

TEST_CASE("GeneralRowAdmitsWhatLiesBetweenItsEnds") {
    const auto loaded = load({row_text(kGeneral, "gfx950", kBuckets)});
    CHECK(find(loaded, problem(15, 1)) == "none");
    CHECK(find(loaded, problem(16, 1)) == "0.json:1 gfx950 k=any n=16..64");
    CHECK(find(loaded, problem(64, "a word")) != "none");
    CHECK(find(loaded, problem(65, 1)) == "none");
    CHECK(find(loaded, {{"n", "16"}, {"k", std::int64_t{1}}}) == "none");  // ends are for numbers
    CHECK(find(loaded, {{"n", std::int64_t{16}}}) == "none");
    Problem more = problem(16, 1);
    more.emplace("bias", std::int64_t{1});
    CHECK(find(loaded, more) == "none");
    CHECK(loaded.table.find("linear", problem(16, 1), *parse_target("gfx942")).outcome ==
          Lookup::Outcome::other_processor);
}

TEST_CASE("GeneralRowStandsBehindAnExactOneOfItsLayerAndBeforeWeakerLayers") {
    const auto exact = [](const char* target) { return row_text(R"({"n": 32, "k": 64})", target, kBuckets); };
    const auto general = row_text(kGeneral, "gfx950", kBuckets);
    const auto wider = row_text(R"({"n": "*", "k": "*"})", "gfx950", kBuckets);
    CHECK(find(load({general + "," + exact("gfx950")}), problem(32, 64)) == "0.json:1 gfx950 ");
    CHECK(find(load({general, exact("gfx950")}), problem(32, 64)) == "0.json:1 gfx950 k=any n=16..64");
    CHECK(find(load({wider + "," + general}), problem(32, 1)) == "0.json:1 gfx950 k=any n=any");
    CHECK(find(load({general + "," + wider}), problem(8, 1)) == "0.json:1 gfx950 k=any n=any");
    // As among exact rows, one that pins more features answers before a stronger layer.
    CHECK(find(load({general, exact("gfx950:xnack-")}), problem(32, 64), "gfx950:xnack-") ==
          "1.json:1 gfx950:xnack- ");

    const auto loaded = load({general + "," + exact("gfx950"), wider});
    const auto* winner = loaded.table.find("linear", problem(32, 64), *parse_target("gfx950")).row;
    const auto hidden = loaded.table.shadowed(*winner, problem(32, 64), *parse_target("gfx950"));
    REQUIRE(hidden.size() == 2);
    CHECK(hidden[0].row->is_general());
    CHECK(hidden[0].why == Shadowed::Why::replaced);
    CHECK(hidden[1].row->origin.file == "1.json");
}

TEST_CASE("GeneralRowNamesTheProblemsThatItLists") {
    auto general = row_text(kGeneral, "gfx950", kBuckets);
    general.insert(1, R"("problems": [{"n": 32, "k": 64}, {"n": 48, "k": 64}], )");
    const auto loaded = load({row_text(R"({"n": 32, "k": 64})", "gfx950", kBuckets), general});
    REQUIRE(loaded.table.rows().back()->problems.size() == 2);
    const auto all = loaded.table.named_problems();
    REQUIRE(all.size() == 2);  // the stronger layer's row serves the first
    CHECK(!all[0].row->is_general());
    CHECK(*all[1].problem == problem(48, 64));
    CHECK(loaded.table.rows_in_force("linear", problem(48, 64)).size() == 1);
}

TEST_CASE("GeneralRowIsAnExactOneForAProblem") {
    const auto loaded = load({row_text(kGeneral, "gfx950",
                                       R"([{"max_pairs": 10, "template": "linear/a", "constants": {}},
                           {"max_pairs": 64, "template": "linear/b", "constants": {}},
                           {"max_m": 6, "template": "linear/c", "constants": {}},
                           {"max_m": 2147483647, "template": "linear/d", "constants": {}}])")});
    REQUIRE_MESSAGE(loaded.faults.empty(), loaded.faults.front().text());
    const auto templates = [&](std::int64_t slots) {
        const Row row = loaded.table.rows().front()->at(problem(16, 1), slots);
        CHECK(!row.is_general());
        CHECK(row.problem == problem(16, 1));
        std::string text;
        for (const auto& bucket : row.buckets) {
            text += fmt::format("{}:{} ", bucket.template_id.back(), bucket.max_m);
        }
        return text;
    };
    CHECK(templates(1) == "a:10 b:64 d:2147483647 ");  // c would begin where it ends
    CHECK(templates(4) == "a:2 b:16 d:2147483647 ");
    CHECK(templates(11) == "b:5 c:6 d:2147483647 ");
    CHECK(templates(65) == "c:6 d:2147483647 ");
}

TEST_CASE("GeneralRowFaults") {
    const auto faults = [](const std::string& problem_text, const std::string& buckets) {
        return faults_of(table_of(row_text(problem_text, "gfx950", buckets)));
    };
    CHECK(faults(R"({"n": {"mim": 1}})", kBuckets) ==
          Lines{"t.json:1:65: /rows/0/problem/n/mim: expected a member of max, min, found \"mim\""});
    CHECK(faults(R"({"n": {"min": "1"}})", kBuckets) ==
          Lines{"t.json:1:72: /rows/0/problem/n/min: expected type integer, found \"1\""});
    CHECK(faults(R"({"n": {}})", kBuckets).size() == 1);
    CHECK(faults(R"({"n": 16})", R"([{"template": "linear/a", "constants": {}}])") ==
          Lines{"t.json:1:101: /rows/0/buckets/0: expected max_m or max_pairs, found neither"});
    CHECK(faults(R"({"n": 16})",
                 R"([{"max_m": 1, "max_pairs": 1, "template": "linear/a", "constants": {}}])") ==
          Lines{"t.json:1:101: /rows/0/buckets/0: expected max_m or max_pairs, found both"});
    CHECK(faults(R"({"n": 16})", R"([{"max_pairs": 8, "template": "linear/a", "constants": {}},
                                     {"max_pairs": 8, "template": "linear/a", "constants": {}}])") ==
          Lines{"t.json:2:52: /rows/0/buckets/1/max_pairs: expected more than the 8 of the bucket before, "
                "found 8"});
    CHECK(faults(R"({"n": 16})", R"([{"max_m": 1, "template": "linear/a", "constants": {},
                                      "budget": {"waves": 2}}])")
              .size() == 1);
    // Twice the same.
    const auto general = row_text(kGeneral, "gfx950", kBuckets);
    const auto twice = load({general + "," + general});
    REQUIRE(twice.faults.size() == 1);
    CHECK(twice.faults[0].found ==
          "a second one for linear k=any n=16..64 on gfx950 (the first stands at 0.json:1)");
}
