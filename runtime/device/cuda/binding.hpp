// CUDA as a driver family: the rules are those of driver/binding.hpp; by rule 3 libcuda.so.1 is loaded, which
// NVIDIA's driver installs where the loader looks.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "runtime/device/cuda/api.hpp"
#include "runtime/device/driver/binding.hpp"

namespace kiln::device::cuda {

class Library final : public driver::Library {
  public:
    Library(const Api& entry_points, int count);

    const Api api;

    // The primary context of a device, which every user of the CUDA runtime in this process shares: its
    // streams and memory are ours too. Retained at its first use, since to make one takes time and memory of
    // the GPU, and for the life of the process: what the program makes in it may outlive whatever kiln holds.
    // Thread safe.
    [[nodiscard]] CUresult primary_context(int ordinal, CUcontext* context) const;
    // Null before that.
    [[nodiscard]] CUcontext known_context(int ordinal) const {
        return contexts_[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire);
    }

  private:
    const std::unique_ptr<std::atomic<CUcontext>[]> contexts_;  // by ordinal; null until the first use
};

[[nodiscard]] const driver::Family& family();

}  // namespace kiln::device::cuda
