// What Gpu::open() chooses from.
#pragma once

#include <memory>

#include "gpu.hpp"

namespace engine {

std::unique_ptr<Gpu> open_hip(int device);
std::unique_ptr<Gpu> open_cuda(int device);

}  // namespace engine
