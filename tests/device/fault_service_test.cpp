// Every entry point of the driver fails once, in every phase of a service: what comes of it through libkiln's
// public interface. With CUDA the double's kernels do nothing; HIP's are the look-alike's.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "kiln/kiln.hpp"
#include "tests/device/faulty/faulty.hpp"
#include "tests/device/under_test.hpp"
#ifdef KILN_TEST_CUDA
#include "runtime/compile/toolchain.hpp"
#include "tests/skipped.hpp"
#endif

namespace fs = std::filesystem;
using kiln::test::entry_points;
using kiln::test::error_text;
using kiln::test::errors;
using kiln::test::Faulty;
using kiln::test::kCuda;

#ifdef KILN_TEST_CUDA
std::string kiln::test::why_skipped() {
    const auto toolchain = compile::find_toolchain({}, compile::Family::cuda);
    return toolchain ? "" : toolchain.error().message;
}
#endif

namespace {

const kiln::Linear kProblem{.n = 16, .k = 128};
constexpr std::size_t kBytes = 1 << 16;
void* const kNullStream = nullptr;
constexpr int kDevice = 1;  // not the current one, which is 0

// A cache and a table of one problem with two buckets, for the whole program.
class Scratch {
  public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "kiln-fault-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        folder_ = name;
        cache_ = (folder_ / "cache").string();
        shapes_ = (folder_ / "table.json").string();
        constexpr const char* kHipTable =
            R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "gfx950",
                   "provenance": {"kind": "untuned"}, "buckets": [
                   {"max_m": 16, "template": "linear/small_m",
                    "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}},
                   {"max_m": 32, "template": "linear/small_m",
                    "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";
        constexpr const char* kCudaTable =
            R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "sm_90a",
                   "provenance": {"kind": "untuned"}, "buckets": [
                   {"max_m": 16, "template": "linear/small_m",
                    "constants": {"split_k": 1, "tiles_n": 1, "warp_tiles": 1, "warps_k": 1, "steps": 1,
                                  "stages": 1, "early_steps": 1}},
                   {"max_m": 32, "template": "linear/small_m",
                    "constants": {"split_k": 1, "tiles_n": 1, "warp_tiles": 1, "warps_k": 1, "steps": 1,
                                  "stages": 1, "early_steps": 1}}]}]})";
        std::ofstream(shapes_) << (kCuda ? kCudaTable : kHipTable);
    }
    ~Scratch() { fs::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] kiln::Config config() const {
        return {.cache_dir = cache_.c_str(),
                .shapes_path = shapes_.c_str(),
                .device = kCuda ? "cuda" : "hip",
                .hip_library = kCuda ? nullptr : kiln::test::kFaultyLibrary,
                .log = "off",
                .cuda_library = kCuda ? kiln::test::kFaultyLibrary : nullptr};
    }

  private:
    fs::path folder_;
    std::string cache_, shapes_;
};

kiln::Service open_service() {
    static const Scratch scratch;
    auto service = kiln::Service::open(scratch.config());
    REQUIRE_MESSAGE(service, service.failure().message);
    return service;
}

// One that has bound the driver, and what it compiles is in the cache.
kiln::Service open_bound() {
    auto service = open_service();
    static const bool warm = static_cast<bool>(service.prepare(kDevice, kProblem));
    REQUIRE(warm);
    std::int32_t count = 0;
    REQUIRE(service.device_count(count));
    return service;
}

// The test's thread is on device 0.
const Faulty& faulty() {
    static const Faulty instance = [] {
        const Faulty made;
        made.set_current_device(0);
        return made;
    }();
    return instance;
}

// The engine's own calls, past the faults.
template <class... Arguments>
int engine(const char* name, Arguments... arguments) {
    static void* const library = dlopen(KILN_TEST_LOOKALIKE, RTLD_NOW | RTLD_LOCAL);
    void* const entry = dlsym(library, name);
    REQUIRE(entry != nullptr);
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

// Arrays that the simulator would read: memory of a device.
struct Arrays {
    explicit Arrays(int device) {
        set_device(device);
        for (auto& pointer : pointers) {
            REQUIRE(engine("hipMalloc", &pointer, kBytes) == 0);
            REQUIRE(engine("hipMemsetAsync", pointer, 0, kBytes, kNullStream) == 0);
        }
        synchronize();
    }
    ~Arrays() {
        synchronize();
        for (void* const pointer : pointers) {
            engine("hipFree", pointer);
        }
        set_device(0);
    }
    Arrays(const Arrays&) = delete;
    Arrays& operator=(const Arrays&) = delete;
    static void synchronize() { engine("hipStreamSynchronize", kNullStream); }
    static void set_device(int device) {
        REQUIRE(engine("hipSetDevice", device) == 0);
        faulty().set_current_device(device);
    }
    [[nodiscard]] kiln::Linear::Args args() const {
        return {.x = pointers[0],
                .ldx = 128,
                .w = pointers[1],
                .w_scale = static_cast<float*>(pointers[2]),
                .out = pointers[3]};
    }
    std::array<void*, 4> pointers{};
};

// The engine's own path: the driver does what the engine asks it, with no error of ours before it.
void check_own_path() {
    const Arrays arrays(kDevice);
    CHECK(faulty().state().last_error == 0);
}

// After a fault has gone, a service that is opened then does all there is to do.
void check_new_service() {
    const auto plan = open_service().prepare(kDevice, kProblem);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    const Arrays arrays(kDevice);
    CHECK(plan.launch(nullptr, 3, arrays.args()));
    CHECK(plan.launch(nullptr, 17, arrays.args()));
}

// Runs `body` once for each call that `phase` makes of each entry point, and each error: with that call
// armed.
template <class Phase, class Body>
void for_each_fault(const Phase& phase, const Body& body) {
    std::vector<std::pair<std::string, int>> made;
    phase();  // what is done once in a process is not counted
    faulty().disarm();
    phase();
    for (const auto& name : entry_points()) {
        made.emplace_back(name, faulty().calls(name));
    }
    for (const auto& [name, calls] : made) {
        for (int nth = 1; nth <= calls; ++nth) {
            // What changes the thread's state may have done so and fail.
            const bool either =
                name == error_text("hipSetDevice", "cuCtxSetCurrent") ||
                name == error_text("hipThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode");
            for (const bool done : either ? std::vector{false, true} : std::vector{false}) {
                faulty().fail_when_done(done);
                for (const int error : errors()) {
                    CAPTURE(name);
                    CAPTURE(nth);
                    CAPTURE(error);
                    CAPTURE(done);
                    body(name, nth, error);
                    faulty().disarm();
                }
            }
            faulty().fail_when_done(false);
            check_own_path();
            check_new_service();
            CHECK(faulty().live() == 0);
        }
    }
}

}  // namespace

TEST_CASE("AFailureToCountDevicesIsAnErrorWithItsReason") {
    for (const int error : errors()) {
        const auto service = open_service();
        std::int32_t count = -1;
        kiln::Failure why;
        faulty().arm(error_text("hipGetDeviceCount", "cuDeviceGetCount"), 1, 1, error);
        const auto before = faulty().state();
        CHECK(service.device_count(count, &why).error_code() == KILN_ERROR_ENVIRONMENT);
        CHECK(faulty().injected() == 1);
        CHECK(count == -1);
        CHECK_MESSAGE(why.message.find(kiln::test::number(error)) != std::string::npos, why.message);
        CHECK(why.message.find(kiln::test::kFaultyLibrary) != std::string::npos);
        CHECK(faulty().state() == before);
        faulty().disarm();
    }
    check_new_service();
}

TEST_CASE("AFailureToOpenADeviceIsAnErrorWithItsReason") {
    const auto open_devices = [](kiln::Failure* why) {
        std::int32_t count = 0;
        return open_service().device_count(count, why);
    };
    for_each_fault([&] { CHECK(open_devices(nullptr)); },
                   [&](const std::string& name, int nth, int error) {
                       const auto before = faulty().state();
                       kiln::Failure why;
                       faulty().arm(name, nth, 1, error);
                       CHECK(open_devices(&why).error_code() == KILN_ERROR_ENVIRONMENT);
                       CHECK(faulty().injected() == 1);
                       CHECK_MESSAGE(why.message.find(name) != std::string::npos, why.message);
                       CHECK_MESSAGE(why.message.find(kiln::test::number(error)) != std::string::npos,
                                     why.message);
                       CHECK(faulty().state() == before);
                   });
}

TEST_CASE("AFailureOfAnyCallOfPrepareIsAnErrorOrMadeGood") {
    const auto before = faulty().state();
    for_each_fault([] { CHECK(open_bound().prepare(kDevice, kProblem)); },
                   [&](const std::string& name, int nth, int error) {
                       const auto service = open_bound();
                       faulty().arm(name, nth, 1, error);
                       {
                           const auto plan = service.prepare(kDevice, kProblem);
                           // The release is part of it: it unloads.
                           if (!plan) {
                               const auto& why = plan.failure();
                               CHECK(why.status.error_code() != 0);
                               CHECK_MESSAGE(why.message.find(kiln::test::number(error)) != std::string::npos,
                                             why.message);
                               CHECK(why.message.find("device 1") != std::string::npos);
                               // Again, with the fault gone: what spoke of the code object declines, all
                               // else is served.
                               faulty().disarm();
                               const auto again = service.prepare(kDevice, kProblem);
                               if (why.status.error_code() == KILN_ERROR_LOAD_FAILED) {
                                   CHECK(again.failure().status.decline() == KILN_DECLINE_DISABLED);
                               } else {
                                   CHECK(why.status.error_code() == KILN_ERROR_DEVICE_FAILED);
                                   CHECK_MESSAGE(again, again.failure().message);
                               }
                           } else if (faulty().injected() == 1) {
                               // Made good; else it is to come with the release.
                               const Arrays arrays(kDevice);
                               CHECK(plan.launch(nullptr, 20, arrays.args()));
                           }
                       }
                       CHECK(faulty().live() == 0);
                       CHECK(faulty().state() == before);
                   });
}

TEST_CASE("ADriverThatDoesNotLetKilnEnterIsAnErrorThatDisablesNothing") {
    const auto before = faulty().state();
    for (const std::string name :
         {error_text("hipGetDevice", "cuCtxGetCurrent"), error_text("hipSetDevice", "cuCtxSetCurrent"),
          error_text("hipThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode")}) {
        CAPTURE(name);
        const auto service = open_bound();
        faulty().arm(name, 1, 0, 999);
        const auto plan = service.prepare(kDevice, kProblem);
        CHECK(plan.failure().status.error_code() == KILN_ERROR_DEVICE_FAILED);
        CHECK(faulty().calls(error_text("hipModuleLoadData", "cuModuleLoadData")) == 0);
        faulty().disarm();
        CHECK(faulty().state() == before);
        CHECK(service.prepare(kDevice, kProblem));
    }
    CHECK(faulty().live() == 0);
}

TEST_CASE("AFailureOfALaunchIsAnErrorThatLeavesNothingBehind") {
    const Arrays arrays(kDevice);
    const auto before = faulty().state();
    for (const std::string name : {error_text("hipModuleLaunchKernel", "cuLaunchKernel"),
                                   error_text("hipGetDevice", "cuCtxGetCurrent")}) {
        for (const int error : errors()) {
            CAPTURE(name);
            CAPTURE(error);
            {
                const auto plan = open_bound().prepare(kDevice, kProblem);
                REQUIRE(plan);
                faulty().arm(name, 1, 1, error);
                const auto status = plan.launch(nullptr, 3, arrays.args());
                CHECK(faulty().injected() == 1);
                CHECK(faulty().state() == before);
                CHECK(faulty().live() == 2);
                // The other bucket, and this one where the failure was not its own.
                CHECK(plan.launch(nullptr, 20, arrays.args()));
                const auto again = plan.launch(nullptr, 3, arrays.args());
                if (status.error_code() == KILN_ERROR_LAUNCH_FAILED) {
                    CHECK(again.decline() == KILN_DECLINE_DISABLED);
                } else {
                    CHECK(status.error_code() == KILN_ERROR_DEVICE_FAILED);
                    CHECK(again.ok());
                }
            }
            CHECK(faulty().live() == 0);
            CHECK(faulty().state() == before);
            faulty().disarm();
        }
    }
}

TEST_CASE("ALaunchThatFailsUnderCaptureLeavesTheCaptureToTheEngine") {
    const Arrays arrays(kDevice);
    const auto plan = open_bound().prepare(kDevice, kProblem);
    REQUIRE(plan);
    void *stream = nullptr, *graph = nullptr;
    REQUIRE(engine("hipStreamCreateWithFlags", &stream, 1U) == 0);
    REQUIRE(engine("hipStreamBeginCapture", stream, 0) == 0);
    faulty().arm(error_text("hipModuleLaunchKernel", "cuLaunchKernel"), 1, 1, 701);
    CHECK(plan.launch(stream, 3, arrays.args()).error_code() == KILN_ERROR_LAUNCH_FAILED);
    // The engine's own kernel in its place.
    CHECK(engine("hipMemsetAsync", arrays.pointers[3], 1, kBytes, stream) == 0);
    CHECK(engine("hipStreamEndCapture", stream, &graph) == 0);
    CHECK(graph != nullptr);
    engine("hipGraphDestroy", graph);
    engine("hipStreamDestroy", stream);
    faulty().disarm();
}

TEST_CASE("AnErrorThatTheEngineHasNotTakenYetStaysItsOwn" * doctest::skip(kCuda)) {
    const auto service = open_bound();
    // hipErrorInvalidValue: no place for the pointer.
    CHECK(engine("hipMalloc", static_cast<void**>(nullptr), kBytes) != 0);
    const auto before = faulty().state();
    CHECK(before.last_error == 1);
    {
        const auto plan = service.prepare(kDevice, kProblem);
        CHECK(plan);
    }
    CHECK(faulty().state() == before);
    engine("hipGetLastError");
}

TEST_CASE("ADeviceThatCanNotBePutBackIsSaid") {
    // Which call is the first that puts back: the second, after the one that switches.
    const auto service = open_bound();
    faulty().arm(error_text("hipSetDevice", "cuCtxSetCurrent"), 2, 2, 700);
    const auto plan = service.prepare(kDevice, kProblem);
    CHECK(faulty().injected() == 2);
    CHECK(plan);
    CHECK(faulty().state().last_error == 0);
    faulty().disarm();
    Arrays::set_device(0);
}
