// The limit: how fast the GPU reads that many bytes and does nothing with them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/bench/gpu.d/driver.hpp"

namespace kiln::bench {

// One way to read: by the loads of many threads, or by the bulk copy engine into shared memory.
struct ReadShape {
    bool bulk = false;
    unsigned threads = 0;               // of a block; loads only
    unsigned blocks_per_processor = 0;  // 0: as many blocks as the bytes need, loads only
    unsigned in_flight = 0;             // 16-byte loads of a thread, or stages of a block
    unsigned stage_bytes = 0;           // bulk only

    std::string text() const;
};

// The shapes that are tried.
std::vector<ReadShape> read_shapes();

// The source of the kernels, for NVRTC.
const char* streaming_read_source();

class StreamingRead {
  public:
    StreamingRead();
    // Enqueues a read of `bytes` bytes at `data`, both multiples of 16, on the GPU's stream.
    void enqueue(const ReadShape& shape, cuda::Address data, std::size_t bytes) const;

  private:
    cuda::Module module_;
    cuda::Memory sink_;
    std::vector<cuda::Function> by_loads_;  // in the order of kInFlight
    cuda::Function by_bulk_ = nullptr;
};

}  // namespace kiln::bench
