// Ctrl-C and SIGTERM at any moment: what is done is kept and told, no worker is left, the exit code is 130.

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "run_kiln.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::Outcome;
using kiln::test::run_kiln;
using kiln::test::Running;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;
using kiln::test::with;

namespace {

using namespace std::chrono_literals;

// A cache and a folder for temporary files of its own, which also tells this test's workers from all others.
struct Place {
    TemporaryFolder folder;
    fs::path temporary = folder.path() / "tmp";
    Variables environment;

    Place() {
        fs::create_directory(temporary);
        environment["KILN_CACHE_DIR"] = (folder.path() / "cache").string();
        environment["KILN_DEVICE"] = std::string("sim");
        environment["TMPDIR"] = temporary.string();
    }

    // Processes that name our folder on their command line or in their environment.
    int num_workers() const {
        int count = 0;
        std::error_code error;
        for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
            std::ifstream file(it->path() / "cmdline", std::ios::binary);
            const std::string line{std::istreambuf_iterator<char>(file), {}};
            count += contains(line, "kiln-compile") && contains(line, temporary.string()) ? 1 : 0;
        }
        return count;
    }

    // Ended workers may take a moment to be gone.
    void expect_nothing_left() const {
        const auto deadline = std::chrono::steady_clock::now() + 30s;
        while (num_workers() > 0 && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(10ms);
        }
        CHECK(num_workers() == 0);
        while (!fs::is_empty(temporary) && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(10ms);
        }
        CHECK(fs::is_empty(temporary));
    }

    // Everything that the cache holds is sound, and what `outcome` says was compiled is there.
    void expect_kept(const Outcome& outcome) const {
        const auto listed = run_kiln({"ls", "--json"}, environment);
        REQUIRE(listed.exit_code == 0);
        const auto entries = listed.json()["entries"];
        std::set<std::string> keys;
        for (const auto& entry : entries) {
            CHECK_FALSE(entry.contains("error"));
            keys.insert(entry["key"].get<std::string>());
        }
        const auto document = outcome.json();
        if (!document.contains("items")) {
            CHECK(contains(document["error"]["message"], "interrupted"));  // before anything was begun
            return;
        }
        std::size_t compiled = 0;
        std::size_t skipped = 0;
        for (const auto& item : document["items"]) {
            if (item.value("source", "") == "compiled") {
                ++compiled;
                CHECK(keys.contains(item["key"].get<std::string>()));
            }
            skipped += item.value("skipped", false) ? 1 : 0;
        }
        CHECK(document["summary"]["compiled"] == compiled);
        CHECK(document["summary"]["skipped"] == skipped);
        CHECK(document["summary"]["failed"] == 0);
    }
};

}  // namespace

TEST_CASE_FIXTURE(Place, "InterruptedWarmKeepsWhatIsDoneAndSaysSo") {
    Running running({"warm", "--jobs", "1", "linear"}, environment);
    REQUIRE(running.wait_for_err("[1/"));
    running.send(SIGINT);
    const auto outcome = running.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 130);
    CHECK(contains(outcome.err, "kiln: stopping"));
    CHECK(contains(outcome.out, "undone"));
    expect_nothing_left();

    const auto again = run_kiln({"warm", "--json", "--dry-run", "linear"}, environment);
    CHECK(again.exit_code == 0);
    CHECK(again.json()["summary"]["hits"].get<int>() >= 1);
    CHECK(again.json()["summary"]["missing"].get<int>() >= 1);
}

// More than what can be compiled before all the signals of the case have come.
const std::vector<std::string> kSome = {"linear", "n=4096", "k=2048", "linear", "n=4608",
                                        "k=4096", "linear", "n=2560", "k=4096"};

TEST_CASE_FIXTURE(Place, "SignalsAtRandomMomentsLeaveASoundCacheAndOneDocument") {
    const auto seed = std::random_device{}();
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    bool interrupted_at_work = false;
    for (int i = 0; i < 6; ++i) {
        const auto pause = std::chrono::milliseconds(random() % 700);
        const int signal = random() % 2 == 0 ? SIGINT : SIGTERM;
        INFO("seed " << seed << ", signal " << signal << " after " << pause.count() << " ms");
        Running running(with({"warm", "--json"}, kSome), environment);
        std::this_thread::sleep_for(pause);
        running.send(signal);
        const auto outcome = running.wait();
        INFO(outcome.out << outcome.err);
        // The signal may come before the program catches any, or after it has printed.
        if (outcome.exit_code == 128 + signal && outcome.out.empty()) {
            continue;
        }
        CHECK((outcome.exit_code == 130 ||
               (outcome.exit_code == 0 && !outcome.json()["interrupted"].get<bool>())));
        expect_kept(outcome);
        expect_nothing_left();
        interrupted_at_work = interrupted_at_work || outcome.json().contains("items");
    }
    // After all that the rest compiles, and only the rest.
    const auto looked = run_kiln(with({"warm", "--json", "--dry-run"}, kSome), environment).json()["summary"];
    const auto rest = run_kiln(with({"warm", "--json"}, kSome), environment);
    CHECK(rest.exit_code == 0);
    CHECK(rest.json()["summary"]["hits"] == looked["hits"]);
    CHECK(rest.json()["summary"]["compiled"] == looked["missing"]);
}

TEST_CASE_FIXTURE(Place, "SecondInterruptEndsWarmAtOnceAndItsWorkersToo") {
    // One that starts and never answers: whoever waits for it waits for ever.
    auto stuck = environment;
    stuck["KILN_WORKER"] = std::string(KILN_STUCK_WORKER);
    Running running({"warm", "--json", "linear", "n=4096", "k=2048"}, stuck);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (fs::is_empty(temporary) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
    }
    running.send(SIGINT);
    running.send(SIGINT);
    const auto started = std::chrono::steady_clock::now();
    const auto outcome = running.wait();
    INFO(outcome.out << outcome.err);
    CHECK(std::chrono::steady_clock::now() - started < 30s);
    CHECK(outcome.exit_code == 130);
    static_cast<void>(outcome.json());
}

TEST_CASE_FIXTURE(Place, "InterruptedCompileThatNeverEndsIsEndedByTheFirstSignal") {
    auto stuck = environment;
    stuck["KILN_WORKER"] = std::string(KILN_STUCK_WORKER);
    Running running({"warm", "--json", "linear", "n=4096", "k=2048"}, stuck);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (fs::is_empty(temporary) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
    }
    running.send(SIGTERM);
    const auto outcome = running.wait();
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 130);
    const auto document = outcome.json();
    if (document.contains("summary")) {
        CHECK(document["summary"]["compiled"] == 0);
        CHECK(document["summary"]["failed"] == 0);
        CHECK(document["summary"]["skipped"].get<int>() >= 1);
        CHECK(document["interrupted"] == true);
    }
    expect_nothing_left();
}

TEST_CASE_FIXTURE(Place, "InterruptedVerifyTellsWhatItChecked") {
    REQUIRE(run_kiln({"warm", "linear", "n=4096", "k=2048"}, environment).exit_code == 0);
    // As many cases as make sure that some are left.
    std::string m = "1";
    for (int i = 2; i <= 32; ++i) {
        m += ',';
        m += std::to_string(i);
    }
    Running running({"verify", "linear", "n=4096", "k=2048", "--m", m}, environment);
    REQUIRE(running.wait_for_err("M=2\n"));
    running.send(SIGINT);
    const auto outcome = running.wait();
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 130);
    CHECK(contains(outcome.out, "interrupted: passed "));
    CHECK(contains(outcome.out, "failed 0"));
    expect_nothing_left();
}

TEST_CASE_FIXTURE(Place, "InterruptedVerifyEndsACompileAndPrintsOneDocument") {
    auto stuck = environment;
    stuck["KILN_WORKER"] = std::string(KILN_STUCK_WORKER);
    Running running({"verify", "--json", "linear", "n=4096", "k=2048", "--m", "1"}, stuck);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (fs::is_empty(temporary) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
    }
    running.send(SIGINT);
    const auto outcome = running.wait();
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 130);
    CHECK(outcome.json()["interrupted"] == true);
    expect_nothing_left();
}
