// What the tests of the look-alike share: real code objects from the real compiler, and a gate that holds a
// stream.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tests/lookalike/hip_plain.h"

namespace kiln::test {

// HIP's values that the tests expect.
enum : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kInvalidConfiguration = 9,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kNoBinaryForGpu = 209,
    kFileNotFound = 301,
    kInvalidHandle = 400,
    kIllegalState = 401,
    kNotFound = 500,
    kNotReady = 600,
    kIllegalAddress = 700,
    kContextIsDestroyed = 709,
    kLaunchFailure = 719,
    kCaptureUnsupported = 900,
    kCaptureInvalidated = 901,
    kCaptureMerge = 902,
    kCaptureUnmatched = 903,
    kCaptureUnjoined = 904,
    kCaptureIsolation = 905,
    kCaptureImplicit = 906,
    kCapturedEvent = 907,
    kCaptureWrongThread = 908,
};

// The kernels of kernels.cpp for one target, compiled once a process.
const Bytes& code_object(const std::string& target = "gfx950");

struct Module {
    explicit Module(const Bytes& image) { REQUIRE(hipModuleLoadData(&handle, image.data()) == kSuccess); }
    Module() : Module(code_object()) {}
    ~Module() { hipModuleUnload(handle); }
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    hipFunction_t operator()(const char* name) const {
        hipFunction_t function = nullptr;
        REQUIRE(hipModuleGetFunction(&function, handle, name) == kSuccess);
        return function;
    }
    hipModule_t handle = nullptr;
};

struct Stream {
    explicit Stream(unsigned flags = hipStreamNonBlocking) {
        REQUIRE(hipStreamCreateWithFlags(&handle, flags) == kSuccess);
    }
    ~Stream() { hipStreamDestroy(handle); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    operator hipStream_t() const { return handle; }
    hipStream_t handle = nullptr;
};

struct Event {
    explicit Event(unsigned flags = 0) { REQUIRE(hipEventCreateWithFlags(&handle, flags) == kSuccess); }
    ~Event() { hipEventDestroy(handle); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator hipEvent_t() const { return handle; }
    hipEvent_t handle = nullptr;
};

// An array on the current device.
template <class T>
struct Array {
    explicit Array(std::size_t size, int byte = 0) : count(size) {
        REQUIRE(hipMalloc(reinterpret_cast<void**>(&data), size * sizeof(T)) == kSuccess);
        REQUIRE(hipMemset(data, byte, size * sizeof(T)) == kSuccess);
    }
    ~Array() { hipFree(data); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    [[nodiscard]] std::vector<T> read() const {
        std::vector<T> values(count);
        REQUIRE(hipMemcpy(values.data(), data, count * sizeof(T), hipMemcpyDeviceToHost) == kSuccess);
        return values;
    }
    T* data = nullptr;
    std::size_t count;
};

// Work on a stream that does not end before open().
class Gate {
  public:
    explicit Gate(hipStream_t stream) {
        REQUIRE(hipLaunchHostFunc(
                    stream, [](void* self) { static_cast<Gate*>(self)->wait(); }, this) == kSuccess);
    }
    ~Gate() {
        open();
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return passed_; });
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    void open() {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

  private:
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return open_; });
        passed_ = true;
        changed_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;    // protected by mutex_
    bool passed_ = false;  // protected by mutex_
};

// Launches with HIP's array of pointers, in blocks of 64.
template <class... Arguments>
int launch(hipFunction_t function, unsigned items, hipStream_t stream, Arguments... arguments) {
    void* pointers[] = {&arguments...};
    return hipModuleLaunchKernel(function, (items + 63) / 64, 1, 1, 64, 1, 1, 0, stream, pointers, nullptr);
}

// Records what `body` does on `stream`, and makes it executable.
template <class Body>
hipGraphExec_t record(hipStream_t stream, Body&& body) {
    REQUIRE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal) == kSuccess);
    body();
    hipGraph_t graph = nullptr;
    REQUIRE(hipStreamEndCapture(stream, &graph) == kSuccess);
    hipGraphExec_t executable = nullptr;
    REQUIRE(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0) == kSuccess);
    REQUIRE(hipGraphDestroy(graph) == kSuccess);
    return executable;
}

}  // namespace kiln::test
