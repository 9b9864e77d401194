// The cache's places as processes of their own meet them, with the real compiler: layers, places that can not
// be used, one compile for many. What is counted is what happened.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/service/cache_places.hpp"
#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::test::open;
using kiln::test::overrides_in;
using kiln::test::Scratch;
using kiln::test::small_specialisation;

namespace fs = std::filesystem;

namespace {

// One problem with two buckets: what is said once must not be said for each.
constexpr const char* kTable =
    R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "gfx950",
        "provenance": {"kind": "untuned"}, "buckets": [
            {"max_m": 8, "template": "linear/small_m",
             "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 8, "blocks_ahead": 1}},
            {"max_m": 16, "template": "linear/small_m",
             "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";
constexpr unsigned kBuckets = 2;

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

struct Outcome {
    int exit_code = -1;
    unsigned compiles = 0, hits = 0, misses = 0, memory_hits = 0, layer_hits = 0;
    std::string said;  // on stderr
};

// What stands in the way of a test, when its child ends with this.
constexpr int kSkipped = 77;

struct Places {
    Scratch scratch;
    std::string table = scratch.write("table.json", kTable).string();

    // Starts warm_once; `prepare` runs in the child before it.
    pid_t start(const std::string& cache_dir, const fs::path& output, int rounds,
                const std::function<int()>& prepare, const std::string& program) const {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child != 0) {
            return child;
        }
        setenv("KILN_LOG", "warning", 1);
        const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int err = ::open((output.string() + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int prepared = prepare ? prepare() : 0;
        if (prepared != 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
            _exit(prepared != 0 ? prepared : 3);
        }
        const std::string count_of_rounds = std::to_string(rounds);
        execl(program.c_str(), program.c_str(), cache_dir.c_str(), table.c_str(), count_of_rounds.c_str(),
              nullptr);
        _exit(3);
    }
    static Outcome finish(pid_t child, const fs::path& output) {
        int status = -1;
        REQUIRE(waitpid(child, &status, 0) == child);
        Outcome outcome;
        outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        std::istringstream(Scratch::read(output)) >> outcome.compiles >> outcome.hits >> outcome.misses >>
            outcome.memory_hits >> outcome.layer_hits;
        outcome.said = Scratch::read(output.string() + ".err");
        return outcome;
    }
    Outcome run(const std::string& cache_dir, int rounds = 1, const std::function<int()>& prepare = {},
                const std::string& program = KILN_WARM_ONCE) const {
        const fs::path output = scratch.folder() / "output";
        return finish(start(cache_dir, output, rounds, prepare, program), output);
    }
    // Twice in one process, where no store takes anything: compiled once, and one line about it.
    void check_runs_from_memory(const Outcome& outcome, const std::string& reason) const {
        INFO(outcome.said);
        REQUIRE(outcome.exit_code == 0);
        CHECK(outcome.compiles == kBuckets);
        CHECK(outcome.memory_hits == kBuckets);
        CHECK(outcome.hits == 0);
        CHECK(count(outcome.said, "no-cache") == 1);
        CHECK(count(outcome.said, reason) >= 1);
    }
};

void fill(const Places& places, const fs::path& folder) {
    const Outcome filled = places.run(folder.string());
    INFO(filled.said);
    REQUIRE(filled.exit_code == 0);
    REQUIRE(filled.compiles == kBuckets);
}

// Every path under a folder with what a write would change.
std::string fingerprint(const fs::path& folder) {
    std::ostringstream text;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        struct stat info {};
        REQUIRE(lstat(item.path().c_str(), &info) == 0);
        text << item.path() << ' ' << info.st_size << ' ' << info.st_mtim.tv_sec << '.'
             << info.st_mtim.tv_nsec << ' ' << info.st_ctim.tv_sec << '.' << info.st_ctim.tv_nsec << '\n';
    }
    return text.str();
}

// In a child: a file system of its own on `folder`, seen by nobody else.
int mount_own(const fs::path& folder, const char* options, unsigned long flags = 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, options) != 0) {
        return kSkipped;
    }
    return flags == 0 || mount(nullptr, folder.c_str(), nullptr, MS_REMOUNT | flags, options) == 0 ? 0
                                                                                                   : kSkipped;
}

bool skipped(const Outcome& outcome, const char* what) {
    if (outcome.exit_code == kSkipped) {
        MESSAGE("skipped: this process may not mount ", what);
    }
    return outcome.exit_code == kSkipped;
}

}  // namespace

TEST_CASE_FIXTURE(Places, "cache story: sixty-four processes on one key compile once") {
    constexpr unsigned kProcesses = 64;
    std::vector<pid_t> processes;
    const auto output = [&](unsigned i) { return scratch.folder() / ("output" + std::to_string(i)); };
    for (unsigned i = 0; i < kProcesses; ++i) {
        processes.push_back(start(scratch.cache().string(), output(i), 1, {}, KILN_WARM_ONCE));
    }
    Outcome all;
    for (unsigned i = 0; i < kProcesses; ++i) {
        const Outcome one = finish(processes[i], output(i));
        INFO(one.said);
        CHECK(one.exit_code == 0);
        all.compiles += one.compiles;
        all.hits += one.hits;
        all.misses += one.misses;
    }
    CHECK(all.compiles == kBuckets);
    CHECK(all.misses == kBuckets);
    CHECK(all.hits == kBuckets * (kProcesses - 1));
    Overrides overrides = overrides_in(scratch);
    overrides.shapes_path = table;
    CHECK(open(overrides)->builder().store()->list()->size() == kBuckets);
}

TEST_CASE_FIXTURE(Places, "cache story: a layer serves, is never written, and the store stays empty") {
    const fs::path layer = scratch.folder() / "layer";
    fill(*this, layer);
    // As old as a layer that was shipped: a use would be marked in a store.
    for (const auto& item : fs::recursive_directory_iterator(layer)) {
        const struct timespec old[] = {{1000, 0}, {1000, 0}};
        REQUIRE(utimensat(AT_FDCWD, item.path().c_str(), old, 0) == 0);
    }
    const std::string before = fingerprint(layer);
    const auto with_layer = [&] { return setenv("KILN_CACHE_PATH", layer.c_str(), 1); };
    Outcome outcome = run(scratch.cache().string(), 1, with_layer);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.compiles == 0);
    CHECK(outcome.hits == kBuckets);
    CHECK(outcome.layer_hits == kBuckets);
    CHECK(outcome.misses == 0);
    CHECK(outcome.said.empty());

    // Without a compiler too.
    outcome = run(scratch.cache().string(), 1, [&] {
        return with_layer() + setenv("KILN_WORKER", (scratch.folder() / "none").c_str(), 1);
    });
    INFO(outcome.said);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.layer_hits == kBuckets);
    CHECK(fingerprint(layer) == before);

    // What the store holds goes before it.
    fill(*this, scratch.cache());
    outcome = run(scratch.cache().string(), 1, with_layer);
    CHECK(outcome.hits == kBuckets);
    CHECK(outcome.layer_hits == 0);
}

TEST_CASE_FIXTURE(Places, "cache story: a layer that others can write is refused by name, and kiln goes on") {
    const fs::path layer = scratch.folder() / "layer";
    fill(*this, layer);
    fs::permissions(layer, fs::perms(0775));
    const fs::path file = scratch.write("bundle", "x");
    const Outcome outcome = run(scratch.cache().string(), 1, [&] {
        return setenv(
            "KILN_CACHE_PATH",
            (layer.string() + ":" + file.string() + ":" + (scratch.folder() / "none").string()).c_str(), 1);
    });
    INFO(outcome.said);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.compiles == kBuckets);
    CHECK(outcome.layer_hits == 0);
    CHECK(count(outcome.said, "no-layer") == 3);
    CHECK(count(outcome.said,
                layer.string() + ": expected one that only its owner can write, found mode 0775") == 1);
    CHECK(count(outcome.said, file.string() + ": bundle, file: expected at least") == 1);
}

TEST_CASE_FIXTURE(Places, "cache story: an entry that others can write is not run but built again") {
    fill(*this, scratch.cache());
    for (const auto& item : fs::recursive_directory_iterator(scratch.cache())) {
        if (item.path().extension() == ".entry") {
            fs::permissions(item.path(), fs::perms(0622));
        }
    }
    Outcome outcome = run(scratch.cache().string());
    INFO(outcome.said);
    CHECK(outcome.compiles == kBuckets);
    CHECK(count(outcome.said, "refuse ") == kBuckets);
    CHECK(count(outcome.said, "found mode 0622") == kBuckets);
    outcome = run(scratch.cache().string());
    CHECK(outcome.hits == kBuckets);
    CHECK(outcome.compiles == 0);
}

TEST_CASE_FIXTURE(Places, "cache story: two install places and a symbolic link share one cache") {
    fill(*this, scratch.cache());
    const fs::path elsewhere = scratch.folder() / "opt" / "kiln";
    fs::create_directories(elsewhere);
    const char* const worker = std::getenv("KILN_WORKER");
    REQUIRE(worker != nullptr);
    fs::copy(worker, elsewhere / "kiln-compile");
    fs::copy(KILN_WARM_ONCE, elsewhere / "warm_once");
    fs::create_directory_symlink(scratch.cache(), scratch.folder() / "link");
    const auto other_worker = [&] { return setenv("KILN_WORKER", (elsewhere / "kiln-compile").c_str(), 1); };
    for (const fs::path& folder : {scratch.cache(), scratch.folder() / "link"}) {
        const Outcome outcome = run(folder.string(), 1, other_worker, (elsewhere / "warm_once").string());
        INFO(outcome.said);
        CHECK(outcome.exit_code == 0);
        CHECK(outcome.compiles == 0);
        CHECK(outcome.hits == kBuckets);
    }
    // The cache itself may move.
    fs::rename(scratch.cache(), scratch.folder() / "moved");
    CHECK(run((scratch.folder() / "moved").string()).hits == kBuckets);
}

TEST_CASE_FIXTURE(Places, "cache story: no home leaves memory, and is said once") {
    // The toolchain's private prefix is found through the home too; it is not what this is about.
    const char* const home = std::getenv("HOME");
    const fs::path prefix = fs::path(home != nullptr ? home : "/") / ".local/share/kiln/rocm";
    const Outcome outcome = run("", 2, [&] {
        if (std::getenv("KILN_ROCM_PREFIX") == nullptr && fs::exists(prefix)) {
            setenv("KILN_ROCM_PREFIX", prefix.c_str(), 1);
        }
        unsetenv("HOME");
        unsetenv("XDG_CACHE_HOME");
        return unsetenv("KILN_CACHE_DIR");
    });
    check_runs_from_memory(outcome, "expected KILN_CACHE_DIR");
}

TEST_CASE_FIXTURE(Places,
                  "cache story: a file, or a folder of another's, where the cache should be leaves memory") {
    const fs::path file = scratch.write("file", "x");
    check_runs_from_memory(run(file.string(), 2), "Not a directory");
    check_runs_from_memory(run((file / "cache").string(), 2), "Not a directory");
    const fs::path open_folder = scratch.folder() / "open";
    fs::create_directory(open_folder);
    fs::permissions(open_folder, fs::perms(0777));
    check_runs_from_memory(run(open_folder.string(), 2), "found mode 0777");
    // Parents that are missing are made.
    CHECK(run((scratch.folder() / "a" / "b" / "c").string(), 2).hits == kBuckets);
}

TEST_CASE_FIXTURE(Places, "cache story: a full disk, no inodes and a read-only file system leave memory") {
    const fs::path folder = scratch.folder() / "mounted";
    fs::create_directory(folder);
    struct Case {
        const char* what;
        const char* options;
        unsigned long flags;
        const char* reason;
    };
    for (const auto& one :
         {Case{"a small one", "size=4k,mode=0700", 0, "No space left on device"},
          Case{"one without inodes", "size=1m,nr_inodes=3,mode=0700", 0, "No space left on device"},
          Case{"a read-only one", "size=1m,mode=0700", MS_RDONLY, "Read-only file system"}}) {
        CAPTURE(one.what);
        const Outcome outcome =
            run(folder.string(), 2, [&] { return mount_own(folder, one.options, one.flags); });
        if (skipped(outcome, one.what)) {
            continue;
        }
        check_runs_from_memory(outcome, one.reason);
    }
    // Not even the folder can be made.
    const Outcome outcome = run((folder / "deep" / "cache").string(), 2,
                                [&] { return mount_own(folder, "size=1m,mode=0700", MS_RDONLY); });
    if (!skipped(outcome, "a read-only one")) {
        check_runs_from_memory(outcome, "Read-only file system");
    }
}

TEST_CASE_FIXTURE(Places, "cache story: a store that breaks while the service runs leaves memory") {
    Overrides overrides = overrides_in(scratch);
    overrides.shapes_path = table;
    const auto service = open(overrides);
    fs::remove_all(scratch.cache());
    scratch.write("cache", "a file where the folder was");
    std::vector<kiln::Error> errors;
    const auto wanted = service->matching({}, errors);
    std::vector<kiln::operators::Specialisation> small;
    for (const auto& specialisation : wanted) {
        if (specialisation.kernel_name.find("n16_k128") != std::string::npos) {
            small.push_back(specialisation);
        }
    }
    REQUIRE(small.size() == kBuckets);
    for (int round = 0; round < 3; ++round) {
        for (const auto& specialisation : small) {
            const auto artifact = service->obtain(specialisation);
            REQUIRE_MESSAGE(artifact, artifact.error().message);
            CHECK((*artifact)->listing.get().starts_with("kiln-listing 1\n"));
        }
    }
    CHECK(service->statistics().compiles == kBuckets);
    CHECK(service->statistics().memory_hits == 2 * kBuckets);
}

TEST_CASE_FIXTURE(Places, "cache story: the bound of the configuration evicts") {
    Overrides overrides = overrides_in(scratch);
    overrides.shapes_path = table;
    overrides.cache_limit_bytes = 1;
    const auto service = open(overrides);
    std::vector<kiln::Error> errors;
    const auto wanted = service->matching({}, errors);
    unsigned compiled = 0;
    for (const auto& specialisation : wanted) {
        if (specialisation.kernel_name.find("n16_k128") != std::string::npos) {
            REQUIRE(service->obtain(specialisation));
            ++compiled;
            CHECK(service->builder().store()->list()->size() == 1);
        }
    }
    CHECK(service->statistics().evictions == compiled - 1);
}
