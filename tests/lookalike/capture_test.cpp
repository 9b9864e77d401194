#include <thread>

#include "tests/lookalike/support.hpp"

using namespace kiln::test;

namespace {

int end(hipStream_t stream) {
    hipGraph_t graph = nullptr;
    const int error = hipStreamEndCapture(stream, &graph);
    CHECK((graph != nullptr) == (error == kSuccess));
    if (graph != nullptr) {
        hipGraphDestroy(graph);
    }
    return error;
}

int status_of(hipStream_t stream) {
    int status = -1;
    CHECK(hipStreamIsCapturing(stream, &status) == kSuccess);
    return status;
}

}  // namespace

TEST_CASE("ACaptureRecordsAndReplays") {
    const Stream stream;
    const Array<std::uint8_t> from(4, 5), to(4);
    const auto graph = record(stream, [&] {
        CHECK(status_of(stream) == hipStreamCaptureStatusActive);
        unsigned long long id = 0;
        int status = 0;
        CHECK(hipStreamGetCaptureInfo(stream, &status, &id) == kSuccess);
        CHECK(id != 0);
        CHECK(hipMemcpyAsync(to.data, from.data, 4, hipMemcpyDeviceToDevice, stream) == kSuccess);
        CHECK(hipMemsetAsync(from.data, 6, 4, stream) == kSuccess);
    });
    CHECK(status_of(stream) == hipStreamCaptureStatusNone);
    CHECK(to.read()[0] == 0);  // nothing ran
    for (const int expected : {5, 6}) {
        CHECK(hipGraphLaunch(graph, stream) == kSuccess);
        CHECK(hipStreamSynchronize(stream) == kSuccess);
        CHECK(to.read()[3] == expected);
    }
    CHECK(hipGraphExecDestroy(graph) == kSuccess);
    CHECK(hipGraphLaunch(graph, stream) == kInvalidValue);
}

TEST_CASE("AGraphSaysWhatItHolds") {
    const Stream stream, side;
    const Event fork, join;
    const Array<std::uint8_t> array(4);
    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    CHECK(hipMemsetAsync(array.data, 1, 4, stream) == kSuccess);
    CHECK(hipEventRecord(fork, stream) == kSuccess);
    CHECK(hipStreamWaitEvent(side, fork, 0) == kSuccess);
    CHECK(status_of(side) == hipStreamCaptureStatusActive);
    CHECK(hipMemcpyAsync(array.data, array.data + 2, 2, hipMemcpyDeviceToDevice, side) == kSuccess);
    CHECK(hipEventRecord(join, side) == kSuccess);
    CHECK(hipStreamWaitEvent(stream, join, 0) == kSuccess);
    CHECK(hipMemsetAsync(array.data, 2, 4, stream) == kSuccess);
    hipGraph_t graph = nullptr;
    REQUIRE(hipStreamEndCapture(stream, &graph) == kSuccess);
    CHECK(status_of(side) == hipStreamCaptureStatusNone);

    std::size_t count = 0;
    REQUIRE(hipGraphGetNodes(graph, nullptr, &count) == kSuccess);
    REQUIRE(count == 3);
    hipGraphNode_t nodes[3] = {};
    REQUIRE(hipGraphGetNodes(graph, nodes, &count) == kSuccess);
    const int kinds[] = {2, 1, 2};  // memset, memcpy, memset
    for (int i = 0; i < 3; ++i) {
        int kind = -1;
        CHECK(hipGraphNodeGetType(nodes[i], &kind) == kSuccess);
        CHECK(kind == kinds[i]);
    }
    CHECK(hipGraphGetRootNodes(graph, nullptr, &count) == kSuccess);
    CHECK(count == 1);
    CHECK(hipGraphDestroy(graph) == kSuccess);
}

TEST_CASE("AForkMustBeJoined") {
    const Stream stream, side;
    const Event fork;
    const Array<std::uint8_t> array(4);
    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    CHECK(hipEventRecord(fork, stream) == kSuccess);
    CHECK(hipStreamWaitEvent(side, fork, 0) == kSuccess);
    CHECK(hipMemsetAsync(array.data, 1, 4, side) == kSuccess);
    hipGraph_t graph = nullptr;
    CHECK(hipStreamEndCapture(side, &graph) == kCaptureUnmatched);
    CHECK(end(stream) == kCaptureInvalidated);  // by the wrong end

    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    CHECK(hipEventRecord(fork, stream) == kSuccess);
    CHECK(hipStreamWaitEvent(side, fork, 0) == kSuccess);
    CHECK(hipMemsetAsync(array.data, 1, 4, side) == kSuccess);
    CHECK(end(stream) == kCaptureUnjoined);
    CHECK(hipStreamSynchronize(side) == kSuccess);  // the side stream works again
}

TEST_CASE("ForbiddenCallsBreakACapture") {
    const Stream stream, bystander;
    const Event event;
    void* pointer = nullptr;
    const auto broken_by = [&](auto call, int expected) {
        REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
        CHECK(call() == expected);
        CHECK(status_of(stream) == hipStreamCaptureStatusInvalidated);
        CHECK(hipLaunchHostFunc(
                  stream, [](void*) {}, nullptr) == kCaptureInvalidated);
        CHECK(end(stream) == kCaptureInvalidated);
    };
    broken_by([&] { return hipMalloc(&pointer, 64); }, kCaptureUnsupported);
    broken_by([&] { return hipFree(nullptr); }, kCaptureUnsupported);
    broken_by([&] { return hipDeviceSynchronize(); }, kCaptureUnsupported);
    broken_by([&] { return hipStreamSynchronize(stream); }, kCaptureUnsupported);
    broken_by([&] { return hipStreamQuery(stream); }, kCaptureUnsupported);
    broken_by([&] { return hipMemset(nullptr, 0, 0); }, kCaptureUnsupported);
    broken_by(
        [&] {
            hipModule_t module = nullptr;
            return hipModuleLoadData(&module, code_object().data());
        },
        kCaptureUnsupported);
    broken_by(
        [&] {
            REQUIRE(hipEventRecord(event, stream) == kSuccess);
            return hipEventQuery(event);
        },
        kCapturedEvent);
    const Event uncaptured;
    REQUIRE(hipEventRecord(uncaptured, bystander) == kSuccess);
    broken_by([&] { return hipStreamWaitEvent(stream, uncaptured, 0); }, kCaptureIsolation);
    CHECK(hipStreamSynchronize(bystander) == kSuccess);
}

TEST_CASE("RelaxedModeForbidsNothing") {
    const Stream stream;
    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    int mode = hipStreamCaptureModeRelaxed;
    REQUIRE(hipThreadExchangeStreamCaptureMode(&mode) == kSuccess);
    CHECK(mode == hipStreamCaptureModeGlobal);
    {
        const Module module;
        CHECK(module("vector_add") != nullptr);
        void* pointer = nullptr;
        CHECK(hipMalloc(&pointer, 64) == kSuccess);
        CHECK(hipFree(pointer) == kSuccess);
    }
    REQUIRE(hipThreadExchangeStreamCaptureMode(&mode) == kSuccess);
    CHECK(mode == hipStreamCaptureModeRelaxed);
    CHECK(end(stream) == kSuccess);
}

TEST_CASE("ModesSayWhoIsForbidden") {
    const Stream stream;
    const auto elsewhere = [](auto call) {
        int error = -1;
        std::thread([&] { error = call(); }).join();
        return error;
    };
    const auto allocate = [] {
        void* pointer = nullptr;
        const int error = hipMalloc(&pointer, 64);
        return error == kSuccess ? hipFree(pointer) : error;
    };
    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal) == kSuccess);
    CHECK(elsewhere(allocate) == kSuccess);
    CHECK(end(stream) == kSuccess);

    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed) == kSuccess);
    CHECK(allocate() == kSuccess);
    CHECK(elsewhere([&] { return end(stream); }) == kSuccess);  // any thread may end it

    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    CHECK(elsewhere([&] {
              hipGraph_t graph = nullptr;
              return hipStreamEndCapture(stream, &graph);
          }) == kCaptureWrongThread);
    CHECK(elsewhere(allocate) == kCaptureUnsupported);
    CHECK(end(stream) == kCaptureInvalidated);
}

TEST_CASE("TheNullStreamCanNotBeCaptured") {
    CHECK(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal) == kCaptureUnsupported);
    const Stream blocking(0);
    const Array<std::uint8_t> array(4);
    REQUIRE(hipStreamBeginCapture(blocking, hipStreamCaptureModeGlobal) == kSuccess);
    int status = 0;
    CHECK(hipStreamIsCapturing(nullptr, &status) == kCaptureImplicit);
    CHECK(status_of(blocking) == hipStreamCaptureStatusActive);  // asking breaks nothing
    CHECK(hipMemsetAsync(array.data, 0, 4, nullptr) == kCaptureImplicit);
    CHECK(end(blocking) == kCaptureInvalidated);
    CHECK(hipStreamBeginCapture(blocking, 3) == kInvalidValue);
    CHECK(end(blocking) == kIllegalState);
}

TEST_CASE("TwoCapturesDoNotMerge") {
    const Stream first, second;
    const Event event;
    REQUIRE(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal) == kSuccess);
    REQUIRE(hipStreamBeginCapture(second, hipStreamCaptureModeGlobal) == kSuccess);
    CHECK(hipStreamBeginCapture(second, hipStreamCaptureModeGlobal) == kIllegalState);
    CHECK(hipEventRecord(event, first) == kSuccess);
    CHECK(hipStreamWaitEvent(second, event, 0) == kCaptureMerge);
    CHECK(end(first) == kCaptureInvalidated);
    CHECK(end(second) == kCaptureInvalidated);
}

TEST_CASE("AReplayAfterAFreeIsAFault") {
    const Stream stream;
    void* pointer = nullptr;
    REQUIRE(hipMalloc(&pointer, 4096) == kSuccess);
    const auto graph = record(stream, [&] { CHECK(hipMemsetAsync(pointer, 1, 4096, stream) == kSuccess); });
    REQUIRE(hipFree(pointer) == kSuccess);
    CHECK(hipGraphLaunch(graph, stream) == kSuccess);
    CHECK(hipStreamSynchronize(stream) == kIllegalAddress);
    CHECK(hipGraphExecDestroy(graph) == kSuccess);
    CHECK(hipDeviceReset() == kSuccess);
    CHECK(hipStreamSynchronize(stream) == kSuccess);
}

TEST_CASE("AGraphInACaptureIsANode") {
    const Stream stream;
    const Array<std::uint8_t> array(4);
    const auto inner = record(stream, [&] { CHECK(hipMemsetAsync(array.data, 8, 4, stream) == kSuccess); });
    const auto outer = record(stream, [&] { CHECK(hipGraphLaunch(inner, stream) == kSuccess); });
    CHECK(array.read()[0] == 0);
    CHECK(hipGraphExecDestroy(inner) == kSuccess);
    CHECK(hipGraphLaunch(outer, stream) == kSuccess);
    CHECK(hipStreamSynchronize(stream) == kSuccess);
    CHECK(array.read()[0] == 8);
    CHECK(hipGraphExecDestroy(outer) == kSuccess);
}
