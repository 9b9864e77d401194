// --metrics-file: what a run came to, for a collector of the machine that reads the file at any moment.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "run_kiln.hpp"
#include "tests/prometheus_page.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::contents;
using kiln::test::Outcome;
using kiln::test::PrometheusPage;
using kiln::test::run_kiln;
using kiln::test::Running;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;
using kiln::test::with;

namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kProblem = {"linear", "n=4096", "k=1024"};

// A cache, and a folder as the node exporter has it.
struct Machine {
    TemporaryFolder folder;
    fs::path pages = folder.path() / "node_exporter";
    fs::path file = pages / "kiln.prom";
    Variables environment = {{"KILN_CACHE_DIR", (folder.path() / "cache").string()}, {"KILN_DEVICE", "sim"}};

    Machine() { fs::create_directory(pages); }

    [[nodiscard]] Outcome run(std::vector<std::string> words, const Variables& more = {}) const {
        auto variables = environment;
        variables.insert(more.begin(), more.end());
        return run_kiln(with(std::move(words), {"--metrics-file", file.string()}), variables);
    }
    [[nodiscard]] PrometheusPage page() const { return PrometheusPage(contents(file)); }
    // Nothing is left beside it.
    [[nodiscard]] bool stands_alone() const {
        return std::distance(fs::directory_iterator(pages), fs::directory_iterator()) == 1 &&
               fs::exists(file);
    }
};

double result(const PrometheusPage& page, const std::string& command, const std::string& name) {
    return page.at("kiln_run_results", {{"command", command}, {"result", name}});
}

}  // namespace

TEST_CASE_FIXTURE(Machine, "MetricsFileOfWarmSaysWhatTheRunAndItsServiceCounted") {
    const auto before = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    const auto first = run(with({"warm", "--json"}, kProblem));
    REQUIRE_MESSAGE(first.exit_code == 0, first.err);
    const auto compiled = first.json()["summary"]["compiled"].get<double>();
    REQUIRE(compiled > 0);
    CHECK(stands_alone());
    struct stat info {};
    REQUIRE(::stat(file.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0644);  // the collector is another user
    const std::map<std::string, std::string> warm = {{"command", "warm"}};
    {
        const auto cold = page();
        CHECK(cold.at("kiln_run_exit_code", warm) == 0);
        CHECK(cold.at("kiln_run_duration_seconds", warm) > 0);
        CHECK(cold.at("kiln_run_start_timestamp_seconds", warm) >= before.count() - 1);
        CHECK(result(cold, "warm", "compiled") == compiled);
        CHECK(result(cold, "warm", "hits") == 0);
        CHECK(result(cold, "warm", "failed") == 0);
        CHECK(cold.at("kiln_compiles_total", {{"command", "warm"}, {"result", "done"}}) == compiled);
        for (const auto& [name, family] : cold.families()) {
            for (const auto& sample : family.samples) {
                CHECK_MESSAGE(sample.labels.at("command") == "warm", name);
            }
        }
    }
    REQUIRE(run(with({"warm"}, kProblem)).exit_code == 0);
    const auto again = page();
    CHECK(result(again, "warm", "compiled") == 0);
    CHECK(result(again, "warm", "hits") == compiled);
    CHECK(again.at("kiln_cache_hits_total", {{"command", "warm"}, {"place", "store"}}) >= compiled);

    // A gate with something missing, and a miss that may not be compiled.
    CHECK(run({"warm", "--check", "linear", "n=4608", "k=4096"}).exit_code == 1);
    CHECK(page().at("kiln_run_exit_code", warm) == 1);
    CHECK(result(page(), "warm", "missing") > 0);
    CHECK_FALSE(page().families().contains("kiln_cache_misses_total"));  // it would say 0
    CHECK(run({"warm", "linear", "n=4608", "k=4096"}, {{"KILN_JIT", "off"}}).exit_code == 3);
    CHECK(page().at("kiln_run_exit_code", warm) == 3);
    CHECK(result(page(), "warm", "failed") > 0);
    CHECK(page().at("kiln_jit_enabled", warm) == 0);
}

TEST_CASE_FIXTURE(Machine, "MetricsFileOfVerifyAndOfABundleSayTheirResults") {
    const auto verified = run(with({"verify", "--json", "--m", "1"}, kProblem));
    REQUIRE_MESSAGE(verified.exit_code == 0, verified.err);
    CHECK(result(page(), "verify", "passed") == 1);
    CHECK(result(page(), "verify", "failed") == 0);
    CHECK(result(page(), "verify", "declined") == 0);
    CHECK(page().at("kiln_loads_total", {{"command", "verify"}}) >= 1);

    const auto made = run(with(
        {"bundle", "create", "--target", "gfx950", "-o", (folder.path() / "x.kiln").string()}, kProblem));
    REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    CHECK(page().at("kiln_run_exit_code", {{"command", "bundle create"}}) == 0);
    CHECK(result(page(), "bundle create", "hits") + result(page(), "bundle create", "compiled") > 0);

    // What the command itself writes is not written over.
    file = pages / "both.kiln";
    const auto both = run(with({"bundle", "create", "--target", "gfx950", "-o", file.string()}, kProblem));
    CHECK(both.exit_code == 3);
    CHECK(contains(both.err, "found other contents"));
    CHECK(run_kiln({"bundle", "verify", file.string()}, environment).exit_code == 0);
}

TEST_CASE_FIXTURE(Machine, "MetricsFileIsWrittenWhenNoServiceOpens") {
    std::ofstream(folder.path() / "broken.json") << "{";
    CHECK(run({"warm", (folder.path() / "broken.json").string()}).exit_code == 2);
    CHECK(page().at("kiln_run_exit_code", {{"command", "warm"}}) == 2);
    CHECK_FALSE(page().families().contains("kiln_loads_total"));
}

TEST_CASE_FIXTURE(Machine, "MetricsFileOfAnInterruptedRunSaysSo") {
    // A worker that never answers: only the signal ends the run.
    const auto temporary = folder.path() / "tmp";
    fs::create_directory(temporary);
    auto stuck = environment;
    stuck["KILN_WORKER"] = std::string(KILN_STUCK_WORKER);
    stuck["TMPDIR"] = temporary.string();
    Running running(with(with({"warm"}, kProblem), {"--metrics-file", file.string()}), stuck);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (fs::is_empty(temporary) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
    }
    running.send(SIGTERM);
    const auto outcome = running.wait();
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 130);
    // Before the run had anything to keep, a signal ends it at once.
    if (contains(outcome.err, "kiln: stopping")) {
        CHECK(page().at("kiln_run_exit_code", {{"command", "warm"}}) == 130);
        CHECK(result(page(), "warm", "compiled") == 0);
        CHECK(result(page(), "warm", "skipped") > 0);
    }
    CHECK(fs::is_empty(pages) != stands_alone());
}

TEST_CASE_FIXTURE(Machine, "MetricsFileIsWholeForWhoeverReadsItAtAnyMoment") {
    REQUIRE(run(with({"warm", "--dry-run"}, kProblem)).exit_code == 0);
    std::atomic<bool> stop{false};
    std::atomic<int> reads{0};
    std::string fault;
    std::thread collector([&] {
        while (!stop && fault.empty()) {
            try {
                if (PrometheusPage(contents(file)).families().size() != 4) {
                    fault = "a page that lacks families";
                }
            } catch (const std::exception& error) {
                fault = error.what();
            }
            ++reads;
        }
    });
    for (int i = 0; i < 5; ++i) {
        CHECK(run(with({"warm", "--dry-run"}, kProblem)).exit_code == 0);
    }
    stop = true;
    collector.join();
    CHECK(fault == "");
    CHECK(reads > 0);
    CHECK(stands_alone());
}

TEST_CASE_FIXTURE(Machine, "MetricsFileThatCanNotBeIsSaidBeforeAnythingIsDone") {
    file = folder.path() / "nowhere" / "kiln.prom";
    const auto missing = run(with({"warm", "--json"}, kProblem));
    CHECK(missing.exit_code == 3);
    CHECK(contains(missing.json()["error"]["message"], "--metrics-file: write into"));
    CHECK(contains(missing.err, "nowhere"));
    file = pages;
    const auto is_folder = run(with({"warm"}, kProblem));
    CHECK(is_folder.exit_code == 2);
    CHECK(contains(is_folder.err, "found a folder"));
    file = pages / "link";
    fs::create_symlink("target", file);
    CHECK(run(with({"warm"}, kProblem)).exit_code == 2);
    CHECK(fs::is_symlink(file));
    file = pages / "pipe";  // as a device is none
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(run(with({"warm"}, kProblem)).exit_code == 2);
    CHECK(fs::is_fifo(file));
    file = pages / "notes";
    std::ofstream(file) << "of mine\n";
    const auto notes = run(with({"warm"}, kProblem));
    CHECK(notes.exit_code == 2);
    CHECK(contains(notes.err, "found other contents"));
    CHECK(contents(file) == "of mine\n");
    CHECK_FALSE(fs::exists(folder.path() / "cache"));
    // An option of the commands that take long, no others.
    CHECK(run({"ls"}).exit_code == 2);
}
