#include "tests/engine/engine_cuda.hpp"

#include <cstdlib>
#include <mutex>

#include "tests/engine/engine.hpp"

namespace kiln::test::engine {

namespace {

constexpr int kMaxDevices = 64;

struct Bound {
    Library library{[] {
        const char* const named = std::getenv("KILN_CUDA_LIBRARY");
        return std::string(named != nullptr ? named : "libcuda.so.1");
    }()};
    std::string why;
    int num_devices = 0;

    Bound() {
        if (!library) {
            why = library.why();
        } else if (const int error = library.call("cuInit", 0U); error != 0) {
            why = "cuInit answered " + std::to_string(error);
        } else {
            library.require("cuDeviceGetCount", &num_devices);
            why = num_devices == 0 ? "the CUDA driver has no device" : "";
        }
    }
};

const Bound& bound() {
    static const Bound& instance = *new Bound;
    return instance;
}

// As the CUDA runtime has it: a thread that chose no context uses device 0's primary one.
int attach() {
    void* current = nullptr;
    const int error = cuda().call("cuCtxGetCurrent", &current);
    return error != 0 || current != nullptr ? error : cuda().call("cuCtxSetCurrent", primary_context(0));
}

const Library& attached() {
    if (const int error = attach(); error != 0) {
        Library::give_up("context", std::to_string(error).c_str());
    }
    return cuda();
}

using DevicePointer = unsigned long long;

DevicePointer device_pointer(const void* memory) {
    return reinterpret_cast<DevicePointer>(memory);
}

}  // namespace

const Library& cuda() {
    return bound().library;
}

void* primary_context(int ordinal) {
    static std::mutex mutex;
    static void* contexts[kMaxDevices] = {};
    const std::lock_guard lock(mutex);
    if (contexts[ordinal] == nullptr) {
        int handle = 0;
        cuda().require("cuDeviceGet", &handle, ordinal);
        cuda().require("cuDevicePrimaryCtxRetain", &contexts[ordinal], handle);
    }
    return contexts[ordinal];
}

void* load_function(const char* ptx, const char* name) {
    void* module = nullptr;
    void* function = nullptr;
    cuda().require("cuModuleLoadData", &module, static_cast<const void*>(ptx));
    cuda().require("cuModuleGetFunction", &function, module, name);
    return function;
}

const char* device() {
    return "cuda";
}

const char* target() {
    return "sm_90a";
}

const char* template_file() {
    return "linear/small_m.sm_90a.cu";
}

std::string constants(int, int variant) {
    return R"({"split_k": 1, "tiles_n": 1, "warp_tiles": 1, "warps_k": 1, "steps": )" +
           std::to_string(variant) + R"(, "stages": 1, "early_steps": 1})";
}

const char* variant_name() {
    return "steps";
}

int num_devices() {
    return bound().num_devices;
}

std::string why_none() {
    return bound().why;
}

void set_device(int ordinal) {
    cuda().require("cuCtxSetCurrent", primary_context(ordinal));
}

int current_device() {
    int ordinal = -1;
    cuda().require("cuCtxGetDevice", &ordinal);
    return ordinal;
}

int last_error() {
    return 0;
}

int synchronize() {
    const int error = attach();
    return error != 0 ? error : cuda().call("cuCtxSynchronize");
}

void* allocate(std::size_t bytes) {
    DevicePointer memory = 0;
    attached().require("cuMemAlloc_v2", &memory, bytes);
    return reinterpret_cast<void*>(memory);
}

void release(void* memory) {
    attached().require("cuMemFree_v2", device_pointer(memory));
}

void fill(void* memory, unsigned char value, std::size_t bytes) {
    attached().require("cuMemsetD8_v2", device_pointer(memory), value, bytes);
    cuda().require("cuCtxSynchronize");
}

void copy_in(void* memory, const void* source, std::size_t bytes) {
    attached().require("cuMemcpyHtoD_v2", device_pointer(memory), source, bytes);
    cuda().require("cuCtxSynchronize");
}

void copy_out(void* destination, const void* memory, std::size_t bytes) {
    attached().require("cuMemcpyDtoH_v2", destination, device_pointer(memory), bytes);
}

void* create_stream() {
    void* stream = nullptr;
    attached().require("cuStreamCreate", &stream, 1U);
    return stream;
}

void destroy_stream(void* stream) {
    attached().require("cuStreamDestroy_v2", stream);
}

int synchronize_stream(void* stream) {
    const int error = attach();
    return error != 0 ? error : cuda().call("cuStreamSynchronize", stream);
}

void begin_capture(void* stream, CaptureMode mode) {
    attached().require("cuStreamBeginCapture_v2", stream, static_cast<int>(mode));
}

void* end_capture(void* stream) {
    void* graph = nullptr;
    void* executable = nullptr;
    attached().require("cuStreamEndCapture", stream, &graph);
    cuda().require("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
    cuda().require("cuGraphDestroy", graph);
    return executable;
}

void replay(void* graph, void* stream) {
    attached().require("cuGraphLaunch", graph, stream);
}

void destroy_graph(void* graph) {
    attached().require("cuGraphExecDestroy", graph);
}

}  // namespace kiln::test::engine
