// Which libamdhip64 is bound: each case in a process of its own, with a double of the driver in the place of
// AMD's.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>

namespace fs = std::filesystem;

namespace {

constexpr const char* kDouble = KILN_TEST_DOUBLE;
constexpr const char* kLookalike = KILN_TEST_LOOKALIKE;

// What the probe prints.
std::string probe(const std::string& arguments, const std::string& environment = "") {
    FILE* const pipe =
        popen(fmt::format("{} '{}' {} 2>&1", environment, KILN_TEST_BINDING_PROBE, arguments).c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    char buffer[4096];
    for (std::size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        output.append(buffer, count);
    }
    const int status = pclose(pipe);
    CAPTURE(output);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    return output;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// The double again, as a second copy under another path.
struct SecondCopy {
    SecondCopy() {
        std::string name = (fs::temp_directory_path() / "kiln-binding-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        folder = name;
        path = (folder / "libamdhip64.so.7").string();
        fs::copy_file(kDouble, path);
    }
    ~SecondCopy() { fs::remove_all(folder); }
    SecondCopy(const SecondCopy&) = delete;
    SecondCopy& operator=(const SecondCopy&) = delete;
    fs::path folder;
    std::string path;
};

const std::string kSimulated = fmt::format("{} 2 simulated\n", fs::canonical(kLookalike).string());

}  // namespace

TEST_CASE("WithNothingLoadedAndNoGpuTheSimulatorIsFound") {
    CHECK(has(probe("bind sim"), kSimulated));
    if (!fs::exists("/dev/kfd")) {
        CHECK(has(probe("bind automatic"), "automatic " + kSimulated));
    }
}

TEST_CASE("TheCopyThatTheProcessHoldsIsUsed") {
    const auto expected = fmt::format("{} 1 real\n", kDouble);
    CHECK(probe(fmt::format("open {} bind hip bind automatic", kDouble)) ==
          "hip " + expected + "automatic " + expected);
    // The simulator is another thing, and can be had beside it.
    const auto both = probe(fmt::format("open {} bind sim bind hip", kDouble));
    CHECK(has(both, "sim " + kSimulated));
    CHECK(has(both, "hip " + expected));
}

TEST_CASE("ACopyWithoutADeviceLeavesTheSimulator") {
    const auto output =
        probe(fmt::format("open {} bind automatic bind hip", kDouble), "KILN_DOUBLE_DEVICES=0");
    CHECK(has(output, "automatic " + kSimulated));
    CHECK(has(output, fmt::format("hip error: {} reports no device: HIP error (100)", kDouble)));
}

TEST_CASE("TwoCopiesAreRefusedByNameUnlessOneIsChosen") {
    const SecondCopy second;
    const auto open = fmt::format("open {} open {} ", kDouble, second.path);
    for (const char* driver : {"hip", "automatic"}) {
        const auto refused = probe(open + "bind " + driver);
        CHECK(has(refused, fmt::format("{} error: the process holds 2 copies", driver)));
        CHECK(has(refused, kDouble));
        CHECK(has(refused, second.path));
        CHECK(has(refused, "KILN_HIP_LIBRARY"));
        CHECK(probe(open + "bind " + driver, "KILN_HIP_LIBRARY=" + second.path) ==
              fmt::format("{} {} 1 real\n", driver, second.path));
    }
}

TEST_CASE("ALibraryThatIsAskedForIsNeverASecondCopy") {
    const SecondCopy second;
    const auto output = probe(fmt::format("open {} bind hip", kDouble), "KILN_HIP_LIBRARY=" + second.path);
    CHECK(has(output, "hip error: " + second.path + " was asked for"));
    CHECK(has(output, fmt::format("already holds {}", kDouble)));
}

TEST_CASE("ALibraryIsLoadedByAnyName") {
    CHECK(probe("bind hip", fmt::format("KILN_HIP_LIBRARY={}", KILN_TEST_OTHER_NAME)) ==
          fmt::format("hip {} 1 real\n", KILN_TEST_OTHER_NAME));
    // What was asked for and can not be had is an error, not a reason for the simulator.
    const auto missing = probe("bind automatic", "KILN_HIP_LIBRARY=/nonexistent/libamdhip64.so.7");
    CHECK(has(missing, "automatic error:"));
    CHECK(has(missing, "/nonexistent/libamdhip64.so.7"));
}

TEST_CASE("ALibraryThatLacksARequiredEntryPointIsRefusedByName") {
    const auto output = probe("bind hip", fmt::format("KILN_HIP_LIBRARY={}", KILN_TEST_LACKING));
    CHECK(has(output, KILN_TEST_LACKING));
    CHECK(has(output, "it lacks hipModuleLaunchKernel"));
    CHECK(has(probe(fmt::format("sim {} bind sim", kDouble)), "is not the simulator's libamdhip64"));
}

TEST_CASE("ALookalikeInThePlaceOfHipIsHip") {
    const auto output = probe(fmt::format("global {} bind hip bind automatic bind sim", kLookalike));
    for (const char* driver : {"hip ", "automatic ", "sim "}) {
        CHECK(has(output, driver + kSimulated));
    }
    // One that kiln opened for itself is not in HIP's place.
    const auto own = probe("bind sim bind hip", fmt::format("KILN_HIP_LIBRARY={}", kDouble));
    CHECK(has(own, "sim " + kSimulated));
    CHECK(has(own, fmt::format("hip {} 1 real\n", kDouble)));
}
