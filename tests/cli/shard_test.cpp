// kiln warm --shard and kiln bundle create --shard: machines that do not speak with each other share the
// work.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "run_kiln.hpp"

using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;
using kiln::test::with;

namespace {

using Json = nlohmann::json;

const std::vector<std::string> kProblem = {"linear", "n=4096", "k=2048"};

// What is to be compiled, whether or not a machine has it.
std::string identity(Json item) {
    for (const char* there : {"source", "missing"}) {
        item.erase(there);
    }
    return item.dump();
}

std::string numbered(std::string name, std::size_t number) {
    return name += std::to_string(number);
}

std::string shard(int index, int count) {
    return std::to_string(index) + "/" + std::to_string(count);
}

// A fleet, of which every machine has the same tables and a store of its own.
struct Fleet {
    TemporaryFolder folder;

    [[nodiscard]] std::string path(const std::string& name) const { return (folder.path() / name).string(); }
    [[nodiscard]] Variables machine(const std::string& name) const {
        return {{"KILN_CACHE_DIR", path(name)}};
    }
    [[nodiscard]] Json look(const std::vector<std::string>& words, Variables environment) const {
        environment.emplace("KILN_CACHE_DIR", path("never made"));
        const auto outcome = run_kiln(with({"warm", "--dry-run", "--json"}, words), environment);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        return outcome.json();
    }
    // By what is to be compiled: in which shard it is. Fails where two hold the same.
    [[nodiscard]] std::map<std::string, int> split(int count, const std::vector<std::string>& words,
                                                   const Variables& environment = {}) const {
        std::map<std::string, int> result;
        for (int index = 0; index < count; ++index) {
            const auto said = look(with({"--shard", shard(index, count)}, words), environment);
            for (const auto& item : said["items"]) {
                CHECK_MESSAGE(result.emplace(identity(item), index).second, item.dump());
            }
        }
        return result;
    }
};

const std::vector<std::string> kTables = {KILN_TEST_SHAPES "/fused_moe.json", KILN_TEST_SHAPES "/router.json",
                                          KILN_TEST_SHAPES "/linear.json"};

}  // namespace

TEST_CASE_FIXTURE(Fleet, "ShardsAreDisjointEvenAndTogetherTheWhole") {
    const auto whole = look({}, {});
    CHECK(whole["shard"].is_null());
    const auto& items = whole["items"];
    for (const int count : {1, 3, 8}) {
        INFO(count << " shards");
        const auto parts = split(count, {});
        CHECK(parts.size() == items.size());
        for (const auto& item : items) {
            CHECK_MESSAGE(parts.contains(identity(item)), item.dump());
        }
    }
    double sum = 0;
    for (int index = 0; index < 4; ++index) {
        const auto said = look({"--shard", shard(index, 4)}, {})["shard"];
        CHECK(said["index"] == index);
        CHECK(said["count"] == 4);
        CHECK(said["selected"] == items.size());
        const auto share = said["share"].get<double>();
        CHECK(share > 0.2);
        CHECK(share < 0.27);
        sum += share;
    }
    CHECK(sum == doctest::Approx(1));
}

TEST_CASE_FIXTURE(Fleet, "ARowThatIsAddedMovesFewOfTheOthers") {
    const auto before = split(4, with({"--target", "gfx950"}, kTables));
    const auto added = path("mine.json");
    REQUIRE(run_kiln({"suggest", "linear", "n=48", "k=384", "--out", added}, {}).exit_code == 0);
    const auto after = split(4, with(with({"--target", "gfx950"}, kTables), {added}));
    CHECK(after.size() > before.size());
    std::size_t moved = 0;
    for (const auto& [item, index] : before) {
        REQUIRE(after.contains(item));
        moved += after.at(item) != index ? 1 : 0;
    }
    MESSAGE(moved << " of " << before.size() << " moved");
    CHECK(moved * 20 < before.size());
}

TEST_CASE_FIXTURE(Fleet, "TheSplitIsTheSameWhateverAMachineHas") {
    const std::vector<std::string> words = {"linear"};
    auto elsewhere = machine("warm");
    REQUIRE(run_kiln(with({"warm", "--target", "gfx950"}, kProblem), elsewhere).exit_code == 0);
    elsewhere["KILN_CUDA_PREFIX"] = path("none");  // sm_90a is left out
    const auto here = split(3, words);
    const auto there = split(3, words, elsewhere);
    CHECK(there.size() > 20);
    for (const auto& [item, index] : there) {
        REQUIRE(here.contains(item));
        CHECK(here.at(item) == index);
    }
}

TEST_CASE_FIXTURE(Fleet, "EachMachineCompilesItsPartAndTogetherTheyServeTheWhole") {
    constexpr int kMachines = 3;
    const auto all = look(with({"--target", "gfx950"}, kProblem), {})["items"].size();
    std::string places;
    std::size_t compiled = 0;
    for (int index = 0; index < kMachines; ++index) {
        const auto name = numbered("machine ", index);
        const auto words =
            with({"warm", "--json", "--target", "gfx950", "--shard", shard(index, kMachines)}, kProblem);
        CHECK(run_kiln(with(words, {"--check"}), machine(name)).exit_code == 1);
        const auto outcome = run_kiln(words, machine(name));
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        compiled += outcome.json()["summary"]["compiled"].get<std::size_t>();
        CHECK(outcome.json()["items"].size() == outcome.json()["summary"]["compiled"]);
        CHECK(run_kiln(with(words, {"--check"}), machine(name)).exit_code == 0);
        places += path(name) + ":";
    }
    CHECK(compiled == all);
    auto fleet = machine("own");
    places.pop_back();
    fleet.emplace("KILN_CACHE_PATH", places);
    CHECK(run_kiln(with({"warm", "--check", "--target", "gfx950"}, kProblem), fleet).exit_code == 0);

    // There may be more machines than there is work: nothing to do is done.
    std::size_t idle = 0;
    for (int index = 0; index < 9; ++index) {
        const auto words = with({"warm", "--target", "gfx950", "--shard", shard(index, 9)}, kProblem);
        const auto spoken = run_kiln(with(words, {"--check"}), fleet);
        CHECK(spoken.exit_code == 0);
        if (contains(spoken.out, numbered(": 0 of ", all) + " specialisations")) {
            ++idle;
            CHECK(run_kiln(words, machine("idle")).exit_code == 0);
        }
    }
    CHECK(idle >= 9 - all);
}

TEST_CASE_FIXTURE(Fleet, "BundlesOfShardsHoldTheirPartAndMergedTheWhole") {
    std::size_t kernels = 0;
    std::vector<std::string> bundles;
    const auto all = look(with({"--target", "gfx950"}, kProblem), {})["items"].size();
    for (int index = 0; index < 5; ++index) {
        const auto bundle = path(numbered("shard ", index));
        const auto made = run_kiln(with({"bundle", "create", "--json", "--target", "gfx950", "-o", bundle,
                                         "--shard", shard(index, 5)},
                                        kProblem),
                                   machine("build"));
        INFO(made.err);
        REQUIRE(made.exit_code == 0);
        CHECK(run_kiln({"bundle", "verify", bundle}, {}).exit_code == 0);
        CHECK(made.json()["tables"].get<int>() > 0);
        kernels += made.json()["kernels"].get<std::size_t>();
        bundles.insert(bundles.begin(), bundle);
    }
    CHECK(kernels == all);

    const auto merged =
        run_kiln(with({"bundle", "merge", "--json", "-o", path("merged")}, bundles), machine("never made"));
    INFO(merged.err);
    REQUIRE(merged.exit_code == 0);
    REQUIRE(run_kiln(with({"bundle", "create", "--target", "gfx950", "-o", path("whole")}, kProblem),
                     machine("build"))
                .exit_code == 0);
    CHECK(contents(path("merged")) == contents(path("whole")));

    // A part that is forgotten is named; what was merged without it can be completed.
    const std::vector<std::string> some{bundles[0], bundles[1], bundles[3]}, rest{bundles[2], bundles[4]};
    const auto forgotten = run_kiln(with({"bundle", "merge", "-o", path("some")}, some), {});
    CHECK(forgotten.exit_code == 2);
    CHECK(contains(forgotten.err, "found none of 0/5, 2/5"));
    CHECK(!std::filesystem::exists(path("some")));
    const auto partial =
        run_kiln(with({"bundle", "merge", "--partial", "--json", "-o", path("some")}, some), {});
    REQUIRE(partial.exit_code == 0);
    CHECK(partial.json()["missing"] == nlohmann::json{"0/5", "2/5"});
    REQUIRE(run_kiln(with({"bundle", "merge", "-o", path("completed"), path("some")}, rest), {}).exit_code ==
            0);
    CHECK(contents(path("completed")) == contents(path("whole")));
}

TEST_CASE_FIXTURE(Fleet, "ShardsThatCanNotBeAreRefused") {
    for (const std::string bad : {"", "1", "/", "1/", "/4", "4/4", "-1/4", "0/0", "1/-4", "a/4", "1/4/2",
                                  "1.0/4", " 1/4", "0/10001", "99999999999999999999/4"}) {
        for (const auto& command :
             std::vector<std::vector<std::string>>{{"warm", "--json"},
                                                   {"warm", "--check", "--json"},
                                                   {"bundle", "create", "--json", "-o", path("x")}}) {
            const auto outcome = run_kiln(with(command, {"--shard=" + bad}), machine("never made"));
            INFO(bad);
            CHECK(outcome.exit_code == 2);
            CHECK(contains(outcome.err, "--shard"));
            CHECK(contains(outcome.json()["error"]["message"], "--shard"));
            CHECK((bad.empty() || contains(outcome.err, '"' + bad + '"')));
        }
    }
    CHECK(!std::filesystem::exists(path("x")));
    CHECK(!std::filesystem::exists(path("never made")));
}
