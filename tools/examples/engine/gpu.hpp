// The GPU as the engine uses it itself: memory, a stream, graphs, kernels of its own from a file.
//
// Entry points are looked up by name in the copy of the driver that kiln bound, so one program runs on AMD's
// HIP, on kiln's simulator of it and on CUDA. An engine that links its vendor's runtime needs none of this:
// kiln then binds the copy that the engine brought.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace engine {

// Whatever the engine can not go on from.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Stream = void*;  // hipStream_t, CUstream: what kiln's launches take too
using Graph = void*;   // executable
using Function = void*;

struct Grid {
    unsigned x = 1, y = 1;
};

// One device. Every call throws an Error where the driver refuses.
class Gpu {
  public:
    // The device of that number, as kiln_device_info names its target: HIP for "gfx...", CUDA for "sm_...".
    // kiln has bound the driver before.
    static std::unique_ptr<Gpu> open(int device, const std::string& target);

    Gpu() = default;
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    virtual ~Gpu() = default;

    virtual void* allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    // Complete when they return.
    virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
    virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;

    virtual Stream create_stream() = 0;
    virtual void synchronise(Stream stream) = 0;

    // What is enqueued on the stream in between becomes the graph and does not run.
    virtual void begin_capture(Stream stream) = 0;
    virtual Graph end_capture(Stream stream) = 0;
    virtual void replay(Graph graph, Stream stream) = 0;
    virtual void destroy(Graph graph) noexcept = 0;

    // A kernel of a code object that was built for this device; it stays loaded.
    virtual Function load(const std::vector<char>& code_object, const char* kernel) = 0;
    // `arguments` are pointers to the kernel's arguments, in their order.
    virtual void launch(Function function, Grid grid, unsigned threads, Stream stream, void** arguments) = 0;
};

// Memory of the device, given back with the object.
class Buffer {
  public:
    Buffer(Gpu& gpu, std::size_t bytes) : gpu_(&gpu), memory_(gpu.allocate(bytes), Release{&gpu}) {}

    template <class T>
    static Buffer of(Gpu& gpu, const std::vector<T>& values) {
        Buffer buffer(gpu, values.size() * sizeof(T));
        gpu.copy_in(buffer.memory_.get(), values.data(), values.size() * sizeof(T));
        return buffer;
    }
    template <class T>
    [[nodiscard]] T* as() const {
        return static_cast<T*>(memory_.get());
    }
    template <class T>
    [[nodiscard]] std::vector<T> read(std::size_t count) const {
        std::vector<T> values(count);
        gpu_->copy_out(values.data(), memory_.get(), count * sizeof(T));
        return values;
    }
    template <class T>
    void write(const std::vector<T>& values) const {
        gpu_->copy_in(memory_.get(), values.data(), values.size() * sizeof(T));
    }

  private:
    struct Release {
        Gpu* gpu;
        void operator()(void* memory) const { gpu->release(memory); }
    };
    Gpu* gpu_;
    std::unique_ptr<void, Release> memory_;
};

}  // namespace engine
