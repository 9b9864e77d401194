// The look-alike against AMD's own library, where the toolchain has one, and in the hands of programs that
// know nothing of kiln. Everything runs in processes of its own.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "runtime/compile/toolchain.hpp"
#include "tests/lookalike/support.hpp"

using namespace kiln;
namespace fs = std::filesystem;

namespace {

struct Outcome {
    int status = -1;
    std::string output;
};

// Through the shell, so that a command can set its own environment. Both outputs together.
Outcome run(const std::string& command) {
    Outcome outcome;
    FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    char buffer[4096];
    for (std::size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        outcome.output.append(buffer, count);
    }
    outcome.status = pclose(pipe);
    return outcome;
}

std::set<std::string> symbols(const fs::path& library) {
    const auto outcome =
        run(fmt::format("nm -D --defined-only --with-symbol-versions '{}'", library.string()));
    REQUIRE(outcome.status == 0);
    std::set<std::string> names;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);) {
        names.insert(line.substr(line.rfind(' ') + 1));
    }
    return names;
}

struct Folder {
    Folder() {
        std::string name = (fs::temp_directory_path() / "kiln-lookalike-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    fs::path path;
};

fs::path write_code_object(const fs::path& folder) {
    const auto file = folder / "kernels.co";
    const auto& bytes = test::code_object();
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file;
}

}  // namespace

TEST_CASE("EveryEntryPointIsOneOfHipsWithItsVersion") {
    const auto toolchain = compile::find_toolchain({}, compile::Family::amdgpu);
    REQUIRE(toolchain);
    const auto original = toolchain->folder / "libamdhip64.so.7";
    if (!fs::exists(original)) {
        MESSAGE("the toolchain has no libamdhip64: nothing to compare with");
        return;
    }
    const auto theirs = symbols(original);
    std::size_t compared = 0;
    for (const auto& symbol : symbols(KILN_TEST_LOOKALIKE)) {
        if (!symbol.starts_with("kiln_sim_") && !symbol.starts_with("KILN_SIM")) {
            CHECK_MESSAGE(theirs.contains(symbol), symbol);
            ++compared;
        }
    }
    CHECK(compared > 90);
}

TEST_CASE("ErrorsHaveHipsNamesAndWords") {
    const auto toolchain = compile::find_toolchain({}, compile::Family::amdgpu);
    REQUIRE(toolchain);
    const auto original = toolchain->folder / "libamdhip64.so.7";
    if (!fs::exists(original)) {
        MESSAGE("the toolchain has no libamdhip64: nothing to compare with");
        return;
    }
    const auto loader =
        toolchain->loader.empty()
            ? std::string()
            : fmt::format("'{}' --library-path '{}'", toolchain->loader.string(), toolchain->folder.string());
    const auto theirs = run(fmt::format("{} '{}' '{}'", loader, KILN_TEST_ERROR_TABLE, original.string()));
    REQUIRE(theirs.status == 0);
    void* const ours = dlopen(KILN_TEST_LOOKALIKE, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(ours != nullptr);
    const auto name = reinterpret_cast<const char* (*)(int)>(dlsym(ours, "hipGetErrorName"));
    const auto words = reinterpret_cast<const char* (*)(int)>(dlsym(ours, "hipGetErrorString"));
    std::string table;
    for (int value = 0; value < 1100; ++value) {
        if (std::string(name(value)) != "hipErrorUnknown") {
            table += fmt::format("{} {}: {}\n", value, name(value), words(value));
        }
    }
    CHECK(table == theirs.output);
}

TEST_CASE("APlainHipProgramRuns") {
    const Folder folder;
    const auto code_object = write_code_object(folder.path);
    const auto program = [&](const std::string& environment) {
        return run(fmt::format("{} '{}' '{}'", environment, KILN_TEST_VECTOR_ADD, code_object.string()));
    };
    const auto cache = fmt::format("KILN_CACHE_DIR='{}'", (folder.path / "cache").string());
    auto outcome = program(cache);
    CAPTURE(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(outcome.output.find("2 devices, the first is kiln gfx950 simulator") != std::string::npos);
    CHECK(outcome.output.find("PASSED") != std::string::npos);

    SUBCASE("the listing is kept: no worker is asked a second time, nor need there be one") {
        for (const char* worker : {"/bin/false", "/nowhere/kiln-compile"}) {
            outcome = program(cache + " KILN_WORKER=" + worker);
            CAPTURE(outcome.output);
            CHECK(outcome.status == 0);
        }
        outcome = program(
            fmt::format("KILN_CACHE_DIR='{}' KILN_WORKER=/bin/false", (folder.path / "other").string()));
        CHECK(outcome.status != 0);
        CHECK(outcome.output.find("hipErrorSharedObjectInitFailed") != std::string::npos);
    }
    SUBCASE("a cache that can not be opened is done without") {
        outcome = program("KILN_CACHE_DIR=/dev/null/cache");
        CAPTURE(outcome.output);
        CHECK(outcome.status == 0);
    }
    SUBCASE("the environment says how many devices there are") {
        outcome = program(cache + " KILN_SIM_DEVICES=5");
        CHECK(outcome.output.find("5 devices") != std::string::npos);
        outcome = program(cache + " KILN_SIM_DEVICES=0");
        CHECK(outcome.output.find("2 devices") != std::string::npos);
        CHECK(outcome.output.find("expected 1 to 16, found \"0\"") != std::string::npos);
    }
    SUBCASE("the environment says in which order work-groups run, and when stores are seen") {
        for (const char* rules :
             {"KILN_SIM_ORDER=descending", "KILN_SIM_ORDER=interleave:3 KILN_SIM_SCOPES=late",
              "KILN_SIM_CHECK=all", "KILN_SIM_CHECK=none",
              "KILN_SIM_ORDER= KILN_SIM_SCOPES= KILN_SIM_CHECK= KILN_SIM_DEVICES="}) {
            outcome = program(cache + " " + rules);
            CAPTURE(outcome.output);
            CHECK(outcome.status == 0);
            CHECK(outcome.output.find("KILN_SIM") == std::string::npos);
        }
        outcome = program(cache + " KILN_SIM_ORDER=sideways KILN_SIM_SCOPES=never KILN_SIM_CHECK=racing");
        CHECK(outcome.status == 0);
        CHECK(outcome.output.find("KILN_SIM_ORDER: expected any, ascending") != std::string::npos);
        CHECK(outcome.output.find("KILN_SIM_CHECK: expected all, none") != std::string::npos);
        CHECK(outcome.output.find("KILN_SIM_SCOPES: expected early or late, found \"never\"") !=
              std::string::npos);
    }
}

TEST_CASE("AnEndlessKernelDoesNotHoldTheEndOfTheProcess") {
    const Folder folder;
    const auto code_object = write_code_object(folder.path);
    const auto outcome = run(fmt::format("timeout 60 '{}' '{}'", KILN_TEST_ENDLESS, code_object.string()));
    CAPTURE(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(outcome.output.find("PASSED") != std::string::npos);
}
