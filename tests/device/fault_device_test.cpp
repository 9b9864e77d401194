// Every entry point of the driver fails once, in everything that the device interface does besides loading
// and launching: memory, streams, events, captures, graphs.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tests/device/faulty/faulty.hpp"
#include "tests/device/under_test.hpp"

using namespace kiln;
using namespace kiln::device;
using kiln::test::entry_points;
using kiln::test::error_text;
using kiln::test::errors;
using kiln::test::Faulty;
using kiln::test::kCuda;

namespace {

const Faulty& faulty() {
    static const Faulty instance;
    return instance;
}

// Not the current device, so that each call has to switch.
Device& second_device() {
    static const auto devices = kiln::test::open_driver(kiln::test::kFaultyLibrary);
    return *devices.at(1);
}

// Takes down what was set up, whatever happened in between.
struct Guard {
    std::function<void()> leave;
    ~Guard() { leave(); }
};

Result<void> use_memory(Device& on) {
    std::array<std::byte, 64> bytes{};
    auto pointer = on.allocate(bytes.size());
    if (!pointer) {
        return fail(pointer);
    }
    Result<void> result = on.fill(*pointer, std::byte{7}, bytes.size(), nullptr);
    if (result) {
        result = on.copy_to_host(bytes, *pointer, nullptr);
    }
    if (result) {
        CHECK(bytes[63] == std::byte{7});
        result = on.copy_to_device(*pointer, bytes, nullptr);
    }
    auto freed = on.free(*pointer);
    return result ? freed : result;
}

Result<void> use_events(Device& on) {
    std::vector<Event> events;
    const Guard guard{[&] {
        for (Event event : events) {
            static_cast<void>(on.destroy_event(event));
        }
    }};
    for (int i = 0; i < 2; ++i) {
        auto event = on.create_event();
        if (!event) {
            return fail(event);
        }
        events.push_back(*event);
        if (auto recorded = on.record(*event, nullptr); !recorded) {
            return recorded;
        }
    }
    if (auto done = on.synchronize(nullptr); !done) {
        return done;
    }
    auto elapsed = on.elapsed_milliseconds(events[0], events[1]);
    if (!elapsed) {
        return fail(elapsed);
    }
    const auto last = events.back();
    events.pop_back();
    return on.destroy_event(last);
}

Result<void> use_graphs(Device& on) {
    auto stream = on.create_stream();
    if (!stream) {
        return fail(stream);
    }
    Stream handle = *stream;
    const auto body = [&]() -> Result<void> {
        if (auto begun = on.begin_capture(handle); !begun) {
            return begun;
        }
        auto capturing = on.is_capturing(handle);
        auto graph = on.end_capture(handle);
        if (!capturing || !graph) {
            if (graph) {
                static_cast<void>(on.destroy_graph(*graph));
            }
            return capturing ? fail(graph) : fail(capturing);
        }
        CHECK(*capturing);
        auto replayed = on.replay(*graph, handle);
        auto destroyed = on.destroy_graph(*graph);
        return replayed ? destroyed : replayed;
    };
    auto result = body();
    auto destroyed = on.destroy_stream(handle);
    return result ? destroyed : result;
}

Result<void> use_counts(Device& on) {
    auto counts = on.take_counts();
    return counts ? Result<void>() : fail(counts);
}

void fail_each_call(Result<void> (*phase)(Device&)) {
    Device& on = second_device();
    REQUIRE(phase(on));
    faulty().disarm();
    const auto before = faulty().state();
    REQUIRE(phase(on));
    std::vector<std::pair<std::string, int>> made;
    for (const auto& name : entry_points()) {
        made.emplace_back(name, faulty().calls(name));
    }
    int num_failed = 0;
    for (const auto& [name, calls] : made) {
        for (int nth = 1; nth <= calls; ++nth) {
            for (const int error : errors()) {
                CAPTURE(name);
                CAPTURE(nth);
                CAPTURE(error);
                faulty().arm(name, nth, 1, error);
                const auto result = phase(on);
                CHECK(faulty().injected() == 1);
                faulty().disarm();
                // To enter and leave the device is tried again; all else fails with its reason.
                if (!result) {
                    ++num_failed;
                    CHECK(result.error().code == ErrorCode::device_failed);
                    CHECK_MESSAGE(result.error().message.find(kiln::test::number(error)) != std::string::npos,
                                  result.error().message);
                } else {
                    CHECK((
                        name == error_text("hipGetDevice", "cuCtxGetCurrent") ||
                        name == error_text("hipSetDevice", "cuCtxSetCurrent") ||
                        name == error_text("hipEventDestroy", "cuEventDestroy_v2") ||
                        (name == error_text("hipStreamIsCapturing", "cuStreamIsCapturing") && error == 906)));
                }
                CHECK(faulty().live() == 0);
                CHECK(faulty().state() == before);
                CHECK(phase(on));
            }
        }
    }
    CHECK(num_failed > 0);
}

}  // namespace

TEST_CASE("AFailureOfMemoryIsAnErrorAndNothingLeaks") {
    fail_each_call(use_memory);
}

TEST_CASE("AFailureOfEventsIsAnErrorAndNothingLeaks") {
    fail_each_call(use_events);
}

TEST_CASE("AFailureOfCapturesAndGraphsIsAnErrorAndNothingLeaks") {
    fail_each_call(use_graphs);
}

TEST_CASE("AFailureOfCountsIsAnError" * doctest::skip(kCuda)) {
    fail_each_call(use_counts);
}

TEST_CASE("AFailureToMakeADeviceCurrentIsAnError") {
    for (const int error : errors()) {
        const auto before = faulty().state();
        faulty().arm(error_text("hipSetDevice", "cuCtxSetCurrent"), 1, 1, error);
        const auto refused = second_device().make_current();
        CHECK(refused.error().message.find(
                  error_text("hipSetDevice on device 1", "cuCtxSetCurrent on device 1")) == 0);
        CHECK(faulty().state() == before);
        faulty().arm(error_text("hipGetDevice", "cuCtxGetCurrent"), 1, 1, error);
        CHECK(second_device().current_ordinal() == -1);
        CHECK(faulty().state() == before);
        if (kCuda) {  // the context that is current is another device's
            faulty().set_current_device(0);
            faulty().arm("cuCtxGetDevice", 1, 1, error);
            CHECK(second_device().current_ordinal() == -1);
            faulty().set_current_device(kiln::test::kNoneCurrent);
        }
        faulty().disarm();
    }
}

TEST_CASE("ADriverWithoutWordsForAnErrorIsDescribedByNumber") {
    faulty().arm(error_text("hipGetErrorName", "cuGetErrorName"), 1, 1, 1);
    CHECK(second_device().describe(2).find(error_text("HIP error (2)", "CUDA error (2)")) == 0);
    faulty().disarm();
    CHECK(second_device().describe(2).find(
              error_text("hipErrorOutOfMemory (2)", "CUDA_ERROR_OUT_OF_MEMORY (2)")) == 0);
}
