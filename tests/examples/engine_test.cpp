// tools/examples/engine as those run it who read it. Every step of it is checked by the engine itself against
// its all-plain path; what is looked at here is which kernels served, and what it does about edits, misses
// and bad words.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "run_kiln.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::Outcome;
using kiln::test::run_kiln;
using kiln::test::RunOptions;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;

namespace {

// One cache for all cases: what one of them compiled the others find.
const fs::path& cache() {
    static const TemporaryFolder folder;
    return folder.path();
}

Outcome run_engine(const std::vector<std::string>& words, Variables environment = {}) {
    environment.insert({{"KILN_DEVICE", "sim"}, {"KILN_CACHE_DIR", cache().string()}});
    std::vector<std::string> all = {"--share", ENGINE_SHARE};
    all.insert(all.end(), words.begin(), words.end());
    Outcome outcome = run_kiln(all, environment, RunOptions{.program = ENGINE_PROGRAM});
    MESSAGE(outcome.out << outcome.err);
    return outcome;
}

// What served the operator in the step's graph, by the lines under the `nth` step of that batch size that was
// captured, from 0; empty where there is none.
std::string served(const std::string& out, const std::string& m, const std::string& name, int nth = 0) {
    std::size_t at = 0;
    for (int i = 0; i <= nth; ++i) {
        at = out.find("step M=" + m + " captured: ok", at);
        if (at == std::string::npos) {
            return {};
        }
        at += 1;
    }
    const std::string lines = out.substr(at, std::min(out.find("\nstep", at), out.find("\nedit", at)) - at);
    const std::size_t line = lines.find("    " + name + " ");
    if (line == std::string::npos) {
        return {};
    }
    const std::size_t from = lines.find_first_not_of(' ', line + 4 + name.size());
    return lines.substr(from, lines.find('\n', from) - from);
}

std::string edited_table() {
    return "edit=" + std::string(ENGINE_SHARE) + "/decode_edited.json";
}

const char* const kEverything = "linear,router,moe_sort,fused_moe";

}  // namespace

TEST_CASE("A step of any size agrees with the all-plain path, whatever kiln serves of it") {
    const Outcome outcome = run_engine({"1", "18", "4", "8", "4", edited_table(), "8", "4"});
    REQUIRE(outcome.exit_code == 0);
    const std::string& out = outcome.out;
    CHECK_FALSE(contains(out, "WRONG"));

    CHECK(served(out, "1", "router") == "kiln_router_h512_e64_k10_s1_m4");
    CHECK(served(out, "1", "fused_moe") == "kiln_fused_moe_mxfp4_h512_i64_e65_s11_m1");
    CHECK(served(out, "1", "moe_sort").empty());
    CHECK(served(out, "4", "linear 640x512") == "kiln_linear_n640_k512_m4");
    CHECK(served(out, "8", "linear 576x512") == "kiln_linear_n576_k512_m16");
    CHECK(served(out, "8", "router") == "plain: M is above the last bucket");
    CHECK(served(out, "18", "linear 512x256") == "plain: M is above the last bucket");
    CHECK(served(out, "18", "fused_moe") == "plain: M is above the last bucket");
    CHECK(served(out, "18", "moe_sort") == "kiln_moe_sort_general_e65_s11_b16");

    // The edit: another bucket of the router, other constants of a projection. Graphs are made anew.
    CHECK(contains(out, "step M=4 replayed: ok"));
    CHECK(contains(out, "decode_edited.json: taken"));
    CHECK(served(out, "8", "router", 1) == "kiln_router_h512_e64_k10_s1_m8");
    CHECK(served(out, "4", "router", 1) == "kiln_router_h512_e64_k10_s1_m4");
}

TEST_CASE("What kiln is told to leave alone runs plain, to the same bits") {
    const Outcome outcome = run_engine({"3", "3"}, {{"KILN_DISABLE", kEverything}});
    CHECK(outcome.exit_code == 0);
    for (const char* const how : {"captured", "replayed"}) {
        CHECK(contains(outcome.out, std::string("step M=3 ") + how +
                                        ": ok, hidden states off by 0, routing weights by 0, choice by 0"));
    }
    for (const char* const name : {"linear 640x512", "router", "moe_sort", "fused_moe"}) {
        CHECK(served(outcome.out, "3", name) == "plain: KILN_DISABLE or the configuration takes it out");
    }
    CHECK(contains(outcome.out, "kiln: 0 compiled, 0 from its cache"));
}

TEST_CASE("A table with a fault is refused and the engine goes on with its graphs") {
    const TemporaryFolder folder;
    const std::string faulty = (folder.path() / "faulty.json").string();
    std::ofstream(faulty) << R"({"schema": 1, "rows": [{"operator": "linear"}]})";
    const Outcome outcome = run_engine({"2", "edit=" + faulty, "2"});
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "refused, going on as before: "));
    CHECK(contains(outcome.out, "decode.json"));
    CHECK(contains(outcome.out, "step M=2 replayed: ok"));
}

TEST_CASE("A miss that may not be compiled is an error that names the kernel") {
    const TemporaryFolder empty;
    const Outcome outcome =
        run_engine({"1"}, {{"KILN_JIT", "off"}, {"KILN_CACHE_DIR", empty.path().string()}});
    CHECK(outcome.exit_code == 3);
    CHECK(contains(outcome.err, "KILN_JIT"));
    CHECK(contains(outcome.err, "kiln_router_h512_e64_k10_s1_m4"));
}

TEST_CASE("Words that make no sense are refused before anything starts") {
    for (const char* const word : {"0", "33", "4x", "--seed", "--no-such-option"}) {
        const Outcome outcome = run_engine({word});
        CHECK(outcome.exit_code == 2);
        CHECK(contains(outcome.err, "usage: "));
        CHECK(outcome.out.empty());
    }
    const Outcome missing = run_engine({"--table", "/nonexistent/table.json", "1"});
    CHECK(missing.exit_code == 3);
    CHECK(contains(missing.err, "/nonexistent/table.json"));
}
