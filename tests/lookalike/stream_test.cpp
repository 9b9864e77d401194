#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "tests/lookalike/support.hpp"

using namespace kiln::test;

namespace {

// Long enough for work that does not wait for what it should to be seen done.
void give_time() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void append(void* log) {
    static_cast<std::vector<int>*>(log)->push_back(1);
}

}  // namespace

TEST_CASE("StreamsAreAsynchronousAndIndependent") {
    const Stream held, other;
    const Array<std::uint8_t> array(64);
    Gate gate(held);
    CHECK(hipMemsetAsync(array.data, 7, 64, held) == kSuccess);
    hipGetLastError();
    CHECK(hipStreamQuery(held) == kNotReady);
    CHECK(hipGetLastError() == kSuccess);  // "not ready" is an answer
    CHECK(hipStreamSynchronize(other) == kSuccess);
    CHECK(hipStreamQuery(other) == kSuccess);
    gate.open();
    CHECK(hipStreamSynchronize(held) == kSuccess);
    CHECK(hipStreamQuery(held) == kSuccess);
    CHECK(array.read()[63] == 7);
}

TEST_CASE("TheNullStreamWaitsForBlockingStreamsAndTheyForIt") {
    const Stream blocking(0), other_blocking(0), free_runner;
    std::vector<int> first, second;
    Gate gate(blocking);
    CHECK(hipLaunchHostFunc(nullptr, append, &first) == kSuccess);
    CHECK(hipLaunchHostFunc(other_blocking, append, &second) == kSuccess);  // after the null stream
    CHECK(hipStreamSynchronize(free_runner) == kSuccess);                   // does not take part
    give_time();
    CHECK(hipStreamQuery(nullptr) == kNotReady);
    CHECK(hipStreamQuery(other_blocking) == kNotReady);
    CHECK(first.empty());
    CHECK(second.empty());
    gate.open();
    CHECK(hipStreamSynchronize(other_blocking) == kSuccess);
    CHECK(first.size() == 1);
    CHECK(second.size() == 1);
}

TEST_CASE("ANonBlockingStreamDoesNotHoldTheNullStream") {
    const Stream held;
    Gate gate(held);
    const Array<std::uint8_t> array(64, 3);  // a memset on the null stream, waited for
    CHECK(array.read()[0] == 3);
    CHECK(hipStreamQuery(held) == kNotReady);
    gate.open();  // freeing the array waits for the whole device
}

TEST_CASE("EventsOrderStreams") {
    const Stream first, second;
    const Event event;
    const Array<std::uint8_t> array(1);
    Gate gate(first);
    CHECK(hipMemsetAsync(array.data, 1, 1, first) == kSuccess);
    CHECK(hipEventRecord(event, first) == kSuccess);
    CHECK(hipStreamWaitEvent(second, event, 0) == kSuccess);
    CHECK(hipMemsetAsync(array.data, 2, 1, second) == kSuccess);
    give_time();
    CHECK(hipEventQuery(event) == kNotReady);
    CHECK(hipStreamQuery(second) == kNotReady);
    gate.open();
    CHECK(hipStreamSynchronize(second) == kSuccess);
    CHECK(hipEventQuery(event) == kSuccess);
    CHECK(array.read()[0] == 2);
}

TEST_CASE("AWaitIsForTheRecordingThatWasMade") {
    const Stream first, second, third;
    const Event event;
    CHECK(hipEventRecord(event, first) == kSuccess);
    CHECK(hipStreamWaitEvent(second, event, 0) == kSuccess);
    Gate gate(third);
    CHECK(hipEventRecord(event, third) == kSuccess);  // recorded anew: the wait is not for this one
    CHECK(hipStreamSynchronize(second) == kSuccess);
    CHECK(hipEventQuery(event) == kNotReady);
}

TEST_CASE("EventsTellTime") {
    const Stream stream;
    const Event start, stop, never, untimed(hipEventDisableTiming);
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop) == kInvalidHandle);  // not recorded
    CHECK(hipEventRecord(start, stream) == kSuccess);
    CHECK(hipEventSynchronize(start) == kSuccess);
    {
        Gate gate(stream);
        CHECK(hipEventRecord(stop, stream) == kSuccess);
        CHECK(hipEventRecord(untimed, stream) == kSuccess);
        CHECK(hipEventElapsedTime(&milliseconds, start, stop) == kNotReady);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK(hipEventSynchronize(stop) == kSuccess);
    CHECK(hipEventElapsedTime(&milliseconds, start, stop) == kSuccess);
    CHECK(milliseconds >= 20);
    CHECK(milliseconds < 10'000);
    CHECK(hipEventElapsedTime(&milliseconds, start, untimed) == kInvalidHandle);
    CHECK(hipEventQuery(never) == kSuccess);
    CHECK(hipEventSynchronize(never) == kSuccess);
}

TEST_CASE("HandlesThatAreNoneAreRefused") {
    const Event event;
    int something = 0;
    const auto foreign = reinterpret_cast<hipStream_t>(&something);
    CHECK(hipStreamSynchronize(foreign) == kContextIsDestroyed);
    CHECK(hipStreamDestroy(foreign) == kInvalidHandle);
    CHECK(hipEventRecord(event, foreign) == kContextIsDestroyed);
    CHECK(hipEventSynchronize(nullptr) == kInvalidHandle);
    CHECK(hipModuleLaunchKernel(nullptr, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) == kInvalidHandle);
}

TEST_CASE("AnEventBelongsToItsDevice") {
    const Event event;
    REQUIRE(hipSetDevice(1) == kSuccess);
    {
        const Stream stream;
        CHECK(hipEventRecord(event, stream) == kInvalidHandle);
        const Event own;
        CHECK(hipEventRecord(own, stream) == kSuccess);
        REQUIRE(hipSetDevice(0) == kSuccess);
        const Stream here;
        CHECK(hipStreamWaitEvent(here, own, 0) == kSuccess);  // waiting crosses devices
        CHECK(hipStreamSynchronize(here) == kSuccess);
    }
}

TEST_CASE("TheThreadsOwnStreamIsAStream") {
    const auto own = reinterpret_cast<hipStream_t>(2);  // hipStreamPerThread
    const Array<std::uint8_t> array(8);
    CHECK(hipMemsetAsync(array.data, 9, 8, own) == kSuccess);
    CHECK(hipStreamSynchronize(own) == kSuccess);
    CHECK(array.read()[7] == 9);
    std::thread([&] { CHECK(hipStreamSynchronize(own) == kSuccess); }).join();
}

TEST_CASE("TheStreamsOfThreadsThatEndedGo") {
    const auto own = reinterpret_cast<hipStream_t>(2);  // hipStreamPerThread
    const auto count_threads = [] {
        const std::filesystem::directory_iterator threads("/proc/self/task");
        return std::distance(begin(threads), end(threads));
    };
    const Array<std::uint8_t> array(20);
    const auto before = count_threads();
    for (int n = 0; n < 20; ++n) {
        std::thread([&] { CHECK(hipMemsetAsync(array.data + n, n, 1, own) == kSuccess); }).join();
    }
    CHECK(hipDeviceSynchronize() == kSuccess);  // work that was left behind is still waited for
    CHECK(array.read()[19] == 19);
    const Stream stream;  // the last ones go with a later call
    CHECK(count_threads() <= before + 1);
}

TEST_CASE("PrioritiesAreKept") {
    hipStream_t stream = nullptr;
    int priority = 0;
    REQUIRE(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -1) == kSuccess);
    CHECK(hipStreamGetPriority(stream, &priority) == kSuccess);
    CHECK(priority == -1);
    CHECK(hipStreamDestroy(stream) == kSuccess);
}
