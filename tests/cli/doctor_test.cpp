// kiln doctor explains every refusal: what it found, what it expected, what to do. One test for each.

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "run_kiln.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::Outcome;
using kiln::test::run_kiln;
using kiln::test::RunOptions;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;

namespace {

using Json = nlohmann::json;

constexpr uid_t kStranger = 65534;

struct Doctor {
    TemporaryFolder folder;
    Variables environment = {{"KILN_CACHE_DIR", (folder.path() / "cache").string()}, {"KILN_DEVICE", "sim"}};
    Outcome outcome;

    void set(std::string name, std::string value) { environment[std::move(name)] = std::move(value); }

    // Runs it, and holds every finding to its form.
    Json examine(int exit_code, const RunOptions& options = {}) {
        outcome = run_kiln({"doctor", "--json"}, environment, options);
        if (outcome.exit_code == kiln::test::kNotStarted) {
            return Json::object();
        }
        INFO(outcome.out << outcome.err);
        CHECK(outcome.exit_code == exit_code);
        const auto document = outcome.json();
        CHECK(document["well"] == (exit_code == 0));
        for (const auto& finding : document["findings"]) {
            CHECK_FALSE(finding["found"].get<std::string>().empty());
            if (finding["verdict"] == "wrong") {
                CHECK_FALSE(finding.value("expected", finding.value("advice", "")).empty());
            }
        }
        return document;
    }

    // The findings of that name that say so.
    std::vector<Json> findings(const Json& document, const std::string& what, const std::string& verdict) {
        std::vector<Json> result;
        for (const auto& finding : document.value("findings", Json::array())) {
            if (finding["what"].get<std::string>().starts_with(what) && finding["verdict"] == verdict) {
                result.push_back(finding);
            }
        }
        return result;
    }

    // Exactly one finding of that name is wrong (or a note), and it names `part`.
    void expect(const Json& document, const std::string& what, const std::string& verdict,
                const std::string& part) {
        const auto found = findings(document, what, verdict);
        INFO(outcome.out);
        REQUIRE(found.size() == 1);
        CHECK_MESSAGE(contains(found[0]["found"], part), found[0]["found"].get<std::string>());
        if (verdict == "wrong") {
            CHECK_FALSE(found[0].value("advice", "").empty());
        }
    }
};

// A mount namespace of its own with a small file system at `folder`; false where that is not allowed.
bool mount_small(const fs::path& folder, const char* options, unsigned long flags) {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", folder.c_str(), "tmpfs", flags, options) == 0;
}

bool skipped(const Doctor& doctor, const char* why) {
    if (doctor.outcome.exit_code == kiln::test::kNotStarted) {
        MESSAGE("skipped: " << why);
        return true;
    }
    return false;
}

}  // namespace

TEST_CASE_FIXTURE(Doctor, "DoctorPrintsEverySettingWithItsOrigin") {
    const auto document = examine(0);
    std::map<std::string, std::string> origins;
    for (const auto& setting : document["settings"]) {
        origins[setting["variable"]] = setting["origin"];
    }
    CHECK(origins["KILN_CACHE_DIR"] == "environment");
    CHECK(origins["KILN_DEVICE"] == "environment");
    CHECK(origins["KILN_JIT"] == "default");
    for (const char* variable : {"KILN_CACHE_PATH", "KILN_SHAPES_PATH", "KILN_KERNEL_PATH", "KILN_TARGET",
                                 "KILN_DISABLE", "KILN_WORKER", "KILN_HIP_LIBRARY", "KILN_CUDA_LIBRARY",
                                 "KILN_TRUSTED_KEYS", "KILN_LOG", "KILN_LOG_FORMAT"}) {
        CHECK_MESSAGE(origins.contains(variable), variable);
    }
    for (const char* what : {"shape tables", "cache", "temporary files", "worker", "ROCm toolchain",
                             "ROCm identity", "compiles for gfx950", "device 0"}) {
        CHECK_MESSAGE(!findings(document, what, "ok").empty(), what);
    }
    const auto spoken = run_kiln({"doctor"}, environment);
    CHECK(spoken.exit_code == 0);
    CHECK(contains(spoken.out, "ok compiles for gfx950: yes"));
    CHECK_FALSE(contains(spoken.out, "!!"));
}

TEST_CASE_FIXTURE(Doctor, "DoctorNamesEveryVariableThatCanNotBeMeantAndGoesOn") {
    set("KILN_JIT", "perhaps");
    set("KILN_LOG", "loud");
    const auto document = examine(2);
    expect(document, "KILN_JIT", "wrong", "found \"perhaps\"");
    expect(document, "KILN_LOG", "wrong", "found \"loud\"");
    CHECK(findings(document, "compiles for gfx950", "ok").size() == 1);
}

TEST_CASE_FIXTURE(Doctor, "DoctorNamesAFormatOfTheLogThatThereIsNot") {
    set("KILN_LOG_FORMAT", "xml");
    expect(examine(2), "KILN_LOG_FORMAT", "wrong", "found \"xml\"");
}

TEST_CASE_FIXTURE(Doctor, "DoctorNamesTheNearestOfAnUnknownVariable") {
    set("KILN_CACHE_DRI", "x");
    expect(examine(0), "settings", "note", "the nearest is KILN_CACHE_DIR");
}

TEST_CASE_FIXTURE(Doctor, "DoctorSaysWhatIsSwitchedOff") {
    set("KILN_DISABLE", "linear/small_m");
    set("KILN_JIT", "off");
    const auto document = examine(0);
    expect(document, "KILN_DISABLE", "note", "linear/small_m");
    expect(document, "KILN_JIT", "note", "nothing is compiled");
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsACacheFolderThatOthersCanWrite") {
    fs::create_directory(folder.path() / "cache");
    ::chmod((folder.path() / "cache").c_str(), 0777);
    const auto document = examine(3);
    expect(document, "cache", "wrong", "0777");
    expect(document, "cache", "wrong", (folder.path() / "cache").string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsACacheFolderOfAnotherUser") {
    fs::create_directory(folder.path() / "cache");
    if (::chown((folder.path() / "cache").c_str(), kStranger, kStranger) != 0) {
        MESSAGE("skipped: only root may give a folder away");
        return;
    }
    expect(examine(3), "cache", "wrong", "found user 65534");
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsACacheFolderThatIsAFile") {
    std::ofstream(folder.path() / "cache") << "x";
    expect(examine(3), "cache", "wrong", (folder.path() / "cache").string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsThatThereIsNoHome") {
    environment.erase("KILN_CACHE_DIR");
    RunOptions options;
    options.unset = {"HOME", "XDG_CACHE_HOME"};
    // The private toolchain is found through HOME as well.
    set("KILN_JIT", "off");
    expect(examine(3, options), "cache", "wrong", "HOME");
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAReadOnlyCache") {
    const auto cache = folder.path() / "cache";
    fs::create_directory(cache);
    RunOptions options;
    options.before = [&] { return mount_small(cache, "mode=700", MS_RDONLY); };
    const auto document = examine(3, options);
    if (!skipped(*this, "no file system can be mounted here")) {
        expect(document, "cache", "wrong", "read-only");
    }
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAFullCache") {
    const auto cache = folder.path() / "cache";
    fs::create_directory(cache);
    RunOptions options;
    options.before = [&] { return mount_small(cache, "mode=700,size=16k", 0); };
    const auto document = examine(3, options);
    if (!skipped(*this, "no file system can be mounted here")) {
        expect(document, "cache", "wrong", "No space left on device");
        CHECK(contains(findings(document, "cache", "wrong")[0]["advice"], "kiln prune"));
    }
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsACacheWithoutInodes") {
    const auto cache = folder.path() / "cache";
    fs::create_directory(cache);
    RunOptions options;
    options.before = [&] { return mount_small(cache, "mode=700,nr_inodes=1", 0); };
    const auto document = examine(3, options);
    if (!skipped(*this, "no file system can be mounted here")) {
        expect(document, "cache", "wrong", "inodes");
    }
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsEachLayerThatIsRefused") {
    const auto open_to_others = folder.path() / "open";
    const auto sound = folder.path() / "sound";
    fs::create_directory(open_to_others);
    fs::create_directory(sound);
    ::chmod(open_to_others.c_str(), 0775);
    ::chmod(sound.c_str(), 0755);
    const auto none = folder.path() / "none";
    set("KILN_CACHE_PATH", open_to_others.string() + ":" + sound.string() + ":" + none.string());
    const auto document = examine(3);
    const auto refused = findings(document, "cache layer", "wrong");
    REQUIRE(refused.size() == 2);
    CHECK(contains(refused[0]["found"], open_to_others.string()));
    CHECK(contains(refused[0]["found"], "0775"));
    CHECK(contains(refused[1]["found"], none.string()));
    CHECK(contains(refused[1]["advice"], "make it"));
    expect(document, "cache layer", "ok", sound.string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorReadsEveryEntryOfTheStoreAndTheLayers") {
    const auto warmed = run_kiln({"warm", "linear", "n=4096", "k=2048"}, environment);
    REQUIRE_MESSAGE(warmed.exit_code == 0, warmed.err);
    const auto cache = folder.path() / "cache";
    std::vector<fs::path> entries;
    for (const auto& item : fs::recursive_directory_iterator(cache)) {
        if (item.path().extension() == ".entry") {
            entries.push_back(item.path());
        }
    }
    REQUIRE(entries.size() >= 2);
    CHECK(findings(examine(0), "cache", "wrong").empty());
    {
        std::fstream file(entries[0], std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(fs::file_size(entries[0]) / 2);
        const auto byte = static_cast<char>(file.peek() ^ 1);
        file.seekp(file.tellg());
        file.put(byte);
    }
    ::chmod(entries[1].c_str(), 0666);
    const auto check = [&](const char* what) {
        const auto wrong = findings(examine(3), what, "wrong");
        REQUIRE_MESSAGE(wrong.size() == 2, outcome.out);
        CHECK(contains(wrong[0]["found"], "1 entries refused"));
        CHECK(contains(wrong[0]["found"], entries[1].string()));
        CHECK(contains(wrong[0]["found"], "0666"));
        CHECK(contains(wrong[1]["found"], "1 entries damaged"));
        CHECK(contains(wrong[1]["found"], entries[0].string()));
    };
    check("cache");
    set("KILN_CACHE_PATH", cache.string());
    set("KILN_CACHE_DIR", (folder.path() / "own").string());
    check("cache layer");
    // A folder on the way.
    ::chmod(entries[0].parent_path().c_str(), 0777);
    CHECK(contains(
        findings(examine(3), "cache layer", "wrong")[0]["found"],
        "1 folders of entries refused, the first: cache folder " + entries[0].parent_path().string()));
    ::chmod((cache / "v1").c_str(), 0777);
    expect(examine(3), "cache layer", "wrong", (cache / "v1").string());
    environment.erase("KILN_CACHE_PATH");
    set("KILN_CACHE_DIR", cache.string());
    const auto document = examine(3);
    expect(document, "cache", "wrong", (cache / "v1").string());
    expect(document, "cache", "wrong", "0777");
    CHECK(contains(findings(document, "cache", "wrong")[0]["advice"], "chmod"));
}

TEST_CASE_FIXTURE(Doctor, "DoctorListsEveryFaultOfATableAndLooksAtAllElse") {
    const auto table = folder.path() / "mine.json";
    std::ofstream(table)
        << "{\"schema\": 1,\n \"rows\": [{\"operator\": \"linear\"},\n {\"operator\": 7}]}\n";
    set("KILN_SHAPES_PATH", table.string());
    const auto document = examine(2);
    const auto faults = findings(document, "shape tables", "wrong");
    CHECK(faults.size() >= 2);
    CHECK(std::ranges::any_of(
        faults, [&](const auto& fault) { return contains(fault["found"], table.string() + ":2:"); }));
    CHECK(std::ranges::any_of(
        faults, [&](const auto& fault) { return contains(fault["found"], table.string() + ":3:"); }));
    CHECK(findings(document, "compiles for gfx950", "ok").size() == 1);
    CHECK(findings(document, "device 0", "ok").size() == 1);
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAMissingTable") {
    set("KILN_SHAPES_PATH", (folder.path() / "none.json").string());
    expect(examine(2), "shape tables", "wrong", "none.json");
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAMissingWorker") {
    set("KILN_WORKER", (folder.path() / "none").string());
    expect(examine(3), "worker", "wrong", (folder.path() / "none").string());
    // Where nothing is to be compiled, none is needed.
    set("KILN_JIT", "off");
    expect(examine(0), "worker", "note", (folder.path() / "none").string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAWorkerOfAnotherVersion") {
    set("KILN_WORKER", KILN_OTHER_VERSION_WORKER);
    expect(examine(3), "compiles for gfx950", "wrong", KILN_OTHER_VERSION_WORKER);
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAMissingToolchain") {
    set("XDG_DATA_HOME", folder.path().string());
    RunOptions options;
    options.unset = {"KILN_ROCM_PREFIX"};
    const auto document = examine(3, options);
    if (!findings(document, "ROCm toolchain", "ok").empty()) {
        MESSAGE("skipped: this machine has a ROCm of its own");
        return;
    }
    expect(document, "ROCm toolchain", "wrong", (folder.path() / "kiln" / "rocm").string());
    CHECK(contains(findings(document, "ROCm toolchain", "wrong")[0]["advice"], "tools/setup"));
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsANamedToolchainThatIsNotThere") {
    const auto none = (folder.path() / "none").string();
    set("KILN_ROCM_PREFIX", none);
    const auto document = examine(3);
    expect(document, "ROCm toolchain", "wrong", "in " + none + " (from KILN_ROCM_PREFIX)");
    CHECK(contains(findings(document, "ROCm toolchain", "wrong")[0]["advice"], "unset KILN_ROCM_PREFIX"));
}

TEST_CASE_FIXTURE(Doctor, "DoctorAsksForACudaToolchainWhereOneIsNamedOrTargeted") {
    const auto none = (folder.path() / "none").string();
    set("KILN_CUDA_PREFIX", none);
    const auto named = examine(3);
    expect(named, "CUDA toolchain", "wrong", "in " + none + " (from KILN_CUDA_PREFIX)");
    CHECK(contains(findings(named, "CUDA toolchain", "wrong")[0]["advice"], "unset KILN_CUDA_PREFIX"));
    CHECK(findings(named, "compiles for gfx950", "ok").size() == 1);
    CHECK(findings(named, "compiles for sm_90a", "note").empty());

    environment.erase("KILN_CUDA_PREFIX");
    set("KILN_TARGET", "sm_90a");
    const auto document = run_kiln({"doctor", "--json"}, environment).json();
    if (findings(document, "CUDA toolchain", "ok").empty()) {
        expect(document, "CUDA toolchain", "wrong", "libnvrtc.so.12 or newer");
        return;
    }
    CHECK(findings(document, "compiles for sm_90a", "ok").size() == 1);
    CHECK(contains(findings(document, "CUDA identity", "ok")[0]["found"], "libnvrtc-builtins.so."));
    // The other one is no more than looked at.
    CHECK(findings(document, "compiles for gfx950", "ok").size() == 1);
}

TEST_CASE_FIXTURE(Doctor, "DoctorAsksForTheToolchainOfTheDevicesThatAreThere") {
    set("KILN_DEVICE", "cuda");
    set("KILN_CUDA_LIBRARY", KILN_CUDA_DOUBLE);
    const auto none = (folder.path() / "none").string();
    set("XDG_DATA_HOME", none);
    RunOptions options;
    options.unset = {"KILN_ROCM_PREFIX"};
    const auto document = run_kiln({"doctor", "--json"}, environment, options).json();
    expect(document, "device 0", "ok", "sm_90a");
    CHECK_MESSAGE(findings(document, "ROCm toolchain", "wrong").empty(), "no device compiles with it");
    const bool has_cuda = !findings(document, "CUDA toolchain", "ok").empty();
    CHECK(findings(document, "compiles for sm_90a", "ok").size() == (has_cuda ? 1 : 0));
    CHECK(findings(document, "CUDA toolchain", "wrong").size() == (has_cuda ? 0 : 1));
    // Who sets a target means it.
    set("KILN_TARGET", "gfx950");
    const auto both = run_kiln({"doctor", "--json"}, environment, options).json();
    CHECK(findings(both, "ROCm toolchain", "wrong").size() + findings(both, "ROCm toolchain", "ok").size() ==
          1);
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAToolchainThatDoesNotKnowTheTarget") {
    set("KILN_TARGET", "gfx9f9");
    expect(examine(3), "compiles for gfx9f9", "wrong", "gfx9f9");
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAFolderForTemporaryFilesThatIsNotThere") {
    set("TMPDIR", (folder.path() / "none").string());
    expect(examine(3), "temporary files", "wrong", (folder.path() / "none").string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorSaysWhichHipLibraryWasChosenAndWhyNotAnother") {
    set("KILN_DEVICE", "auto");
    const auto document = examine(0);
    if (findings(document, "driver library", "note").empty()) {
        MESSAGE("skipped: this machine has an AMD GPU");
        return;
    }
    CHECK(contains(findings(document, "driver library", "note")[0]["found"], "/dev/kfd"));
    expect(document, "driver library", "ok", "libamdhip64.so.7");
}

TEST_CASE_FIXTURE(Doctor, "DoctorNamesTheDriverThatTheProcessHolds") {
    // Preloaded, as a host of kiln may bring it; under a sanitizer that takes its runtime along.
    set("LD_PRELOAD", KILN_SIMULATOR);
    if (run_kiln({"--version"}, environment).exit_code != 0) {
        MESSAGE("skipped: nothing can be preloaded into this build");
        return;
    }
    set("KILN_DEVICE", "auto");
    const auto document = examine(0);
    const auto notes = findings(document, "driver library", "note");
    REQUIRE_FALSE(notes.empty());
    CHECK(contains(notes[0]["found"], KILN_SIMULATOR));
    expect(document, "driver library", "ok", KILN_SIMULATOR);
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsAHipLibraryThatCanNotBeLoaded") {
    set("KILN_HIP_LIBRARY", (folder.path() / "libamdhip64.so.7").string());
    set("KILN_DEVICE", "hip");
    expect(examine(3), "devices", "wrong", (folder.path() / "libamdhip64.so.7").string());
}

TEST_CASE_FIXTURE(Doctor, "DoctorExplainsACudaLibraryThatCanNotBeLoaded") {
    set("KILN_CUDA_LIBRARY", (folder.path() / "libcuda.so.1").string());
    for (const char* device : {"cuda", "auto"}) {  // asked for by name: the simulator does not take its place
        set("KILN_DEVICE", device);
        expect(examine(3), "devices", "wrong", (folder.path() / "libcuda.so.1").string());
    }
}

TEST_CASE_FIXTURE(Doctor, "DoctorSpeaksToPeopleToo") {
    set("KILN_WORKER", "/nonexistent/worker");
    const auto spoken = run_kiln({"doctor"}, environment);
    CHECK(spoken.exit_code == 3);
    CHECK(contains(spoken.out, "!! worker: "));
    CHECK(contains(spoken.out, "expected: kiln-compile"));
    CHECK(contains(spoken.out, "to do: "));
}
