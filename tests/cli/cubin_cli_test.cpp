// sm_90a, as its users meet it on a machine without a GPU, with a CUDA toolkit and without. A toolkit's
// nvdisasm is stood in for by a script: NVRTC comes without one.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "run_kiln.hpp"

using kiln::test::contains;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::with;

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kShipped = {"linear", "n=4096", "k=2048"};

struct CudaMachine {
    TemporaryFolder folder;
    std::map<std::string, std::string> environment = {{"KILN_CACHE_DIR", (folder.path() / "cache").string()},
                                                      {"KILN_DEVICE", "sim"},
                                                      {"KILN_TARGET", "sm_90a"}};
    std::string libraries;  // the folder of this machine's NVRTC; empty where there is none

    CudaMachine() {
        const auto document = run_kiln({"doctor", "--json"}, environment).json();
        for (const auto& finding : document["findings"]) {
            const std::string found = finding["found"];
            if (finding["what"] == "CUDA toolchain" && finding["verdict"] == "ok") {
                libraries = found.substr(found.find('/'));
            }
        }
        if (libraries.empty()) {
            MESSAGE("skipped: this machine has no NVRTC");
            return;
        }
        // The table of one small problem, by the derivation rule.
        const auto suggested = run_kiln({"suggest", "linear", "n=256", "k=1024"}, environment);
        REQUIRE_MESSAGE(suggested.exit_code == 0, suggested.err);
        std::ofstream(folder.path() / "table.json") << suggested.out;
        environment["KILN_SHAPES_PATH"] = (folder.path() / "table.json").string();
        // A toolkit of the real libraries and programs of the test's own.
        fs::create_directories(toolkit() / "bin");
        fs::create_directory_symlink(libraries, toolkit() / "lib64");
        environment["KILN_CUDA_PREFIX"] = toolkit().string();
    }

    [[nodiscard]] fs::path toolkit() const { return folder.path() / "toolkit"; }
    void add_disassembler() const {
        const fs::path program = toolkit() / "bin" / "nvdisasm";
        std::ofstream(program)
            << "#!/bin/sh\necho \"code of $(head -c 4 \"$2\" | tail -c 3) $(wc -c < \"$2\")\"\n";
        fs::permissions(program, fs::perms::owner_all);
    }
    [[nodiscard]] kiln::test::Outcome show(const std::vector<std::string>& more) const {
        std::vector<std::string> words{"show", "linear", "n=256", "k=1024", "--m", "1"};
        words.insert(words.end(), more.begin(), more.end());
        return run_kiln(words, environment);
    }
};

}  // namespace

TEST_CASE_FIXTURE(CudaMachine, "ShowPrintsSourceKeyAndMetadataOfACubin") {
    if (libraries.empty()) {
        return;
    }
    CHECK(contains(show({"--source"}).out, "// ---- linear/small_m.sm_90a.cu\n"));
    const auto key = show({"--key"});
    REQUIRE_MESSAGE(key.exit_code == 0, key.err);
    CHECK(contains(key.out, "\"target\": \"sm_90a\""));
    CHECK(contains(key.out, "libnvrtc.so."));
    CHECK_FALSE(contains(key.out, "libhiprtc"));
    const auto meta = show({"--meta", "--json"}).json()["meta"];
    CHECK(meta["target"] == "sm_90a");
    CHECK(meta["registers"].get<int>() > 16);
    CHECK(meta["registers"].get<int>() <= 255);
    CHECK(meta["stack_bytes"] == 0);  // nothing spills
    CHECK(meta["arguments"].size() >= 5);
    CHECK(meta["arguments"][0] == nlohmann::json{{"offset", 0}, {"size", 8}});
    CHECK_FALSE(meta.contains("vgprs"));
}

TEST_CASE_FIXTURE(CudaMachine, "ShowAsksAToolkitForTheCodeOfACubin") {
    if (libraries.empty()) {
        return;
    }
    const auto nowhere = show({"--isa"});
    CHECK(nowhere.exit_code == 3);
    CHECK(contains(nowhere.err, "expected nvdisasm or cuobjdump of a CUDA toolkit in one of " +
                                    (toolkit() / "bin").string()));
    // All that there is goes into the document: this is not there.
    const auto all = show({"--json"});
    REQUIRE_MESSAGE(all.exit_code == 0, all.err);
    CHECK_FALSE(all.json().contains("isa"));

    add_disassembler();
    const auto isa = show({"--isa"});
    CHECK_MESSAGE(isa.exit_code == 0, isa.err);
    CHECK(contains(isa.out, "code of ELF "));
    CHECK(show({"--json"}).json()["isa"] == isa.out);
    // An entry by its key has its code with it.
    const std::string digest = all.json()["key"]["digest"];
    const auto by_key = run_kiln({"show", digest.substr(0, 12), "--isa"}, environment);
    CHECK_MESSAGE(by_key.exit_code == 0, by_key.err);
    CHECK(by_key.out == isa.out);
}

TEST_CASE_FIXTURE(CudaMachine, "WarmFillsACacheForAGpuThatIsElsewhere") {
    if (libraries.empty()) {
        return;
    }
    const auto first = run_kiln({"warm", "linear", "n=256", "k=1024", "--json"}, environment);
    REQUIRE_MESSAGE(first.exit_code == 0, first.err);
    const int compiled = first.json()["summary"]["compiled"];
    CHECK(compiled >= 1);
    const auto second = run_kiln({"warm", "linear", "n=256", "k=1024", "--json"}, environment);
    CHECK(second.json()["summary"]["compiled"] == 0);
    CHECK(second.json()["summary"]["hits"] == compiled);
    // Without a toolkit what was compiled is there all the same; what was not is an error that says why.
    environment["KILN_CUDA_PREFIX"] = (folder.path() / "none").string();
    const auto kept = run_kiln({"show", "linear", "n=256", "k=1024", "--m", "1", "--meta"}, environment);
    CHECK_MESSAGE(kept.exit_code == 0, kept.err);
    environment["KILN_CACHE_DIR"] = (folder.path() / "empty").string();
    const auto missing = run_kiln({"show", "linear", "n=256", "k=1024", "--m", "1", "--meta"}, environment);
    CHECK(missing.exit_code == 3);
    CHECK(contains(missing.err, "libnvrtc.so.12 or newer"));
}

TEST_CASE("WarmLeavesOutWhatNothingHereCompilesForWhereNobodyAsksForIt") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {
        {"KILN_CACHE_DIR", (folder.path() / "cache").string()}, {"KILN_CUDA_PREFIX", folder.path().string()}};
    const auto warmed = run_kiln(with({"warm", "--json"}, kShipped), environment);
    CHECK(warmed.exit_code == 0);
    CHECK(contains(warmed.err, "which --target sm_90a asks for"));
    const auto document = warmed.json();
    const auto left_out = document["summary"]["without_compiler"].get<int>();
    CHECK(left_out > 0);
    for (const auto& item : document["items"]) {
        CHECK(item["target"] == "gfx950");
    }
    // So does a gate, with a compiler and without any.
    CHECK(run_kiln(with({"warm", "--check"}, kShipped), environment).exit_code == 0);
    auto bare = environment;
    bare.emplace("KILN_WORKER", (folder.path() / "none").string());
    CHECK(run_kiln(with({"warm", "--check"}, kShipped), bare).exit_code == 0);

    const auto asked = run_kiln(with({"warm", "--json", "--target", "sm_90a"}, kShipped), environment);
    CHECK(asked.exit_code == 3);
    CHECK(asked.json()["summary"]["failed"] == left_out);
    CHECK(asked.json()["summary"]["without_compiler"] == 0);
    CHECK(contains(asked.err, folder.path().string()));

    // Where nothing can be compiled at all, nothing is left out in silence.
    bare["KILN_CACHE_DIR"] = (folder.path() / "other").string();
    CHECK(run_kiln(with({"warm", "--json"}, kShipped), bare).json()["summary"]["failed"] > left_out);
}

TEST_CASE("WarmForAProcessorOfAnotherVendorNeedsItsCompilerAlone") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {{"KILN_CACHE_DIR", folder.path().string()}};
    const auto warm = with({"warm", "--json", "--target", "sm_90a"}, kShipped);
    const auto first = run_kiln(warm, environment);
    if (first.exit_code == 3) {
        MESSAGE("skipped: " << first.err);
        return;
    }
    REQUIRE(first.exit_code == 0);
    CHECK(first.json()["summary"]["compiled"] == first.json()["items"].size());
    CHECK(first.json()["items"].size() >= 4);
    CHECK(run_kiln(warm, environment).json()["summary"]["compiled"] == 0);

    auto bare = environment;
    bare.emplace("KILN_ROCM_PREFIX", folder.path().string());
    CHECK(run_kiln(with(warm, {"--check"}), bare).exit_code == 0);
    const auto meta =
        run_kiln(with({"show", "--m", "1", "--meta", "--json", "--target", "sm_90a"}, kShipped), bare);
    CHECK(meta.json()["origin"] == "cache");
    CHECK(meta.json()["meta"]["stack_bytes"] == 0);
}

TEST_CASE("ExplainAndShowNameWhatServesAProcessorWithoutACompilerForIt") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {{"KILN_CACHE_DIR", folder.path().string()},
                                                            {"KILN_CUDA_PREFIX", folder.path().string()}};
    const auto explained =
        run_kiln(with({"explain", "--json", "--m", "9", "--target", "sm_90a"}, kShipped), environment);
    CHECK(explained.exit_code == 0);
    CHECK(explained.json()["served"] == true);
    CHECK(explained.json()["bucket"]["max_m"] == 16);
    CHECK(explained.json()["constants"].contains("split_k"));
    const auto source =
        run_kiln(with({"show", "--m", "9", "--source", "--target", "sm_90a"}, kShipped), environment);
    CHECK(source.exit_code == 0);
    CHECK(contains(source.out, "linear/small_m.sm_90a.cu"));
    CHECK(contains(source.out, "kSplitK = "));
    CHECK(contains(source.out, "kMaxM = 16"));

    const auto derived =
        run_kiln({"suggest", "--json", "linear", "n=48", "k=384", "--target", "sm_90a"}, environment);
    CHECK(derived.exit_code == 0);
    CHECK(derived.json()["table"]["rows"][0]["target"] == "sm_90a");
    CHECK(derived.json()["table"]["rows"][0]["buckets"].size() == 4);
}
