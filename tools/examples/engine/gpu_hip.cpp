// HIP, AMD's or the simulator's.
#include "driver.hpp"
#include "gpu_backends.hpp"

namespace engine {

namespace {

enum CopyKind { kToDevice = 1, kToHost = 2 };

class Hip final : public Gpu {
  public:
    explicit Hip(int device) : device_(device) { hip_.require("hipSetDevice", device); }

    void* allocate(std::size_t bytes) override {
        void* memory = nullptr;
        hip_.require("hipMalloc", &memory, bytes);
        return memory;
    }
    void release(void* memory) noexcept override { hip_.call("hipFree", memory); }
    void copy_in(void* to, const void* from, std::size_t bytes) override {
        hip_.require("hipMemcpy", to, from, bytes, static_cast<int>(kToDevice));
    }
    void copy_out(void* to, const void* from, std::size_t bytes) override {
        hip_.require("hipMemcpy", to, from, bytes, static_cast<int>(kToHost));
    }

    Stream create_stream() override {
        Stream stream = nullptr;
        hip_.require("hipStreamCreateWithFlags", &stream, kNonBlocking);
        return stream;
    }
    void synchronise(Stream stream) override {
        if (const int error = hip_.call("hipStreamSynchronize", stream); error != 0) {
            throw Error("hipStreamSynchronize: the driver's error " + std::to_string(error) +
                        simulator_fault());
        }
    }

    void begin_capture(Stream stream) override {
        hip_.require("hipStreamBeginCapture", stream, kCaptureThreadLocal);
    }
    Graph end_capture(Stream stream) override {
        void* recorded = nullptr;
        Graph graph = nullptr;
        hip_.require("hipStreamEndCapture", stream, &recorded);
        hip_.require("hipGraphInstantiate", &graph, recorded, static_cast<void*>(nullptr),
                     static_cast<char*>(nullptr), std::size_t{0});
        hip_.require("hipGraphDestroy", recorded);
        return graph;
    }
    void replay(Graph graph, Stream stream) override { hip_.require("hipGraphLaunch", graph, stream); }
    void destroy(Graph graph) noexcept override { hip_.call("hipGraphExecDestroy", graph); }

    Function load(const std::vector<char>& code_object, const char* kernel) override {
        void* module = nullptr;
        Function function = nullptr;
        hip_.require("hipModuleLoadData", &module, static_cast<const void*>(code_object.data()));
        hip_.require("hipModuleGetFunction", &function, module, kernel);
        return function;
    }
    void launch(Function function, Grid grid, unsigned threads, Stream stream, void** arguments) override {
        hip_.require("hipModuleLaunchKernel", function, grid.x, grid.y, 1U, threads, 1U, 1U, 0U, stream,
                     arguments, static_cast<void**>(nullptr));
    }

  private:
    // Which rule a kernel broke, in the simulator's words; nothing on a GPU.
    [[nodiscard]] std::string simulator_fault() const {
        auto* const last_fault = hip_.find<const char*(int)>("kiln_sim_last_fault");
        return last_fault != nullptr ? std::string(": ") + last_fault(device_) : std::string();
    }

    Driver hip_{"libamdhip64.so.7"};
    int device_;
};

}  // namespace

std::unique_ptr<Gpu> open_hip(int device) {
    return std::make_unique<Hip>(device);
}

}  // namespace engine
