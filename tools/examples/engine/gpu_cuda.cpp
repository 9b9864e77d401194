// CUDA's driver interface, in the primary context of the device, as kiln works in it.
#include "driver.hpp"
#include "gpu_backends.hpp"

namespace engine {

namespace {

using DevicePointer = unsigned long long;

DevicePointer device_pointer(const void* memory) {
    return reinterpret_cast<DevicePointer>(memory);
}

class Cuda final : public Gpu {
  public:
    explicit Cuda(int ordinal) {
        int device = 0;
        void* context = nullptr;
        cuda_.require("cuInit", 0U);
        cuda_.require("cuDeviceGet", &device, ordinal);
        cuda_.require("cuDevicePrimaryCtxRetain", &context, device);
        cuda_.require("cuCtxSetCurrent", context);
    }

    void* allocate(std::size_t bytes) override {
        DevicePointer memory = 0;
        cuda_.require("cuMemAlloc_v2", &memory, bytes);
        return reinterpret_cast<void*>(memory);
    }
    void release(void* memory) noexcept override { cuda_.call("cuMemFree_v2", device_pointer(memory)); }
    void copy_in(void* to, const void* from, std::size_t bytes) override {
        cuda_.require("cuMemcpyHtoD_v2", device_pointer(to), from, bytes);
        cuda_.require("cuCtxSynchronize");
    }
    void copy_out(void* to, const void* from, std::size_t bytes) override {
        cuda_.require("cuMemcpyDtoH_v2", to, device_pointer(from), bytes);
    }

    Stream create_stream() override {
        Stream stream = nullptr;
        cuda_.require("cuStreamCreate", &stream, kNonBlocking);
        return stream;
    }
    void synchronise(Stream stream) override { cuda_.require("cuStreamSynchronize", stream); }

    void begin_capture(Stream stream) override {
        cuda_.require("cuStreamBeginCapture_v2", stream, kCaptureThreadLocal);
    }
    Graph end_capture(Stream stream) override {
        void* recorded = nullptr;
        Graph graph = nullptr;
        cuda_.require("cuStreamEndCapture", stream, &recorded);
        cuda_.require("cuGraphInstantiateWithFlags", &graph, recorded, 0ULL);
        cuda_.require("cuGraphDestroy", recorded);
        return graph;
    }
    void replay(Graph graph, Stream stream) override { cuda_.require("cuGraphLaunch", graph, stream); }
    void destroy(Graph graph) noexcept override { cuda_.call("cuGraphExecDestroy", graph); }

    Function load(const std::vector<char>& code_object, const char* kernel) override {
        void* module = nullptr;
        Function function = nullptr;
        cuda_.require("cuModuleLoadData", &module, static_cast<const void*>(code_object.data()));
        cuda_.require("cuModuleGetFunction", &function, module, kernel);
        return function;
    }
    void launch(Function function, Grid grid, unsigned threads, Stream stream, void** arguments) override {
        cuda_.require("cuLaunchKernel", function, grid.x, grid.y, 1U, threads, 1U, 1U, 0U, stream, arguments,
                      static_cast<void**>(nullptr));
    }

  private:
    Driver cuda_{"libcuda.so.1"};
};

}  // namespace

std::unique_ptr<Gpu> open_cuda(int device) {
    return std::make_unique<Cuda>(device);
}

}  // namespace engine
