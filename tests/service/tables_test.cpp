// The layers of shape tables under the service, and what is judged of a row beside its operator.

#include "runtime/service/tables.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "runtime/operators/demands.hpp"
#include "runtime/service/suggestion.hpp"
#include "runtime/shipped/shipped.hpp"
#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::operators::linear;
using kiln::tables::LayerKind;
using kiln::tables::parse_target;
using kiln::tables::Shadowed;
using kiln::test::Scratch;
using kiln::test::small_problem;
using kiln::test::small_table;

namespace {

const char* const kDevice = "gfx950:sramecc+:xnack-";

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A service of which every layer lies in a folder of the test.
struct Layered {
    Scratch scratch;
    Environment environment = {"HOME=" + scratch.folder().string(),
                               "XDG_CONFIG_HOME=" + (scratch.folder() / "user").string(),
                               "XDG_CONFIG_DIRS=" + (scratch.folder() / "system").string()};
    Overrides overrides = kiln::test::overrides_in(scratch);

    std::string write(const std::string& layer, const std::string& name, const std::string& text) const {
        return scratch.write(layer + "/kiln/shapes/" + name, text).string();
    }
    Settings settings() const {
        auto read = read_settings(overrides, environment);
        REQUIRE_MESSAGE(read, read.error().message);
        return *std::move(read);
    }
    std::unique_ptr<Service> open() const {
        auto opened = Service::open(settings());
        REQUIRE_MESSAGE(opened, opened.error().message);
        return *std::move(opened);
    }
    kiln::tables::LoadedTable load() const {
        auto loaded = load_tables(settings());
        REQUIRE(loaded);
        return *std::move(loaded);
    }
    Explanation explain(const std::string& device = kDevice) const {
        return open()->explain(linear(), small_problem(), 3, *parse_target(device));
    }
};

}  // namespace

TEST_CASE_FIXTURE(Layered,
                  "tables: each layer's row replaces the weaker's, and explain names the file and the rest") {
    CHECK(explain().refusal->decline == KILN_DECLINE_SHAPE);

    const std::string system = write("system", "all.json", small_table());
    const auto service = open();
    CHECK(service->explain(linear(), small_problem(), 3, *parse_target(kDevice)).row->origin.file == system);

    const std::string user = write("user", "mine.json", small_table());
    const std::string named = scratch.write("named.json", small_table()).string();
    const std::string particular = write("system", "particular.json", small_table("gfx950:sramecc+:xnack-"));
    {
        overrides.shapes_path = named;
        const auto all = open();
        const auto general = all->explain(linear(), small_problem(), 3, *parse_target("gfx950"));
        REQUIRE(!general.refusal);
        CHECK(general.row->origin.file == named);
        CHECK(general.row->origin.line == 1);
        CHECK(general.row->layer == LayerKind::named);
        REQUIRE(general.shadowed.size() == 2);
        CHECK(general.shadowed[0].row->origin.file == user);
        CHECK(general.shadowed[0].row->layer == LayerKind::user);
        CHECK(general.shadowed[1].row->origin.file == system);
        CHECK(general.shadowed[1].why == Shadowed::Why::replaced);

        // The particular row stands above every general one, of whatever layer.
        const auto special = all->explain(linear(), small_problem(), 3, *parse_target(kDevice));
        CHECK(special.row->origin.file == particular);
        CHECK(special.row->layer == LayerKind::system);
        REQUIRE(special.shadowed.size() == 3);
        CHECK(special.shadowed[0].row->origin.file == named);
        CHECK(special.shadowed[0].why == Shadowed::Why::less_specific);
        CHECK(special.shadowed[1].why == Shadowed::Why::replaced);
    }
    // A shipped row is replaced like any other.
    std::string text = small_table();
    text.replace(text.find("\"n\": 16, \"k\": 128"), 17, "\"n\": 4096, \"k\": 2048");
    const std::string mine = write("user", "shipped.json", text);
    const auto problem =
        *kiln::operators::complete(linear(), {{"n", std::int64_t{4096}}, {"k", std::int64_t{2048}}});
    const auto replaced = open();
    const auto explained = replaced->explain(linear(), problem, 3, *parse_target(kDevice));
    CHECK(explained.row->origin.file == mine);
    REQUIRE(explained.shadowed.size() == 1);
    CHECK(explained.shadowed[0].row->layer == LayerKind::shipped);
}

TEST_CASE_FIXTURE(Layered, "tables: the faults of every layer are told at once, and nothing is opened") {
    const std::string user = write("user", "a.json", "{");
    std::filesystem::create_symlink("nowhere", scratch.folder() / "user/kiln/shapes/b.json");
    const std::string system = write("system", "c.json", small_table("gfx95o"));
    overrides.shapes_path = (scratch.folder() / "missing.json").string();
    const auto opened = Service::open(settings());
    REQUIRE(!opened);
    CHECK(opened.error().code == kiln::ErrorCode::bad_input);
    CHECK(opened.error().stage == kiln::Stage::table);
    for (const std::string& part :
         {std::string("missing.json:1:1: the document: expected a shape table or a folder"),
          user + ":1:2: ", std::string("b.json:1:1: the document: expected a file that can be read"),
          system + ":1:89: /rows/0/target: expected a processor that there is; the nearest is "
                   "gfx950, found \"gfx95o\""}) {
        CHECK_MESSAGE(mentions(opened.error().message, part), opened.error().message << "\nlacks " << part);
    }
    CHECK(load().faults.size() == 4);
}

TEST_CASE_FIXTURE(Layered, "tables: a row for another processor is a warning, and the decline names both") {
    write("user", "a.json", small_table("gfx942"));
    const auto loaded = load();
    CHECK(loaded.faults.empty());
    REQUIRE(loaded.warnings.size() == 1);
    CHECK(loaded.warnings.front().pointer == "/rows/0/target");
    CHECK(mentions(loaded.warnings.front().found, "gfx942: the row serves nothing here"));

    const auto here = explain();
    CHECK(here.refusal->decline == KILN_DECLINE_PROCESSOR);
    CHECK(mentions(here.refusal->error.message, "gfx950:sramecc+:xnack-"));
    CHECK(mentions(here.refusal->error.message, "gfx942"));
    // On such a device it is the template that is missing.
    const auto there = explain("gfx942:sramecc+:xnack-");
    CHECK(there.refusal->decline == KILN_DECLINE_PROCESSOR);
    CHECK(mentions(there.refusal->error.message, "has no source for it"));
    // Warming everything leaves the row out.
    std::vector<kiln::Error> errors;
    CHECK(!open()->matching({}, errors).empty());
    CHECK(errors.empty());
}

TEST_CASE_FIXTURE(Layered, "tables: a row for a feature that no device reports is a fault") {
    write("user", "a.json", small_table("gfx950:xnak-"));
    const auto loaded = load();
    REQUIRE(loaded.faults.size() == 1);
    CHECK(loaded.faults.front().expected == "a feature that gfx950 has: sramecc or xnack");
}

TEST_CASE_FIXTURE(Layered, "tables: of a row for no processor, the target is the one fault") {
    for (const std::string target : {"nonsense", "SM_90A", "sm_90a:", ""}) {
        // These are constants of sm_90a, which other processors' templates do not take.
        std::string row = small_table(target);
        const auto start = row.find("\"constants\": {");
        REQUIRE(start != std::string::npos);
        row.replace(start, row.find('}', start) - start, "\"constants\": {\"split_k\": 1");
        write("user", "a.json", row);
        const auto loaded = load();
        REQUIRE(loaded.faults.size() == 1);
        CHECK(loaded.faults.front().pointer == "/rows/0/target");
        CHECK(loaded.faults.front().found == "\"" + target + "\"");
    }
}

TEST_CASE_FIXTURE(
    Layered, "tables: a template of the user's own makes its processor known, and is held to its includes") {
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    write("user", "a.json", small_table("gfx1300"));
    CHECK(mentions(load().faults.front().expected, "a processor that there is"));

    const std::string name = "kernels/linear/small_m.gfx1300.hip";
    scratch.write(name, Scratch::read(scratch.kernels() / "linear/small_m.gfx950.hip"));
    const auto well = load();
    CHECK(well.faults.empty());
    CHECK(well.warnings.empty());

    scratch.write(name, "// a line\n#include \"device/none.h\"\n");
    const auto broken = load();
    REQUIRE(broken.faults.size() == 1);
    CHECK(broken.faults.front().pointer == "/rows/0/buckets/0/template");
    CHECK(
        mentions(broken.faults.front().found, "linear/small_m.gfx1300.hip:2: \"device/none.h\" is no file"));
}

TEST_CASE("tables: the shipped layer is without fault or warning, by the schema too") {
    const Scratch scratch;
    const kiln::tables::Layer layer = kiln::shipped::texts();
    std::vector<std::string> files;
    for (const auto& text : layer.texts) {
        files.push_back(scratch.write(text.name, text.text).string());
    }
    Overrides overrides;
    overrides.tables = files;
    const auto loaded = load_tables(*read_settings(overrides, {}));
    REQUIRE(loaded);
    CHECK_MESSAGE(loaded->faults.empty(), kiln::tables::to_error(loaded->faults).message);
    CHECK(loaded->warnings.empty());
    CHECK(!loaded->table.rows().empty());
}

TEST_CASE("tables: every dense projection that the layouts allow has a shipped row") {
    const Scratch scratch;
    const auto service = kiln::test::open(kiln::test::overrides_in(scratch));
    const auto projections = nlohmann::json::parse(Scratch::read(KILN_TEST_DATA "/dense_projections.json"));
    CHECK(projections.size() == 12);
    for (const auto& projection : projections) {
        CAPTURE(projection.dump());
        const auto problem = *kiln::operators::complete(
            linear(),
            {{"n", projection["n"].get<std::int64_t>()}, {"k", projection["k"].get<std::int64_t>()}});
        if (linear().judge(problem)) {
            for (const char* device : {kDevice, "sm_90a"}) {
                const auto found = service->snapshot()->table->find("linear", problem, *parse_target(device));
                REQUIRE(found.row != nullptr);
                CHECK(found.row->layer == LayerKind::shipped);
                CHECK(mentions(found.row->provenance.note, projection["model"].get<std::string>()));
                CHECK(
                    mentions(found.row->provenance.note, "TP" + std::to_string(projection["tp"].get<int>())));
            }
        }
    }
}

TEST_CASE("tables: every model's router has a shipped row") {
    const Scratch scratch;
    const auto service = kiln::test::open(kiln::test::overrides_in(scratch));
    const auto models = nlohmann::json::parse(Scratch::read(KILN_TEST_DATA "/model_shapes.json"))["moe"];
    CHECK(models.size() == 52);
    for (const auto& model : models) {
        CAPTURE(model.dump());
        const auto field = [&](const char* name) { return model[name].get<std::int64_t>(); };
        const auto problem = *kiln::operators::complete(kiln::operators::router(),
                                                        {{"hidden", field("hidden")},
                                                         {"experts", field("E")},
                                                         {"top_k", field("topk")},
                                                         {"shared", field("E_fused") - field("E")}});
        const auto found = service->snapshot()->table->find("router", problem, *parse_target(kDevice));
        REQUIRE(found.row != nullptr);
        CHECK(mentions(found.row->provenance.note, model["model"].get<std::string>()));
        CHECK(found.row->buckets.back().max_m == 8);
    }
}

TEST_CASE("tables: every model's experts that the layouts allow have a shipped row for each format") {
    const Scratch scratch;
    const auto service = kiln::test::open(kiln::test::overrides_in(scratch));
    const auto models = nlohmann::json::parse(Scratch::read(KILN_TEST_DATA "/model_shapes.json"))["moe"];
    int served = 0;
    for (const auto& model : models) {
        CAPTURE(model.dump());
        // MiniMax-M3 and GPT-OSS have another activation, for which fused_moe declines.
        const bool silu = !mentions(model["note"].get<std::string>(), "swiglu");
        const auto field = [&](const char* name) { return model[name].get<std::int64_t>(); };
        for (const char* weights : {"mxfp4", "fp8"}) {
            const auto problem =
                *kiln::operators::complete(kiln::operators::fused_moe(), {{"hidden", field("hidden")},
                                                                          {"intermediate", field("inter")},
                                                                          {"experts", field("E_fused")},
                                                                          {"slots", field("slots")},
                                                                          {"weights", std::string(weights)}});
            const auto found = service->snapshot()->table->find("fused_moe", problem, *parse_target(kDevice));
            REQUIRE((found.row != nullptr) == (silu && kiln::operators::fused_moe().judge(problem)));
            if (found.row != nullptr) {
                ++served;
                CHECK(mentions(found.row->provenance.note,
                               model["model"].get<std::string>() + " at TP" + std::to_string(field("tp"))));
                for (const auto& bucket : found.row->buckets) {
                    CHECK(bucket.budget.waves_per_simd >= 2);
                    CHECK(bucket.budget.lds_bytes);
                }
                // Sorted tokens go on where the few end, whether or not the same bits are demanded.
                const bool is_sorted = weights == std::string_view("mxfp4") && field("hidden") % 256 == 0 &&
                                       field("inter") % 256 == 0;
                CHECK((found.row->buckets.back().max_m >= 1024) == is_sorted);
                auto same_bits = problem;
                same_bits.insert_or_assign(std::string(kiln::operators::kDeterministic), std::int64_t{1});
                const auto serving =
                    kiln::operators::serving(kiln::operators::fused_moe(), *found.row, same_bits);
                CHECK(serving.buckets.back().max_m == found.row->buckets.back().max_m);
            }
        }
    }
    CHECK(served == 84);
}

TEST_CASE("tables: shipped rows that no one has timed are what the operator's rule makes") {
    const Scratch scratch;
    const auto service = kiln::test::open(kiln::test::overrides_in(scratch));
    for (const auto& row : service->rows({})) {
        CAPTURE(row->origin.text());
        if (row->provenance.kind == "untuned") {
            const auto* op = kiln::operators::find_operator(row->operator_name);
            const auto buckets = op->derive(row->problem, row->target);
            REQUIRE(buckets);
            CHECK(row->buckets == *buckets);
        }
    }
}

namespace {

// Of the bucket with this index: among what a tune chose, by M, or in a list by bucket.
bool has_time(const nlohmann::json& provenance, std::size_t index, std::int64_t max_m) {
    if (!provenance.contains("tuned")) {
        return provenance.at("microseconds_at_max_m").at(index) > 0;
    }
    return std::ranges::any_of(provenance["tuned"],
                               [&](const auto& one) { return one["m"] == max_m && one["us"] > 0; });
}

}  // namespace

TEST_CASE("tables: shipped rows for sm_90a were timed, and say on what") {
    const Scratch scratch;
    const auto service = kiln::test::open(kiln::test::overrides_in(scratch));
    WarmFilter filter;
    filter.target = *parse_target("sm_90a");
    const auto rows = service->rows(filter);
    REQUIRE(!rows.empty());
    for (const auto& row : rows) {
        CAPTURE(row->origin.text());
        CHECK(row->provenance.kind == "measured");
        const auto document = nlohmann::json::parse(row->provenance.document);
        CHECK(document["device"] == "NVIDIA H200");
        for (std::size_t i = 0; i < row->buckets.size(); ++i) {
            CHECK(has_time(document, i, row->buckets[i].max_m));
        }
        CHECK(row->buckets.back().max_m == 32);
    }
}

TEST_CASE_FIXTURE(Layered, "tables: a suggested row is one that loads, and says that it is derived") {
    const auto row = suggest_row(linear(), small_problem(), *parse_target("gfx950:xnack-"));
    REQUIRE(row);
    CHECK(row->problem.size() == 2);
    CHECK(row->provenance.kind == "derived");
    CHECK(row->target.text() == "gfx950:xnack-");

    kiln::operators::Problem biased = small_problem();
    biased["bias"] = std::int64_t{1};
    const auto refused = suggest_row(linear(), biased, *parse_target("gfx950"));
    REQUIRE(!refused);
    CHECK(refused.error().decline == KILN_DECLINE_BIAS);
}

TEST_CASE_FIXTURE(Layered, "targets: what was warmed for gfx950 is a hit on a device that reports features") {
    write("user", "general.json", small_table("gfx950"));
    const auto obtain = [&](const std::string& target) {
        const auto service = open();
        const auto explanation = service->explain(linear(), small_problem(), 3, *parse_target(target));
        REQUIRE(!explanation.refusal);
        const auto artifact = service->obtain(explanation.pipeline->stages.front().specialisation);
        REQUIRE_MESSAGE(artifact, artifact.error().message);
        return std::pair(*artifact, service->statistics());
    };
    const auto [warmed, first] = obtain("gfx950");
    CHECK(first.compiles == 1);
    const auto [served, second] = obtain(kDevice);
    CHECK(second.compiles == 0);
    CHECK(second.cache_hits == 1);
    CHECK(served->key_digest == warmed->key_digest);

    // A row that pins more wins on that device, is another key, and leaves the general one to the others.
    write("user", "pinned.json", small_table("gfx950:xnack-"));
    const auto [pinned, third] = obtain(kDevice);
    CHECK(third.compiles == 1);
    CHECK(third.cache_hits == 0);
    CHECK(pinned->key_digest != warmed->key_digest);
    CHECK(pinned->specialisation.request.target == "gfx950:xnack-");
    const auto [general, fourth] = obtain("gfx950:sramecc+:xnack+");
    CHECK(fourth.cache_hits == 1);
    CHECK(general->key_digest == warmed->key_digest);
}

TEST_CASE_FIXTURE(Layered, "targets: a row for xnack+ is refused on a device without, by both names") {
    write("user", "plus.json", small_table("gfx950:xnack+"));
    const auto refused = explain();
    CHECK(refused.refusal->decline == KILN_DECLINE_TARGET_FEATURE);
    CHECK(mentions(refused.refusal->error.message,
                   "the device is gfx950:sramecc+:xnack-, the shape table has rows for gfx950:xnack+ only"));
    // One that says nothing of the feature agrees with neither sign.
    CHECK(explain("gfx950").refusal->decline == KILN_DECLINE_TARGET_FEATURE);
    CHECK(!explain("gfx950:sramecc+:xnack+").refusal);
}
