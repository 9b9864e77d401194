// ls, stats, prune and clear as their users meet them.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "run_kiln.hpp"

using kiln::test::contains;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

using Environment = std::map<std::string, std::string>;

// A cache of its own that holds one problem's kernels.
struct WarmCache {
    TemporaryFolder temporary;
    fs::path folder = temporary.path() / "cache";
    Environment environment = {{"KILN_CACHE_DIR", folder.string()}};
    std::size_t entries = 0;

    WarmCache() {
        const auto warmed =
            run_kiln({"warm", "--json", "--target", "gfx950", "linear", "n=4096", "k=2048"}, environment);
        INFO(warmed.err);
        REQUIRE(warmed.exit_code == 0);
        entries = warmed.json()["summary"]["compiled"].get<std::size_t>();
        REQUIRE(entries >= 2);
    }
    [[nodiscard]] nlohmann::json run(std::vector<std::string> arguments, const Environment& more = {}) const {
        auto all = environment;
        all.insert(more.begin(), more.end());
        arguments.emplace_back("--json");
        const auto outcome = run_kiln(arguments, all);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        return outcome.json();
    }
    [[nodiscard]] std::vector<fs::path> entry_files() const {
        std::vector<fs::path> files;
        for (const auto& item : fs::recursive_directory_iterator(folder)) {
            if (item.path().extension() == ".entry") {
                files.push_back(item.path());
            }
        }
        return files;
    }
};

void make_older(const fs::path& path, int days) {
    const struct timespec times[] = {{0, UTIME_OMIT}, {std::time(nullptr) - days * 86400, 0}};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("LookingAtACacheThatIsNotThereDoesNotMakeIt") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "cache";
    for (const char* command : {"ls", "stats", "prune", "clear"}) {
        const auto outcome = run_kiln({command, "--json"}, {{"KILN_CACHE_DIR", folder.string()}});
        INFO(command << ": " << outcome.err);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.json()["folder"] == folder.string());
        CHECK(!fs::exists(folder));
        CHECK(run_kiln({command}, {{"KILN_CACHE_DIR", folder.string()}}).exit_code == 0);
    }
    CHECK(run_kiln({"stats", "--json"}, {{"KILN_CACHE_DIR", folder.string()}}).json()["exists"] == false);
}

TEST_CASE_FIXTURE(WarmCache, "LsAndStatsCountTheStoreAndItsLayers") {
    const Environment as_layer = {{"KILN_CACHE_PATH", folder.string()},
                                  {"KILN_CACHE_DIR", (temporary.path() / "own").string()}};
    const auto own = run({"ls"});
    CHECK(own["entries"].size() == entries);
    CHECK(own["layers"].empty());
    CHECK(!own["entries"][0].contains("layer"));

    const auto layered = run_kiln({"ls", "--json"}, as_layer).json();
    CHECK(layered["entries"].size() == entries);
    CHECK(layered["entries"][0]["layer"] == folder.string());
    CHECK(contains(run_kiln({"ls"}, as_layer).out, folder.string()));

    const auto key = layered["entries"][0]["key"].get<std::string>();
    const auto shown = run_kiln({"show", "--json", "--meta", key.substr(0, 12)}, as_layer);
    CHECK(shown.exit_code == 0);
    CHECK(shown.json()["meta"]["operator"] == "linear");
    CHECK(!fs::exists(temporary.path() / "own"));

    auto stats = run({"stats"}, {{"KILN_CACHE_LIMIT", "1GiB"}});
    CHECK(stats["entries"] == entries);
    CHECK(stats["bytes"].get<std::size_t>() > 1000);
    CHECK(stats["limit"] == 1 << 30);
    for (const auto& [by, name] : std::map<std::string, std::string>{{"operator", "linear"},
                                                                     {"template", "linear/small_m"},
                                                                     {"target", "gfx950"},
                                                                     {"kind", "kernel"}}) {
        CHECK(stats["by"][by][name]["entries"] == entries);
        CHECK(stats["by"][by][name]["bytes"] == stats["bytes"]);
    }
    CHECK(stats["by"]["compiler"].size() == 1);
    CHECK(stats["last_used"]["newest"] >= stats["last_used"]["oldest"]);
    stats = run_kiln({"stats", "--json"}, as_layer).json();
    CHECK(stats["entries"] == 0);
    CHECK(stats["layers"][0]["entries"] == entries);
    const auto spoken = run_kiln({"stats"}, as_layer).out;
    CHECK(contains(spoken, "layer " + folder.string()));
    CHECK(contains(spoken, "linear/small_m"));

    // Each folder is looked into once, whatever it is called.
    fs::create_symlink(folder, temporary.path() / "other");
    auto twice = as_layer;
    twice["KILN_CACHE_PATH"] = folder.string() + ":" + (temporary.path() / "other").string();
    const auto once = run_kiln({"ls", "--json"}, twice);
    CHECK(once.json()["entries"].size() == entries);
    CHECK(contains(once.err, (temporary.path() / "other").string()));
    CHECK(run({"ls"}, {{"KILN_CACHE_PATH", folder.string()}})["entries"].size() == entries);

    // A layer that can not be listed hides no other.
    const auto broken = temporary.path() / "broken";
    fs::create_directory(broken);
    std::ofstream(broken / "v1") << "no folder";
    twice["KILN_CACHE_PATH"] = broken.string() + ":" + folder.string();
    const auto beside = run_kiln({"ls", "--json"}, twice);
    CHECK(beside.exit_code == 0);
    CHECK(beside.json()["entries"].size() == entries);
    CHECK(contains(beside.err, broken.string()));

    // A layer that is refused is named.
    fs::permissions(folder, fs::perms(0777));
    const auto refused = run_kiln({"stats", "--json"}, as_layer);
    CHECK(refused.exit_code == 0);
    CHECK(contains(refused.err, "found mode 0777"));
    CHECK(refused.json()["refused_layers"].size() == 1);
}

TEST_CASE_FIXTURE(WarmCache, "PruneBySizeAndAgeRemovesWhatItSaidItWould") {
    const auto files = entry_files();
    make_older(files[0], 40);
    make_older(files[1], 20);
    auto said = run({"prune", "--max-age", "30d", "--dry-run"});
    CHECK(said["dry_run"] == true);
    CHECK(said["removed"]["entries"] == 1);
    CHECK(said["entries"][0]["path"] == files[0].string());
    CHECK(fs::exists(files[0]));
    CHECK(contains(run_kiln({"prune", "--max-age", "30d", "--dry-run"}, environment).out,
                   "would remove 1 entries"));
    auto done = run({"prune", "--max-age", "30d"});
    CHECK(done["removed"] == said["removed"]);
    CHECK(!fs::exists(files[0]));

    // Without a bound said: the store's own, which holds, and the leftovers.
    std::ofstream(files[1].string() + ".1.0123456789abcdef.tmp") << "half";
    std::ofstream(files[1], std::ios::app) << "x";
    make_older(files[1], 20);
    CHECK(run({"stats"})["leftovers"]["temporaries"] == 1);
    CHECK(run({"stats"})["unreadable"] == 1);
    done = run({"prune"});
    CHECK(done["removed"]["entries"] == 0);
    CHECK(done["removed"]["temporaries"] == 1);
    CHECK(done["kept"]["entries"] == entries - 1);

    done = run({"prune", "--max-size", "1B"});
    CHECK(done["removed"]["entries"] == entries - 1);
    CHECK(done["entries"][0]["path"] == files[1].string());  // the least recently used first
    CHECK(entry_files().empty());
}

TEST_CASE_FIXTURE(WarmCache, "ClearRemovesTheStoreAndNothingElse") {
    std::ofstream(folder / "notes.txt") << "mine";
    const auto said = run({"clear", "--dry-run"});
    CHECK(said["removed"]["entries"] == entries);
    CHECK(entry_files().size() == entries);
    // No terminal, no question.
    const auto outcome = run_kiln({"clear"}, environment);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "removed " + std::to_string(entries) + " entries"));
    CHECK(entry_files().empty());
    CHECK(fs::exists(folder / "notes.txt"));
    CHECK(!fs::exists(folder / "v1"));
    CHECK(run({"warm", "--target", "gfx950", "linear", "n=4096", "k=2048"})["summary"]["compiled"] ==
          entries);
}

TEST_CASE_FIXTURE(WarmCache, "WarmingThatEvictsWhatItFoundIsNoSuccess") {
    auto bounded = environment;
    bounded.emplace("KILN_CACHE_LIMIT", "50kB");
    // One at a time, those that are there first.
    std::vector<std::string> words = {"warm",   "--json", "--jobs", "1",      "linear",
                                      "n=4096", "k=2048", "linear", "n=4096", "k=1024"};
    const auto warmed = run_kiln(words, bounded);
    CHECK(warmed.exit_code == 3);
    CHECK(contains(warmed.err, "could not be kept"));
    CHECK(warmed.json()["summary"]["hits"] == entries);
    words.emplace_back("--check");
    const auto missing = run_kiln(words, bounded).json()["summary"]["missing"];
    CHECK(missing == warmed.json()["summary"]["lost"]);
    CHECK(missing > 0);
}

TEST_CASE_FIXTURE(WarmCache, "LayersAreNeverPruned") {
    const Environment as_layer = {{"KILN_CACHE_PATH", folder.string()},
                                  {"KILN_CACHE_DIR", (temporary.path() / "own").string()}};
    fs::create_directory(temporary.path() / "own");
    fs::permissions(temporary.path() / "own", fs::perms::owner_all);
    CHECK(run_kiln({"clear"}, as_layer).exit_code == 0);
    CHECK(run_kiln({"prune", "--max-size", "0"}, as_layer).exit_code == 0);
    CHECK(entry_files().size() == entries);
    // And what a layer holds is not compiled.
    const auto warmed =
        run_kiln({"warm", "--json", "--target", "gfx950", "linear", "n=4096", "k=2048"}, as_layer);
    CHECK(warmed.json()["summary"]["compiled"] == 0);
    CHECK(warmed.json()["summary"]["hits"] == entries);
}

TEST_CASE("BadBoundsAndPlacesAreSaid") {
    const TemporaryFolder temporary;
    const Environment environment = {{"KILN_CACHE_DIR", temporary.path().string()}};
    for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
             {"--max-size", "much"}, {"--max-size", "-1"}, {"--max-age", "30"}, {"--max-age", "x"}}) {
        const auto outcome = run_kiln({"prune", option, value}, environment);
        CHECK(outcome.exit_code == 2);
        CHECK(contains(outcome.err, option + ": expected a"));
        CHECK(contains(outcome.err, '"' + value + '"'));
    }
    CHECK(run_kiln({"stats"}, {{"KILN_CACHE_LIMIT", "lots"}}).exit_code == 2);
    fs::permissions(temporary.path(), fs::perms(0777));
    for (const char* command : {"ls", "stats", "prune", "clear"}) {
        const auto outcome = run_kiln({command, "--json"}, environment);
        CHECK(outcome.exit_code == 3);
        CHECK(contains(outcome.json()["error"]["message"], "found mode 0777"));
    }
}
