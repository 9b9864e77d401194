// Which libamdhip64 is bound: each case in a process of its own, with a double of the driver in the place of
// AMD's. The cases are the rows of the table in this folder's README.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

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
    CAPTURE(arguments);
    CAPTURE(output);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    return output;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string real(const std::string& path, const char* driver = "hip") {
    return fmt::format("{} {} 1 real\n", driver, path);
}

// The environment that preloads a library. AddressSanitizer wants to come before it, which is of no matter
// here.
std::string preload(const char* library) {
    return fmt::format("ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD={}", library);
}

// A folder for copies of the double, and for other ways to its file.
struct Folder {
    Folder() {
        std::string name = (fs::temp_directory_path() / "kiln-binding-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = fs::canonical(name);
    }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    // Another file of the same bytes.
    [[nodiscard]] std::string copy(const char* name = "libamdhip64.so.7") const {
        fs::copy_file(kDouble, path / name);
        return (path / name).string();
    }
    [[nodiscard]] std::string symlink(const fs::path& target, const char* name) const {
        fs::create_symlink(target, path / name);
        return (path / name).string();
    }
    fs::path path;
};

const std::string kSimulated = fmt::format("{} 2 simulated\n", fs::canonical(kLookalike).string());
const bool kGpuDriver = fs::exists("/dev/kfd");

// In a process that finds the double by bare name.
std::string library_path(const Folder& folder) {
    return "LD_LIBRARY_PATH=" + folder.path.string();
}

}  // namespace

TEST_CASE("WithNothingLoadedAndNoGpuTheSimulatorIsFound") {
    CHECK(has(probe("bind sim"), kSimulated));
    if (!kGpuDriver) {
        CHECK(has(probe("bind automatic"), "automatic " + kSimulated));
    }
}

TEST_CASE("WithNothingLoadedTheNewestVersionedNameIsLoaded") {
    const Folder both, old, bare;
    const auto seven = both.copy("libamdhip64.so.7");
    static_cast<void>(both.copy("libamdhip64.so.6"));
    CHECK(probe("bind hip", library_path(both)) == real(seven));
    // Only where the loader finds no .so.7 of the machine's own.
    if (has(probe("bind hip"), "no HIP runtime: libamdhip64.so.7: cannot open")) {
        const auto six = old.copy("libamdhip64.so.6");
        CHECK(probe("bind hip", library_path(old)) == real(six));
        static_cast<void>(bare.copy("libamdhip64.so"));
        const auto none = probe("bind hip", library_path(bare));
        CHECK(has(none, "hip error: no HIP runtime: libamdhip64.so.7: cannot open"));
        CHECK(has(none, "/opt/rocm/lib/libamdhip64.so.6"));
    } else {
        MESSAGE("skipped: this machine has a HIP runtime of its own");
    }
}

TEST_CASE("AnInstalledCopyWithoutADeviceIsNotFollowedByASecondOne") {
    const Folder folder;
    const auto seven = folder.copy("libamdhip64.so.7");
    static_cast<void>(folder.copy("libamdhip64.so.6"));
    const auto output =
        probe("bind hip bind hip bind automatic", "KILN_DOUBLE_DEVICES=0 " + library_path(folder));
    const auto no_device = fmt::format("hip error: {} reports no device: HIP error (100)\n", seven);
    CHECK(output == no_device + no_device + "automatic " + kSimulated);
}

TEST_CASE("TheCopyThatTheProcessHoldsIsUsed") {
    CHECK(probe(fmt::format("open {} bind hip bind automatic", kDouble)) ==
          real(kDouble) + real(kDouble, "automatic"));
    // The simulator is another thing, and can be had beside it.
    const auto both = probe(fmt::format("open {} bind sim bind hip", kDouble));
    CHECK(has(both, "sim " + kSimulated));
    CHECK(has(both, real(kDouble)));
}

TEST_CASE("TheHeldCopyIsFoundHoweverItCameIn") {
    const Folder folder;
    const auto expect_held = [](const std::string& how, const std::string& path,
                                const std::string& environment = "") {
        CHECK(probe(how + " bind hip bind automatic", environment) == real(path) + real(path, "automatic"));
    };
    expect_held(fmt::format("global {}", kDouble), kDouble);
    expect_held("", kDouble, preload(kDouble));
    const auto link = folder.symlink(kDouble, "libamdhip64.so.7");
    expect_held("open " + link, link);
    const auto link_of_other_name = folder.symlink(kDouble, "engine_gpu.so");
    expect_held("open " + link_of_other_name, link_of_other_name);
    // A relative name stays what it was when the process leaves the folder.
    expect_held(fmt::format("in {} open ./libamdhip64.so.7 in /", folder.path.string()),
                "./libamdhip64.so.7");
}

TEST_CASE("TheHeldCopyIsFoundUnderAnyVersionAndAMangledName") {
    for (const char* name : {"libamdhip64.so.6", "libamdhip64.so", "libamdhip64.so.7.2.53211",
                             "libamdhip64-0a1b2c3d.so.6", "known_by_its_soname.so"}) {
        const Folder folder;
        const auto path = folder.copy(name);
        CHECK(probe(fmt::format("open {} bind hip bind automatic", path)) ==
              real(path) + real(path, "automatic"));
    }
}

TEST_CASE("TheHeldCopyIsFoundInAnotherLinkNamespace") {
    CHECK(probe(fmt::format("space {} bind hip bind automatic", kDouble)) ==
          real(fs::canonical(kDouble)) + real(fs::canonical(kDouble), "automatic"));
    const auto two = probe(fmt::format("space {0} open {0} bind hip", kDouble));
    CHECK(has(two, "hip error: the process holds 2 copies"));
}

TEST_CASE("OneFileIsOneCopyWhateverPathsLeadToIt") {
    const Folder folder;
    const auto first = folder.copy();
    const auto link = folder.symlink(first, "libamdhip64.so");
    fs::create_hard_link(first, folder.path / "libamdhip64.so.6");
    CHECK(probe(fmt::format("open {} open {} open {}/libamdhip64.so.6 bind hip", first, link,
                            folder.path.string())) == real(first));
    CHECK(probe(fmt::format("open {} bind hip", first), "KILN_HIP_LIBRARY=" + link) == real(first));
}

TEST_CASE("ACopyWithoutADeviceLeavesTheSimulator") {
    const auto output =
        probe(fmt::format("open {} bind automatic bind hip", kDouble), "KILN_DOUBLE_DEVICES=0");
    CHECK(has(output, "automatic " + kSimulated));
    CHECK(has(output, fmt::format("hip error: {} reports no device: HIP error (100)", kDouble)));
}

TEST_CASE("TwoCopiesAreRefusedByNameUnlessOneIsChosen") {
    const Folder folder;
    const auto same = folder.copy();
    const auto other_version = folder.copy("libamdhip64.so.6");
    for (const auto& second : {same, other_version}) {
        const auto open = fmt::format("open {} global {} ", kDouble, second);
        for (const char* driver : {"hip", "automatic"}) {
            const auto refused = probe(open + "bind " + driver);
            CHECK(has(refused, fmt::format("{} error: the process holds 2 copies", driver)));
            CHECK(has(refused, kDouble));
            CHECK(has(refused, second));
            CHECK(has(refused, "KILN_HIP_LIBRARY"));
            CHECK(probe(open + "bind " + driver, "KILN_HIP_LIBRARY=" + second) == real(second, driver));
        }
    }
    const auto chosen = fs::canonical(kDouble).string();
    CHECK(probe(fmt::format("open {} space {} bind hip", same, kDouble), "KILN_HIP_LIBRARY=" + chosen) ==
          real(chosen));
    CHECK(has(probe(fmt::format("open {} open {} bind sim", kDouble, same)), "sim " + kSimulated));
}

TEST_CASE("ACopyThatComesAfterKilnBoundAnotherIsNoticedAtTheNextLoadAndTheNextService") {
    const Folder installed, later;
    const auto first = installed.copy();
    const auto second = later.copy();
    const auto late = fmt::format("keep hip load 1 open {} load 2 bind hip", second);
    const auto output = probe(late, library_path(installed));
    CHECK(has(output, "load: done\nload: since kiln bound " + first));
    CHECK(has(output, "another copy of the HIP runtime: " + second));
    CHECK(has(output, "hip error: the process holds 2 copies"));
    // The same file again, or HIP beside a simulated device, makes nothing ambiguous.
    CHECK(probe("keep hip open libamdhip64.so.7 load 1 bind hip", library_path(installed)) ==
          "load: done\n" + real(first));
    CHECK(has(probe(fmt::format("keep sim open {} load 1", kDouble)), "load: code object"));
    // Nor does it where somebody chose.
    CHECK(probe(late, "KILN_HIP_LIBRARY=" + first) == "load: done\nload: done\n" + real(first));
    // It is noticed as well where the first one was the program's.
    CHECK(has(probe(fmt::format("open {} keep automatic load 1 space {} load 2", first, second)),
              "load: done\nload: since kiln bound " + first));
}

TEST_CASE("ALibraryThatIsAskedForIsNeverASecondCopy") {
    const Folder folder;
    const auto second = folder.copy();
    const auto output = probe(fmt::format("open {} bind hip", kDouble), "KILN_HIP_LIBRARY=" + second);
    CHECK(has(output, "hip error: " + second + " was asked for"));
    CHECK(has(output, fmt::format("already holds {}", kDouble)));
}

TEST_CASE("ALibraryIsLoadedByAnyName") {
    CHECK(probe("bind hip", fmt::format("KILN_HIP_LIBRARY={}", KILN_TEST_OTHER_NAME)) ==
          real(KILN_TEST_OTHER_NAME));
    const Folder folder;
    const auto path = folder.copy();
    CHECK(probe("bind hip", "KILN_HIP_LIBRARY=libamdhip64.so.7 " + library_path(folder)) == real(path));
    CHECK(probe(fmt::format("in {} bind hip", folder.path.string()), "KILN_HIP_LIBRARY=./libamdhip64.so.7") ==
          real("./libamdhip64.so.7"));
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
    for (const auto& [how, environment] : {std::pair{fmt::format("global {} ", kLookalike), std::string()},
                                           {std::string(), preload(kLookalike)}}) {
        const auto output = probe(how + "bind hip bind automatic bind sim", environment);
        for (const char* driver : {"hip ", "automatic ", "sim "}) {
            CHECK(has(output, driver));
            CHECK(has(output, "libamdhip64.so.7 2 simulated\n"));
        }
        CHECK_FALSE(has(output, "error"));
    }
    // One that kiln opened for itself is not in HIP's place.
    const auto own = probe("bind sim bind hip", fmt::format("KILN_HIP_LIBRARY={}", kDouble));
    CHECK(has(own, "sim " + kSimulated));
    CHECK(has(own, real(kDouble)));
}

TEST_CASE("AReportSaysWhatIsHeldWhatWasConsideredAndWhatWasChosen") {
    const Folder folder;
    const auto second = folder.copy();
    CHECK(probe(fmt::format("open {} report automatic", kDouble)) ==
          fmt::format("held: {0}\nstep: the process holds one HIP runtime: {0}\nchosen: {0}\n", kDouble));
    const auto several = probe(fmt::format("open {} open {} report hip", kDouble, second));
    CHECK(has(several, fmt::format("held: {}\nheld: {}\nstep: the process holds 2 copies", kDouble, second)));
    CHECK(has(several, "chosen: \n"));
    const auto none = probe(fmt::format("open {} report automatic", kDouble), "KILN_DOUBLE_DEVICES=0");
    CHECK(has(none, fmt::format("step: {} reports no device", kDouble)));
    CHECK(has(none, "step: the simulator takes its place\nchosen: " + fs::canonical(kLookalike).string()));
    CHECK(has(probe("report hip", "KILN_HIP_LIBRARY=/nonexistent"), "step: /nonexistent was asked for"));
}

TEST_CASE("AHipRtcWithoutAHipRuntimeLeavesTheSimulator") {
    const Folder folder;
    // Any library will do: kiln never calls a hipRTC of the process.
    fs::copy_file(KILN_TEST_OTHER_NAME, folder.path / "libhiprtc.so.7");
    const auto open = fmt::format("open {}/libhiprtc.so.7 ", folder.path.string());
    CHECK(has(probe(open + "bind sim"), "sim " + kSimulated));
    if (!kGpuDriver) {
        CHECK(has(probe(open + "bind automatic"), "automatic " + kSimulated));
    }
    CHECK(probe(open + fmt::format("open {} bind hip", kDouble)) == real(kDouble));
}

TEST_CASE("CudasDriverIsBoundByTheSameRules") {
    const Folder folder, other;
    const auto as_cuda = [](const Folder& in, const char* name) {
        fs::copy_file(KILN_TEST_FAULTY_CUDA, in.path / name);
        return (in.path / name).string();
    };
    const auto bound = [](const char* driver, const std::string& path) {
        return fmt::format("{} {} 2 real\n", driver, path);
    };
    const auto one = as_cuda(folder, "libcuda.so.1");
    const auto two = as_cuda(other, "libcuda.so.580.95.05");
    CHECK(probe("bind cuda", library_path(folder)) == bound("cuda", one));
    CHECK(probe("bind cuda", "KILN_CUDA_LIBRARY=" + two) == bound("cuda", two));
    CHECK(probe(fmt::format("open {} bind cuda", two)) == bound("cuda", two));
    CHECK(probe(fmt::format("open {} open {} bind cuda", one, two), "KILN_CUDA_LIBRARY=" + two) ==
          bound("cuda", two));
    const auto both = probe(fmt::format("open {} open {} bind cuda", one, two));
    CHECK(has(both, "cuda error: the process holds 2 copies of the CUDA driver"));
    CHECK(has(both, "KILN_CUDA_LIBRARY says which one to use"));
    const auto later = probe(fmt::format("open {} keep cuda open {} load x", one, two));
    CHECK(has(later, "the process has loaded another copy of the CUDA driver"));
    if (const auto bare = probe("bind cuda"); has(bare, "cuda error: ")) {
        CHECK((has(bare, "no CUDA driver: libcuda.so.1: cannot open") || has(bare, "reports no device")));
    } else {
        MESSAGE("skipped: this machine has a CUDA GPU of its own");
    }
    const auto none = probe("bind cuda", "KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1");
    CHECK(has(none, "cuda error: /nonexistent/libcuda.so.1: cannot open"));
    CHECK(has(none, "(asked for: configuration or KILN_CUDA_LIBRARY)"));
    const auto hip = probe("bind cuda", fmt::format("KILN_CUDA_LIBRARY={}", kDouble));
    CHECK(has(hip, "is no CUDA driver of version 11 or newer: it lacks cuInit"));
    // The runtime is not the driver.
    const auto runtime = as_cuda(other, "libcudart.so.13");
    const auto beside = probe(fmt::format("open {} report cuda", runtime));
    CHECK_FALSE(has(beside, "held: "));
}

TEST_CASE("AutomaticTakesHipBeforeCudaAndCudaBeforeTheSimulator") {
    const Folder folder;
    const auto cuda = (folder.path / "libcuda.so.1").string();
    fs::copy_file(KILN_TEST_FAULTY_CUDA, cuda);
    const auto bound = fmt::format("automatic {} 2 real\n", cuda);
    CHECK(probe("bind automatic", "KILN_CUDA_LIBRARY=" + cuda) == bound);
    CHECK(has(probe("bind automatic", "KILN_CUDA_LIBRARY=/nonexistent/libcuda.so.1"),
              "automatic error: /nonexistent/libcuda.so.1: cannot open"));
    // A HIP that is in the process comes first, unless a library of the other kind is named.
    const auto held = fmt::format("open {} open {} bind automatic", kDouble, cuda);
    CHECK(probe(held) == real(kDouble, "automatic"));
    CHECK(probe(held, "KILN_CUDA_LIBRARY=" + cuda) == bound);
    CHECK(probe(held, "KILN_DOUBLE_DEVICES=0") == bound);
    if (!kGpuDriver) {
        CHECK(probe(fmt::format("open {} bind automatic", cuda)) == bound);
    }
    // The toolkit's file to link against, which some find at run time.
    const char* const stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
    if (fs::exists(stub)) {
        CHECK(has(probe(fmt::format("open {} bind cuda", stub)), "is a toolkit's stub"));
        CHECK(has(probe(fmt::format("open {} bind automatic", stub)), kSimulated));
    }
}
