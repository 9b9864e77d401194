#include "gpu.hpp"

#include "gpu_backends.hpp"

namespace engine {

std::unique_ptr<Gpu> Gpu::open(int device, const std::string& target) {
    return target.starts_with("sm_") ? open_cuda(device) : open_hip(device);
}

}  // namespace engine
