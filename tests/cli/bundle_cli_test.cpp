// kiln bundle as its users meet it: made on one machine, served on others.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/bundle_file.hpp"
#include "run_kiln.hpp"
#include "tests/ed25519_keys.hpp"

using kiln::test::contains;
using kiln::test::make_keys;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;
using kiln::test::with;

namespace fs = std::filesystem;
namespace cache = kiln::cache;

namespace {

const std::vector<std::string> kProblem = {"linear", "n=4096", "k=2048"};

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A bundle of one problem, made once, with the cache that it was made from.
struct Made {
    TemporaryFolder folder;
    fs::path cache = folder.path() / "cache";
    fs::path bundle = folder.path() / "one.kiln";
    nlohmann::json said;

    Made() {
        const auto outcome = create(bundle, {});
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        said = outcome.json();
    }
    [[nodiscard]] kiln::test::Outcome create(const fs::path& out,
                                             const std::vector<std::string>& more) const {
        const auto words =
            with({"bundle", "create", "--json", "--target", "gfx950", "-o", out.string()}, more);
        return run_kiln(with(words, kProblem), {{"KILN_CACHE_DIR", cache.string()}});
    }
};

const Made& made() {
    static const Made once;
    return once;
}

// A machine of its own: an empty store, and the bundle.
struct Machine {
    TemporaryFolder folder;
    Variables environment;

    explicit Machine(const fs::path& bundle) {
        environment = {{"KILN_CACHE_DIR", (folder.path() / "store").string()},
                       {"KILN_CACHE_PATH", bundle.string()}};
    }
    void lose_compilers() {
        environment["KILN_ROCM_PREFIX"] = (folder.path() / "none").string();
        environment["KILN_CUDA_PREFIX"] = (folder.path() / "none").string();
    }
    [[nodiscard]] kiln::test::Outcome run(const std::vector<std::string>& words) const {
        return run_kiln(words, environment);
    }
    [[nodiscard]] kiln::test::Outcome check() const {
        return run(with({"warm", "--check", "--json", "--target", "gfx950"}, kProblem));
    }
    void expect_served_from_bundle() const {
        const auto verified = run(with({"verify", "--json", "--device", "sim", "--m", "5"}, kProblem));
        INFO(verified.out << verified.err);
        REQUIRE(verified.exit_code == 0);
        CHECK(verified.json()["summary"]["passed"] == 1);
        CHECK(verified.json()["cases"][0]["source"] == "bundle");
        const auto checked = check();
        CHECK(checked.exit_code == 0);
        CHECK(checked.json()["items"][0]["source"] == "bundle");
    }
};

// The same entries as another compiler would have built them.
fs::path of_another_compiler(const fs::path& folder) {
    const auto file = cache::BundleFile::open(made().bundle, cache::TrustedKeys());
    REQUIRE(file);
    const auto& view = (*file)->view();
    cache::BundleWriter writer;
    const auto records = view.records();
    REQUIRE(records);
    for (const auto& record : *records) {
        const auto stored = view.stored(record);
        const auto request = nlohmann::json::parse(stored->key.document())["request"].dump();
        const auto key = cache::Key::make(request, R"({"components":[{"build_id":"00","name":"other"}]})");
        REQUIRE(writer.add(*cache::serialise(*key, stored->entry)));
    }
    const auto path = folder / "other.kiln";
    REQUIRE(cache::publish_bundle(path, *writer.write("{}")));
    return path;
}

}  // namespace

TEST_CASE("BundleServesAMachineWithoutACompiler") {
    CHECK(made().said["kernels"].get<int>() >= 2);
    CHECK(made().said["entries"].get<int>() == 2 * made().said["kernels"].get<int>());  // and their listings
    Machine machine(made().bundle);
    machine.lose_compilers();
    machine.expect_served_from_bundle();
    // What it does not hold is an error that names it, at once.
    for (const char* jit : {"on", "off"}) {
        machine.environment["KILN_JIT"] = jit;
        const auto missed =
            machine.run({"verify", "--json", "--device", "sim", "--m", "5", "linear", "n=4096", "k=1024"});
        CHECK(missed.exit_code == 3);
        CHECK(contains(missed.out + missed.err, "is not in the cache"));
        CHECK(contains(missed.out + missed.err, "KILN_JIT=off forbids") == (std::string(jit) == "off"));
    }
}

TEST_CASE("BundleOfAnotherCompilerIsServedAndDoctorAndStatsSaySo") {
    TemporaryFolder folder;
    Machine machine(of_another_compiler(folder.path()));
    for (const char* jit : {"on", "off"}) {
        machine.environment["KILN_JIT"] = jit;
        machine.expect_served_from_bundle();
    }
    const auto stats = machine.run({"stats", "--json"}).json();
    CHECK(stats["layers"][0]["built_elsewhere"] == made().said["entries"]);
    CHECK(contains(machine.run({"stats"}).out, "another compiler than this machine's built"));
    CHECK(contains(machine.run({"doctor"}).out, "another compiler than this machine's built"));

    Machine home(made().bundle);
    CHECK(home.run({"stats", "--json"}).json()["layers"][0]["built_elsewhere"] == 0);
    CHECK(!contains(home.run({"doctor"}).out, "another compiler than"));

    // A miss under KILN_JIT=off names what forbids it.
    const auto missed =
        machine.run({"verify", "--json", "--device", "sim", "--m", "5", "linear", "n=4096", "k=1024"});
    CHECK(missed.exit_code == 3);
    CHECK(contains(missed.out + missed.err, "KILN_JIT=off"));
}

TEST_CASE("BundleIsTheSameBytesFromTheSameInputs") {
    TemporaryFolder folder;
    const auto again = folder.path() / "again.kiln";
    // From an empty cache: every kernel is compiled anew.
    const auto outcome = run_kiln(
        with({"bundle", "create", "--json", "--target", "gfx950", "-o", again.string(), "--jobs", "1"},
             kProblem),
        {{"KILN_CACHE_DIR", (folder.path() / "cache").string()}});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.json()["compiled"] == made().said["kernels"]);
    CHECK(outcome.json()["contents"] == made().said["contents"]);
    CHECK(read_text(again) == read_text(made().bundle));
}

TEST_CASE("BundleCarriesItsTablesAndLeavesListingsOut") {
    TemporaryFolder folder;
    const auto inspected = run_kiln({"bundle", "inspect", "--json", made().bundle.string(), "--tables",
                                     (folder.path() / "tables").string()},
                                    {});
    INFO(inspected.err);
    REQUIRE(inspected.exit_code == 0);
    const auto document = inspected.json();
    CHECK(document["entries"].size() == made().said["entries"]);
    CHECK(document["signer"].is_null());
    CHECK(document["description"]["targets"] == nlohmann::json({"gfx950"}));
    CHECK(document["tables"].size() == made().said["tables"]);
    const auto table = folder.path() / "tables" / "linear.json";
    REQUIRE(fs::exists(table));
    CHECK(run_kiln({"bundle", "inspect", made().bundle.string()}, {}).exit_code == 0);

    // From a table of one's own: that alone is carried.
    const auto lean = folder.path() / "lean.kiln";
    const auto outcome = made().create(lean, {"--no-listing", table.string()});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.json()["tables"] == 1);
    CHECK(outcome.json()["entries"] == made().said["kernels"]);
    CHECK(outcome.json()["bytes"] < made().said["bytes"]);
    const auto carried = cache::BundleFile::open(lean, cache::TrustedKeys());
    REQUIRE(carried);
    CHECK((*carried)->view().documents()->front().text == read_text(table));

    const auto taken = made().create(lean, {});
    CHECK(taken.exit_code == 2);
    CHECK(contains(taken.err, "expected no file of that name"));
    // Found out before anything is compiled.
    const auto nowhere =
        run_kiln({"bundle", "create", "--json", "-o", (folder.path() / "none" / "x").string()},
                 {{"KILN_CACHE_DIR", (folder.path() / "unused").string()}});
    CHECK(nowhere.exit_code == 3);
    CHECK(!fs::exists(folder.path() / "unused"));
}

TEST_CASE("UnsignedOrAlteredBundlesAreRefusedWhereKeysAreTrusted") {
    TemporaryFolder folder;
    make_keys(folder.path(), "mine");
    make_keys(folder.path(), "other");
    const auto pub = [&](const std::string& name) { return (folder.path() / (name + ".pub")).string(); };
    const auto path = folder.path() / "signed.kiln";
    const auto outcome = made().create(path, {"--sign", (folder.path() / "mine.pem").string()});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.json()["signer"].get<std::string>().size() == 64);

    Machine machine(path);
    machine.environment["KILN_TRUSTED_KEYS"] = pub("other") + ":" + pub("mine");
    CHECK(machine.check().exit_code == 0);
    CHECK(machine.run({"bundle", "verify", path.string()}).exit_code == 0);

    const auto expect_refused = [&](const std::string& why) {
        const auto checked = machine.check();
        CHECK(checked.exit_code == 1);
        INFO(checked.err);
        CHECK(contains(checked.err, why));
        CHECK(machine.run({"stats", "--json"}).json()["refused_layers"].size() == 1);
        CHECK(contains(machine.run({"doctor"}).out, why));
        const auto verified =
            machine.run({"bundle", "verify", "--json", machine.environment["KILN_CACHE_PATH"]});
        CHECK(verified.exit_code == 1);
        CHECK(machine
                  .run({"bundle", "install", machine.environment["KILN_CACHE_PATH"],
                        (folder.path() / "installed").string()})
                  .exit_code == 1);
        CHECK(!fs::exists(folder.path() / "installed"));
    };
    machine.environment["KILN_TRUSTED_KEYS"] = pub("other");
    expect_refused("expected the signature of one of 1 trusted keys");
    machine.environment["KILN_TRUSTED_KEYS"] = pub("mine");
    machine.environment["KILN_CACHE_PATH"] = made().bundle.string();
    expect_refused("found none");
    auto text = read_text(path);
    text[cache::bundle_at::kContentsDigest] ^= 1;
    machine.environment["KILN_CACHE_PATH"] = path.string();
    std::ofstream(path, std::ios::binary) << text;
    expect_refused("signature");
    // No key is not any key.
    machine.environment["KILN_TRUSTED_KEYS"] = pub("none");
    CHECK(machine.check().exit_code == 1);
    CHECK(contains(machine.check().err, "KILN_TRUSTED_KEYS"));
}

TEST_CASE("InstalledBundleIsALayerForEverybody") {
    TemporaryFolder folder;
    const auto layer = folder.path() / "layer";
    const auto installed =
        run_kiln({"bundle", "install", "--json", made().bundle.string(), layer.string()}, {});
    INFO(installed.err);
    REQUIRE(installed.exit_code == 0);
    CHECK(installed.json()["entries"] == made().said["entries"]);
    for (const auto& item : fs::recursive_directory_iterator(layer)) {
        struct stat info {};
        REQUIRE(::stat(item.path().c_str(), &info) == 0);
        CHECK_MESSAGE((info.st_mode & 0777) == (item.is_directory() ? 0755 : 0644), item.path().string());
    }
    CHECK(fs::exists(layer / "shapes" / "linear.json"));
    Machine machine(layer);
    CHECK(machine.check().exit_code == 0);
    CHECK(machine.check().json()["items"][0]["source"] == "cache");
    // Without a compiler too, the simulator included.
    machine.lose_compilers();
    const auto verified = machine.run(with({"verify", "--json", "--device", "sim", "--m", "5"}, kProblem));
    INFO(verified.out << verified.err);
    CHECK(verified.exit_code == 0);
    CHECK(verified.json()["cases"][0]["source"] == "cache");
}

TEST_CASE("MergedBundlesAreTheBundleOfTheWhole") {
    const std::vector<std::string> other = {"linear", "n=4096", "k=1024"};
    TemporaryFolder folder;
    make_keys(folder.path(), "mine");
    const auto at = [&](const char* name) { return (folder.path() / name).string(); };
    const auto create = [&](const char* name, const std::vector<std::string>& what) {
        const auto outcome =
            run_kiln(with({"bundle", "create", "--json", "--target", "gfx950", "-o", at(name)}, what),
                     {{"KILN_CACHE_DIR", made().cache.string()}});
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
    };
    const auto merge = [&](const char* out, const std::vector<std::string>& what,
                           const Variables& environment = {}) {
        return run_kiln(with({"bundle", "merge", "--json", "-o", at(out)}, what), environment);
    };
    const std::string one = made().bundle.string();
    create("two", other);
    create("whole", with(kProblem, other));
    const auto merged = merge("merged", {one, at("two")});
    INFO(merged.err);
    REQUIRE(merged.exit_code == 0);
    CHECK(merged.json()["merged"] == 2);
    CHECK(merged.json()["tables"] == made().said["tables"]);
    CHECK(read_text(at("merged")) == read_text(at("whole")));
    // Whatever the order, and whatever is named twice or merged already.
    REQUIRE(merge("again", {at("two"), one, one, at("merged")}).exit_code == 0);
    CHECK(read_text(at("again")) == read_text(at("whole")));
    Machine machine(at("merged"));
    machine.lose_compilers();
    machine.expect_served_from_bundle();

    // Signed anew, of signed ones alone where keys are trusted.
    const Variables trust = {{"KILN_TRUSTED_KEYS", at("mine.pub")}};
    const auto refused = merge("signed", {one, "--sign", at("mine.pem")}, trust);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, "found none"));
    CHECK(!fs::exists(at("signed")));
    REQUIRE(merge("signed", {one, "--sign", at("mine.pem")}).exit_code == 0);
    REQUIRE(merge("signed-again", {at("signed"), "--sign", at("mine.pem")}, trust).exit_code == 0);
    CHECK(read_text(at("signed-again")) == read_text(at("signed")));
    CHECK(run_kiln({"bundle", "verify", at("signed")}, trust).exit_code == 0);
}

TEST_CASE("BundlesThatDoNotAgreeAreNotMerged") {
    TemporaryFolder folder;
    const auto at = [&](const char* name) { return (folder.path() / name).string(); };
    const auto write = [&](const char* name, const char* code, const char* table, const char* description) {
        cache::BundleWriter writer;
        const auto key = cache::Key::make(R"({"schema":1})", R"({"build":1})");
        const std::string text = code;
        const auto bytes = kiln::as_bytes(text);
        if (!text.empty()) {
            REQUIRE(writer.add(*cache::serialise(*key, {kiln::Bytes(bytes.begin(), bytes.end()), "{}", ""})));
        }
        REQUIRE(writer.add_document("linear.json", table));
        REQUIRE(cache::publish_bundle(at(name), *writer.write(description)));
        return at(name);
    };
    const auto merge = [&](const char* out, const std::vector<std::string>& what) {
        return run_kiln(with({"bundle", "merge", "--json", "-o", at(out)}, what), {});
    };
    const auto one = write("one", "code", "a table", R"({"targets":["gfx950"],"listings":true})");
    const auto empty = write("empty", "", "another table", R"({"targets":["sm_90a"],"listings":true})");
    const auto strange = write("strange", "", "a table", R"({"targets":7})");

    // Tables of one name that differ are both kept, the same ones under the same names whatever the order.
    REQUIRE(merge("both", {one, empty}).exit_code == 0);
    REQUIRE(merge("both-again", {empty, one}).exit_code == 0);
    CHECK(read_text(at("both")) == read_text(at("both-again")));
    auto said = run_kiln({"bundle", "inspect", "--json", at("both")}, {}).json();
    CHECK(said["entries"].size() == 1);
    CHECK(said["tables"][0]["name"] == "2-linear.json");
    CHECK(said["tables"][1]["name"] == "linear.json");
    CHECK(said["description"]["targets"] == nlohmann::json({"gfx950", "sm_90a"}));
    CHECK(said["description"]["listings"] == true);
    // Nothing is claimed for one that does not say.
    REQUIRE(merge("vague", {one, strange}).exit_code == 0);
    said = run_kiln({"bundle", "inspect", "--json", at("vague")}, {}).json();
    CHECK(said["description"]["targets"] == nlohmann::json({"gfx950"}));
    CHECK(said["description"]["listings"] == false);

    // Two entries of one key can not both be right.
    const auto other = write("other", "other code", "a table", "{}");
    const auto differ = merge("out", {one, other});
    CHECK(differ.exit_code == 2);
    CHECK(contains(differ.err, other + ": not merged: entry "));
    CHECK(contains(differ.err, "expected one of each key, found two that differ"));
    auto text = read_text(other);
    text.back() ^= 1;
    std::ofstream(at("damaged"), std::ios::binary) << text;
    fs::permissions(at("damaged"), fs::perms(0644));
    const auto damaged = merge("out", {one, at("damaged")});
    CHECK(damaged.exit_code == 1);
    CHECK(contains(damaged.err, at("damaged") + ": not merged: "));
    CHECK(merge("out", {one, at("none")}).exit_code == 2);
    CHECK(merge("one", {empty}).exit_code == 2);  // never over what is there
    CHECK(merge("out", {}).exit_code == 2);
    CHECK(!fs::exists(at("out")));
}

TEST_CASE("InstalledTablesGoBeforeOneAnotherAsTheyDid") {
    TemporaryFolder folder;
    const auto at = [&](const char* name) { return (folder.path() / name).string(); };
    // A row in place of a shipped one.
    REQUIRE(run_kiln(with(with({"suggest", "--again"}, kProblem), {"--out", at("zed.json")}), {}).exit_code ==
            0);
    const auto created =
        run_kiln(with({"bundle", "create", "--target", "gfx950", "-o", at("x.kiln")}, kProblem),
                 {{"KILN_CACHE_DIR", made().cache.string()}, {"KILN_SHAPES_PATH", at("zed.json")}});
    INFO(created.err);
    REQUIRE(created.exit_code == 0);
    const auto installed = run_kiln({"bundle", "install", "--json", at("x.kiln"), at("layer")}, {});
    REQUIRE(installed.exit_code == 0);
    const std::string path = installed.json()["shapes_path"];
    CHECK(path.find(at("layer/shapes/zed.json") + ":") == 0);
    CHECK(contains(path, ":" + at("layer/shapes/linear.json")));
    Machine machine(at("x.kiln"));
    machine.environment["KILN_SHAPES_PATH"] = path;
    const auto checked = machine.check();
    INFO(checked.err);
    CHECK(checked.exit_code == 0);

    // Merged with one of another order, which of them goes first is not known.
    REQUIRE(
        run_kiln({"bundle", "merge", "-o", at("both"), at("x.kiln"), made().bundle.string()}, {}).exit_code ==
        0);
    const auto merged = run_kiln({"bundle", "install", "--json", at("both"), at("other")}, {});
    CHECK(merged.json()["shapes_path"] == at("other/shapes"));
}

// Whoever made it may not write to the terminal of whoever looks.
TEST_CASE("InspectShowsNoControlCharactersOfABundle") {
    TemporaryFolder folder;
    const auto path = folder.path() / "hostile.kiln";
    cache::BundleWriter writer;
    const auto key = cache::Key::make(R"({"schema":1})", R"({"build":1})");
    REQUIRE(writer.add(*cache::serialise(*key, {kiln::Bytes(1), R"({"kernel":"k\u001b[2J"})", ""})));
    REQUIRE(writer.add_document("t\x1b[2J.json", "{}"));
    REQUIRE(cache::publish_bundle(path, *writer.write("{\"made\":\"\xc2\x9b\"}")));
    const auto inspected = run_kiln({"bundle", "inspect", path.string()}, {});
    CHECK(inspected.exit_code == 0);
    CHECK(contains(inspected.out, "k\\x1b[2J"));
    CHECK(contains(inspected.out, "table t\\x1b[2J.json"));
    CHECK(!contains(inspected.out, "\x1b"));
    CHECK(!contains(inspected.out, "\xc2\x9b"));
}

TEST_CASE("DamagedBundleSaysWhereAndTheRestIsServed") {
    TemporaryFolder folder;
    const auto path = folder.path() / "damaged.kiln";
    auto text = read_text(made().bundle);
    text[text.size() - 100] ^= 1;  // in the last entry
    std::ofstream(path, std::ios::binary) << text;
    fs::permissions(path, fs::perms(0644));
    const auto verified = run_kiln({"bundle", "verify", "--json", path.string()}, {});
    CHECK(verified.exit_code == 1);
    CHECK(verified.json()["sound"] == false);
    CHECK(verified.json()["faults"].size() == 2);  // the contents, and the entry
    Machine machine(path);
    const auto stats = machine.run({"stats", "--json"}).json();
    CHECK(stats["layers"][0]["unreadable"] == 1);
    CHECK(run_kiln({"bundle", "verify", (folder.path() / "none").string()}, {}).exit_code == 2);
    CHECK(run_kiln({"bundle", "verify", made().bundle.string()}, {}).exit_code == 0);
    CHECK(run_kiln({"bundle"}, {}).exit_code == 2);
}
