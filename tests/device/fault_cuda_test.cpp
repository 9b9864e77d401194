// Every entry point of CUDA's driver fails once where kiln binds it, opens its devices, loads and launches.
// In the order of this file: a driver is bound once in a process, and a context retained once.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.hpp"
#include "tests/device/faulty/cubin.hpp"
#include "tests/device/faulty/faulty.hpp"

using namespace kiln;
using namespace kiln::device;
using kiln::test::cubin;
using kiln::test::entry_points;
using kiln::test::errors;
using kiln::test::Faulty;
using kiln::test::number;

namespace {

const Faulty& faulty() {
    static const Faulty instance;
    return instance;
}

Result<std::vector<std::shared_ptr<Device>>> open() {
    return open_devices({.driver = Driver::cuda,
                         .hip_library = {},
                         .sim_library = {},
                         .cuda_library = KILN_TEST_FAULTY_CUDA});
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// A kernel is loaded, launched and unloaded; what the launch answers.
Result<int> use_module(Device& on) {
    auto module = on.load(cubin());
    if (!module) {
        return fail(module);
    }
    auto function = (*module)->function("any");
    if (!function) {
        return fail(function);
    }
    int argument = 0;
    return on.launch(*function, {.grid = {}, .block = {}, .dynamic_lds_bytes = 200 * 1024}, nullptr,
                     &argument, sizeof argument);
}

// Each call that `phase` makes of each entry point fails once with each error.
void for_each_fault(const std::function<void()>& phase,
                    const std::function<void(const std::string&, int)>& check) {
    phase();  // what is done once in a process is not counted
    faulty().disarm();
    phase();
    std::vector<std::pair<std::string, int>> made;
    for (const auto& name : entry_points()) {
        made.emplace_back(name, faulty().calls(name));
    }
    for (const auto& [name, calls] : made) {
        for (int nth = 1; nth <= calls; ++nth) {
            for (const int error : errors()) {
                CAPTURE(name);
                CAPTURE(nth);
                CAPTURE(error);
                const auto before = faulty().state();
                faulty().arm(name, nth, 1, error);
                check(name, error);
                CHECK(faulty().injected() == 1);
                faulty().disarm();
                CHECK(faulty().live() == 0);
                CHECK(faulty().state() == before);
                phase();
            }
        }
    }
}

}  // namespace

TEST_CASE("ADriverThatDoesNotStartIsAnErrorWithItsReason") {
    for (const char* name : {"cuInit", "cuDeviceGetCount"}) {
        for (const int error : errors()) {
            CAPTURE(name);
            CAPTURE(error);
            faulty().arm(name, 1, 1, error);
            const auto devices = open();
            REQUIRE_FALSE(devices);
            CHECK(faulty().injected() == 1);
            CHECK(devices.error().code == ErrorCode::environment);
            CHECK(has(devices.error().message, number(error)));
            CHECK(has(devices.error().message, KILN_TEST_FAULTY_CUDA));
            faulty().disarm();
        }
    }
}

TEST_CASE("ADeviceThatCanNotBeOpenedIsAnErrorWithItsReason") {
    for_each_fault([] { CHECK(open()); },
                   [](const std::string& name, int error) {
                       const auto devices = open();
                       REQUIRE_FALSE(devices);
                       CHECK(devices.error().code == ErrorCode::environment);
                       CHECK(has(devices.error().message, name + " on device"));
                       CHECK(has(devices.error().message, number(error)));
                   });
}

TEST_CASE("AContextThatCanNotBeHadIsAnErrorAndIsTriedAgain") {
    const auto devices = open();
    REQUIRE(devices);
    Device& on = *devices->at(1);
    for (const int error : errors()) {
        faulty().arm("cuDevicePrimaryCtxRetain", 1, 1, error);
        const auto memory = on.allocate(64);
        REQUIRE_FALSE(memory);
        CHECK(memory.error().code == ErrorCode::device_failed);
        CHECK(has(memory.error().message, number(error)));
        faulty().disarm();
    }
    // To look at a device does not make its context; to use it does, once.
    CHECK(faulty().calls("cuDevicePrimaryCtxRetain") == 0);
    REQUIRE(devices->at(0)->make_current());
    REQUIRE(devices->at(0)->make_current());
    CHECK(faulty().calls("cuDevicePrimaryCtxRetain") == 1);
    // Any device object of the process uses the same one.
    REQUIRE(open()->at(0)->make_current());
    CHECK(faulty().calls("cuDevicePrimaryCtxRetain") == 1);
}

TEST_CASE("AFailureOfLoadingOrLaunchingIsAnErrorAndNothingLeaks") {
    const auto devices = open();
    REQUIRE(devices);
    // The second one switches; on a thread with nothing current, a launch on the first one enters for itself.
    const auto first = faulty().entry<int(void*)>("cuCtxSetCurrent");
    for (const std::size_t ordinal : {0, 1}) {
        Device& on = *devices->at(ordinal);
        REQUIRE(first(nullptr) == 0);
        for_each_fault(
            [&] { CHECK(use_module(on) == 0); },
            [&](const std::string& name, int error) {
                const auto launched = use_module(on);
                // Entering is part of it, and it is the code object's fault only where that was looked at.
                const bool entering = name.starts_with("cuCtx") || name.starts_with("cuThread");
                if (!launched) {
                    const bool own = !entering && !on.is_earlier_failure(error);
                    CHECK(launched.error().code == (own ? ErrorCode::load_failed : ErrorCode::device_failed));
                    CHECK(has(launched.error().message, number(error)));
                } else if (*launched != 0) {
                    CHECK((*launched == error || (entering && *launched == 201)));
                } else {
                    // Made good, or no more than a line in the log.
                    const bool entered_for = name == "cuLaunchKernel" && error == 201;
                    CHECK((entering || entered_for || name == "cuModuleUnload"));
                }
            });
    }
}

TEST_CASE("OnlyWhatSpeaksOfTheCodeOrItsLaunchIsNoEarlierFailure") {
    const auto devices = open();
    REQUIRE(devices);
    // INVALID_VALUE, INVALID_IMAGE, NO_BINARY_FOR_GPU, NOT_FOUND, LAUNCH_OUT_OF_RESOURCES,
    // INVALID_CLUSTER_SIZE.
    for (const int error : {1, 200, 209, 500, 701, 912}) {
        CHECK_FALSE(devices->front()->is_earlier_failure(error));
    }
    // OUT_OF_MEMORY, DEINITIALIZED, INVALID_CONTEXT, ECC, ILLEGAL_ADDRESS, LAUNCH_TIMEOUT,
    // CONTEXT_IS_DESTROYED, ILLEGAL_INSTRUCTION, LAUNCH_FAILED, STREAM_CAPTURE_INVALIDATED, one that nobody
    // knows.
    for (const int error : {2, 4, 201, 214, 700, 702, 709, 715, 719, 901, 4711}) {
        CHECK(devices->front()->is_earlier_failure(error));
    }
}
