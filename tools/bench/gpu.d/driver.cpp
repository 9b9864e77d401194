#include "tools/bench/gpu.d/driver.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace kiln::bench::cuda {

namespace {

void* open_library(const std::vector<std::string>& names) {
    std::string tried;
    for (const auto& name : names) {
        if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            return library;
        }
        tried += (tried.empty() ? "" : "; ") + std::string(::dlerror());
    }
    throw std::runtime_error("expected a library that loads, found none: " + tried);
}

template <class Call>
void bind(void* library, const char* name, Call& call) {
    void* const address = ::dlsym(library, name);
    if (address == nullptr) {
        throw std::runtime_error(std::string("the library has no ") + name);
    }
    call = reinterpret_cast<Call>(address);
}

const char* environment(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Gpu& Gpu::instance() {
    static Gpu gpu;
    return gpu;
}

Gpu::Gpu() {
    const char* const named = environment("KILN_CUDA_LIBRARY");
    void* const library = open_library({named != nullptr ? named : "libcuda.so.1"});
#define X(name, parameters) bind(library, #name, calls_.name);
    KILN_BENCH_CUDA_CALLS(X)
#undef X
    check(calls_.cuInit(0), "cuInit");
    check(calls_.cuDriverGetVersion(&driver_version_), "cuDriverGetVersion");
    check(calls_.cuDeviceGet(&device_, 0), "cuDeviceGet");
    std::array<char, 128> text{};
    check(calls_.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device_), "cuDeviceGetName");
    name_ = text.data();
    check(calls_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    check(calls_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    constexpr unsigned kNonBlocking = 1;
    check(calls_.cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate");
}

int Gpu::attribute(int which) const {
    int value = 0;
    check(calls_.cuDeviceGetAttribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
}

std::string Gpu::processor() const {
    return "sm_" + std::to_string(attribute(75)) + std::to_string(attribute(76));
}

void Gpu::check(int result, const char* what) const {
    if (result == 0) {
        return;
    }
    const char* text = nullptr;
    if (calls_.cuGetErrorName(result, &text) != 0 || text == nullptr) {
        text = "unknown error";
    }
    throw std::runtime_error(std::string(what) + ": " + text + " (" + std::to_string(result) + ")");
}

void Gpu::synchronise() const {
    check(calls_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

Memory::Memory(std::size_t bytes) {
    const Gpu& gpu = Gpu::instance();
    gpu.check(gpu.calls().cuMemAlloc_v2(&address_, bytes), "cuMemAlloc");
}

Memory::~Memory() {
    if (address_ != 0) {
        Gpu::instance().calls().cuMemFree_v2(address_);
    }
}

void CapturedGraph::begin() {
    const Gpu& gpu = Gpu::instance();
    constexpr int kThreadLocal = 1;
    gpu.check(gpu.calls().cuStreamBeginCapture_v2(gpu.stream(), kThreadLocal), "cuStreamBeginCapture");
}

Graph CapturedGraph::end() {
    const Gpu& gpu = Gpu::instance();
    Graph graph = nullptr;
    gpu.check(gpu.calls().cuStreamEndCapture(gpu.stream(), &graph), "cuStreamEndCapture");
    return graph;
}

void CapturedGraph::abandon() {
    const Gpu& gpu = Gpu::instance();
    Graph graph = nullptr;
    if (gpu.calls().cuStreamEndCapture(gpu.stream(), &graph) == 0 && graph != nullptr) {
        gpu.calls().cuGraphDestroy(graph);
    }
}

CapturedGraph::CapturedGraph(Graph graph) : graph_(graph) {
    const Gpu& gpu = Gpu::instance();
    gpu.check(gpu.calls().cuGraphInstantiateWithFlags(&executable_, graph_, 0), "cuGraphInstantiate");
}

CapturedGraph::~CapturedGraph() {
    const Gpu& gpu = Gpu::instance();
    if (executable_ != nullptr) {
        gpu.calls().cuGraphExecDestroy(executable_);
    }
    if (graph_ != nullptr) {
        gpu.calls().cuGraphDestroy(graph_);
    }
}

std::vector<double> CapturedGraph::replay(int samples) const {
    const Gpu& gpu = Gpu::instance();
    const Calls& calls = gpu.calls();
    static const std::array<Event, 2> events = [&] {
        std::array<Event, 2> made{};
        for (Event& event : made) {
            gpu.check(calls.cuEventCreate(&event, 0), "cuEventCreate");
        }
        return made;
    }();
    gpu.check(calls.cuGraphLaunch(executable_, gpu.stream()), "cuGraphLaunch");
    std::vector<double> times;
    for (int sample = 0; sample < samples; ++sample) {
        gpu.check(calls.cuEventRecord(events[0], gpu.stream()), "cuEventRecord");
        gpu.check(calls.cuGraphLaunch(executable_, gpu.stream()), "cuGraphLaunch");
        gpu.check(calls.cuEventRecord(events[1], gpu.stream()), "cuEventRecord");
        gpu.check(calls.cuEventSynchronize(events[1]), "cuEventSynchronize");
        float milliseconds = 0;
        gpu.check(calls.cuEventElapsedTime(&milliseconds, events[0], events[1]), "cuEventElapsedTime");
        times.push_back(milliseconds);
    }
    gpu.synchronise();
    return times;
}

std::vector<KernelNode> CapturedGraph::kernels() const {
    const Gpu& gpu = Gpu::instance();
    std::size_t count = 0;
    gpu.check(gpu.calls().cuGraphGetNodes(graph_, nullptr, &count), "cuGraphGetNodes");
    std::vector<GraphNode> nodes(count);
    gpu.check(gpu.calls().cuGraphGetNodes(graph_, nodes.data(), &count), "cuGraphGetNodes");
    std::vector<KernelNode> kernels(count);
    for (std::size_t i = 0; i < count; ++i) {
        gpu.check(gpu.calls().cuGraphKernelNodeGetParams_v2(nodes[i], &kernels[i]),
                  "cuGraphKernelNodeGetParams");
    }
    return kernels;
}

namespace {

// nvrtc.h, as far as it goes here.
struct Nvrtc {
    using Program = struct ProgramTag*;
    int (*nvrtcCreateProgram)(Program*, const char*, const char*, int, const char* const*,
                              const char* const*) = nullptr;
    int (*nvrtcCompileProgram)(Program, int, const char* const*) = nullptr;
    int (*nvrtcGetProgramLogSize)(Program, std::size_t*) = nullptr;
    int (*nvrtcGetProgramLog)(Program, char*) = nullptr;
    int (*nvrtcGetCUBINSize)(Program, std::size_t*) = nullptr;
    int (*nvrtcGetCUBIN)(Program, char*) = nullptr;

    Nvrtc() {
        std::vector<std::string> names;
        if (const char* const prefix = environment("KILN_CUDA_PREFIX")) {
            names.push_back(std::string(prefix) + "/lib64/libnvrtc.so");
        }
        for (const char* name :
             {"/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
            names.emplace_back(name);
        }
        void* const library = open_library(names);
        bind(library, "nvrtcCreateProgram", nvrtcCreateProgram);
        bind(library, "nvrtcCompileProgram", nvrtcCompileProgram);
        bind(library, "nvrtcGetProgramLogSize", nvrtcGetProgramLogSize);
        bind(library, "nvrtcGetProgramLog", nvrtcGetProgramLog);
        bind(library, "nvrtcGetCUBINSize", nvrtcGetCUBINSize);
        bind(library, "nvrtcGetCUBIN", nvrtcGetCUBIN);
    }
};

}  // namespace

std::vector<char> compile_source(const char* name, const char* source, const std::string& processor) {
    const Nvrtc nvrtc;
    Nvrtc::Program program = nullptr;
    const auto check = [](int result, const char* what) {
        if (result != 0) {
            throw std::runtime_error(std::string(what) + ": NVRTC error " + std::to_string(result));
        }
    };
    check(nvrtc.nvrtcCreateProgram(&program, source, name, 0, nullptr, nullptr), "nvrtcCreateProgram");
    const std::string architecture = "--gpu-architecture=" + processor;
    const std::array<const char*, 2> options = {architecture.c_str(), "--std=c++17"};
    if (nvrtc.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()) != 0) {
        std::size_t size = 0;
        check(nvrtc.nvrtcGetProgramLogSize(program, &size), "nvrtcGetProgramLogSize");
        std::string log(size, '\0');
        check(nvrtc.nvrtcGetProgramLog(program, log.data()), "nvrtcGetProgramLog");
        throw std::runtime_error(std::string(name) + " does not compile: " + log);
    }
    std::size_t size = 0;
    check(nvrtc.nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
    std::vector<char> cubin(size);
    check(nvrtc.nvrtcGetCUBIN(program, cubin.data()), "nvrtcGetCUBIN");
    return cubin;
}

Module load_source(const char* name, const char* source) {
    const Gpu& gpu = Gpu::instance();
    const auto cubin = compile_source(name, source, gpu.processor());
    Module module = nullptr;
    gpu.check(gpu.calls().cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData");
    return module;
}

}  // namespace kiln::bench::cuda
