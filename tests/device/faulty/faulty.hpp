// The test's side of faulty_hip and faulty_cuda: its controls, and the state of the thread and of the driver
// to compare.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/device/faulty/faulty.h"

namespace kiln::test {

#ifdef KILN_TEST_CUDA
inline constexpr const char* kFaultyLibrary = KILN_TEST_FAULTY_CUDA;
#else
inline constexpr const char* kFaultyLibrary = KILN_TEST_FAULTY;
#endif

class Faulty {
  public:
    Faulty() : library_(dlopen(kFaultyLibrary, RTLD_NOW | RTLD_LOCAL)) {
        REQUIRE_MESSAGE(library_ != nullptr, dlerror());
    }
    template <class Function>
    [[nodiscard]] Function* entry(const char* name) const {
        void* const symbol = dlsym(library_, name);
        REQUIRE_MESSAGE(symbol != nullptr, name);
        return reinterpret_cast<Function*>(symbol);
    }
    void arm(const std::string& name, int nth, int times, int error) const {
        entry<decltype(faulty_arm)>("faulty_arm")(name.c_str(), nth, times, error);
    }
    void fail_when_done(bool done) const {
        entry<decltype(faulty_fail_when_done)>("faulty_fail_when_done")(done ? 1 : 0);
    }
    void disarm() const { entry<decltype(faulty_arm)>("faulty_arm")(nullptr, 0, 0, 0); }
    [[nodiscard]] int calls(const std::string& name) const {
        return entry<decltype(faulty_calls)>("faulty_calls")(name.c_str());
    }
    [[nodiscard]] int injected() const { return entry<decltype(faulty_injected)>("faulty_injected")(); }

    // What a call of kiln must leave as it found it.
    struct State {
        int last_error, capture_mode, device;
        friend bool operator==(const State&, const State&) = default;
        friend std::ostream& operator<<(std::ostream& out, const State& state) {
            return out << "last error " << state.last_error << ", capture mode " << state.capture_mode
                       << ", device " << state.device;
        }
    };
    [[nodiscard]] State state() const {
        return {entry<int()>("faulty_last_error")(), entry<int()>("faulty_capture_mode")(),
                entry<int()>("faulty_current_device")()};
    }
    void set_current_device(int device) const {
        entry<decltype(faulty_set_current_device)>("faulty_set_current_device")(device);
    }
    // Everything made and not destroyed.
    [[nodiscard]] int live() const {
        faulty_live live{};
        entry<decltype(faulty_count_live)>("faulty_count_live")(&live);
        return live.modules + live.allocations + live.streams + live.events + live.graphs + live.executables;
    }

  private:
    void* library_;
};

// Every entry point that kiln binds and that can fail.
inline const std::vector<std::string>& entry_points() {
#ifdef KILN_TEST_CUDA
    static const std::vector<std::string> names = {"cuInit",
                                                   "cuDeviceGetCount",
                                                   "cuDeviceGet",
                                                   "cuDeviceGetName",
                                                   "cuDeviceGetAttribute",
                                                   "cuDeviceTotalMem_v2",
                                                   "cuDevicePrimaryCtxRetain",
                                                   "cuCtxGetCurrent",
                                                   "cuCtxSetCurrent",
                                                   "cuCtxGetDevice",
                                                   "cuModuleLoadData",
                                                   "cuModuleUnload",
                                                   "cuModuleGetFunction",
                                                   "cuFuncGetAttribute",
                                                   "cuFuncSetAttribute",
                                                   "cuLaunchKernel",
                                                   "cuGetErrorName",
                                                   "cuGetErrorString",
                                                   "cuFuncLoad",
                                                   "cuThreadExchangeStreamCaptureMode",
                                                   "cuMemAlloc_v2",
                                                   "cuMemFree_v2",
                                                   "cuMemcpyHtoDAsync_v2",
                                                   "cuMemcpyDtoHAsync_v2",
                                                   "cuMemsetD8Async",
                                                   "cuStreamCreate",
                                                   "cuStreamDestroy_v2",
                                                   "cuStreamSynchronize",
                                                   "cuStreamIsCapturing",
                                                   "cuStreamBeginCapture_v2",
                                                   "cuStreamEndCapture",
                                                   "cuEventCreate",
                                                   "cuEventDestroy_v2",
                                                   "cuEventRecord",
                                                   "cuEventElapsedTime",
                                                   "cuGraphInstantiateWithFlags",
                                                   "cuGraphLaunch",
                                                   "cuGraphDestroy",
                                                   "cuGraphExecDestroy"};
#else
    static const std::vector<std::string> names = {"hipGetDeviceCount",
                                                   "hipGetDevice",
                                                   "hipSetDevice",
                                                   "hipGetDevicePropertiesR0600",
                                                   "hipModuleLoadData",
                                                   "hipModuleUnload",
                                                   "hipModuleGetFunction",
                                                   "hipModuleLaunchKernel",
                                                   "hipGetErrorName",
                                                   "hipGetErrorString",
                                                   "hipFuncGetAttribute",
                                                   "hipThreadExchangeStreamCaptureMode",
                                                   "hipMalloc",
                                                   "hipFree",
                                                   "hipMemcpyAsync",
                                                   "hipMemsetAsync",
                                                   "hipStreamCreateWithFlags",
                                                   "hipStreamDestroy",
                                                   "hipStreamSynchronize",
                                                   "hipStreamIsCapturing",
                                                   "hipStreamBeginCapture",
                                                   "hipStreamEndCapture",
                                                   "hipEventCreateWithFlags",
                                                   "hipEventDestroy",
                                                   "hipEventRecord",
                                                   "hipEventElapsedTime",
                                                   "hipGraphInstantiateWithFlags",
                                                   "hipGraphLaunch",
                                                   "hipGraphDestroy",
                                                   "hipGraphExecDestroy",
                                                   "kiln_sim_take_counts"};
#endif
    return names;
}

// What a driver might answer. All of them where KILN_TEST_ALL_ERRORS is set: `tools/test --full`.
inline const std::vector<int>& errors() {
    static const std::vector<int> values =
        std::getenv("KILN_TEST_ALL_ERRORS") != nullptr
            ? std::vector<int>{1,   2,   3,   9,   17,  98,  100, 101, 200, 201, 209, 214, 301, 303, 400, 401,
                               500, 600, 700, 701, 702, 709, 710, 719, 801, 900, 901, 905, 906, 907, 908, 999}
            : std::vector<int>{2, 209, 500, 700, 900};
    return values;
}

// As messages show an error's value.
inline std::string number(int error) {
    return fmt::format("({})", error);
}

}  // namespace kiln::test
