// The calls of the CUDA driver that the benchmark makes, bound when it starts: it is built where there is no
// CUDA, and uses the GPU as an engine would, beside kiln and not through it. A call that fails throws, with
// its name and the driver's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::bench::cuda {

using Address = unsigned long long;  // CUdeviceptr
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Graph = struct GraphTag*;
using GraphNode = struct GraphNodeTag*;
using GraphExec = struct GraphExecTag*;

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
    Function function;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void** arguments;
    void** extra;
    void* kernel;
    Context context;
};

// Symbol and parameters of each call; all return a CUresult.
#define KILN_BENCH_CUDA_CALLS(X)                                                                       \
    X(cuInit, (unsigned))                                                                              \
    X(cuDriverGetVersion, (int*))                                                                      \
    X(cuDeviceGet, (int*, int))                                                                        \
    X(cuDeviceGetName, (char*, int, int))                                                              \
    X(cuDeviceGetAttribute, (int*, int, int))                                                          \
    X(cuDevicePrimaryCtxRetain, (Context*, int))                                                       \
    X(cuCtxSetCurrent, (Context))                                                                      \
    X(cuMemAlloc_v2, (Address*, std::size_t))                                                          \
    X(cuMemFree_v2, (Address))                                                                         \
    X(cuMemcpyHtoD_v2, (Address, const void*, std::size_t))                                            \
    X(cuMemcpyDtoH_v2, (void*, Address, std::size_t))                                                  \
    X(cuMemcpyDtoD_v2, (Address, Address, std::size_t))                                                \
    X(cuMemsetD8_v2, (Address, unsigned char, std::size_t))                                            \
    X(cuStreamCreate, (Stream*, unsigned))                                                             \
    X(cuStreamSynchronize, (Stream))                                                                   \
    X(cuStreamBeginCapture_v2, (Stream, int))                                                          \
    X(cuStreamEndCapture, (Stream, Graph*))                                                            \
    X(cuGraphGetNodes, (Graph, GraphNode*, std::size_t*))                                              \
    X(cuGraphKernelNodeGetParams_v2, (GraphNode, KernelNode*))                                         \
    X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                            \
    X(cuGraphLaunch, (GraphExec, Stream))                                                              \
    X(cuGraphDestroy, (Graph))                                                                         \
    X(cuGraphExecDestroy, (GraphExec))                                                                 \
    X(cuEventCreate, (Event*, unsigned))                                                               \
    X(cuEventRecord, (Event, Stream))                                                                  \
    X(cuEventSynchronize, (Event))                                                                     \
    X(cuEventElapsedTime, (float*, Event, Event))                                                      \
    X(cuModuleLoadData, (Module*, const void*))                                                        \
    X(cuModuleGetFunction, (Function*, Module, const char*))                                           \
    X(cuFuncSetAttribute, (Function, int, int))                                                        \
    X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       Stream, void**, void**))                                                        \
    X(cuGetErrorName, (int, const char**))

struct Calls {
#define X(name, parameters) int(*name) parameters = nullptr;
    KILN_BENCH_CUDA_CALLS(X)
#undef X
};

// Device 0, its primary context current on the calling thread, and a stream. One for the process, for ever.
class Gpu {
  public:
    // Throws std::runtime_error where there is none.
    static Gpu& instance();

    const Calls& calls() const { return calls_; }
    Stream stream() const { return stream_; }
    const std::string& name() const { return name_; }
    int driver_version() const { return driver_version_; }
    int num_multiprocessors() const { return attribute(16); }
    std::size_t l2_bytes() const { return static_cast<std::size_t>(attribute(38)); }
    std::string processor() const;  // "sm_90"

    // Throws unless `result` is success; `what` is the call.
    void check(int result, const char* what) const;
    void synchronise() const;

  private:
    Gpu();
    int attribute(int which) const;

    Calls calls_;
    int device_ = 0;
    Context context_ = nullptr;
    Stream stream_ = nullptr;
    std::string name_;
    int driver_version_ = 0;
};

// Device memory; freed with the object.
class Memory {
  public:
    Memory() = default;
    explicit Memory(std::size_t bytes);
    Memory(Memory&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
    Memory& operator=(Memory other) noexcept {
        std::swap(address_, other.address_);
        return *this;
    }
    ~Memory();
    Address address() const { return address_; }

  private:
    Address address_ = 0;
};

// What `enqueue` put on the GPU's stream, captured.
class CapturedGraph {
  public:
    template <class Enqueue>
    static CapturedGraph of(Enqueue enqueue) {
        begin();
        try {
            enqueue();
        } catch (...) {
            abandon();
            throw;
        }
        return CapturedGraph(end());
    }
    CapturedGraph(CapturedGraph&& other) noexcept
        : graph_(std::exchange(other.graph_, nullptr)),
          executable_(std::exchange(other.executable_, nullptr)) {}
    CapturedGraph& operator=(CapturedGraph other) noexcept {
        std::swap(graph_, other.graph_);
        std::swap(executable_, other.executable_);
        return *this;
    }
    ~CapturedGraph();

    // Replays the graph `samples` times after one replay that is not counted: milliseconds of each.
    std::vector<double> replay(int samples) const;
    // The kernels of the graph, in no order.
    std::vector<KernelNode> kernels() const;

  private:
    explicit CapturedGraph(Graph graph);
    static void begin();
    static Graph end();
    static void abandon();

    Graph graph_ = nullptr;
    GraphExec executable_ = nullptr;
};

// Compiles CUDA C++ for the GPU with the NVRTC of the machine, and loads it. For as long as the process.
Module load_source(const char* name, const char* source);

}  // namespace kiln::bench::cuda
