// Launching a kernel: both ways to pass arguments.
#include <cstring>

#include <fmt/format.h>

#include "runtime/sim/hip/entry.hpp"
#include "runtime/sim/hip/module.hpp"

using namespace kiln::sim::hip;

namespace {

using kiln::Bytes;
using kiln::device::Dim3;

// `params`: one pointer per argument that the program passes, in order.
hipError_t pack_pointers(const LoadedFunction& function, void** params, Bytes& kernargs) {
    kernargs.resize(function.explicit_bytes);
    std::size_t index = 0;
    for (const auto& argument : function.info.arguments) {
        if (argument.is_hidden()) {
            continue;
        }
        if (params[index] == nullptr) {
            return hipErrorInvalidValue;
        }
        std::memcpy(kernargs.data() + argument.offset, params[index++], argument.size);
    }
    return hipSuccess;
}

// `extra`: keys and values, ended by kLaunchParamEnd, that say where the packed block is.
hipError_t pack_buffer(const LoadedFunction& function, void** extra, Bytes& kernargs) {
    const void* block = nullptr;
    std::size_t bytes = 0;
    for (std::size_t i = 0;; i += 2) {
        const auto key = reinterpret_cast<std::uintptr_t>(extra[i]);
        if (key == kLaunchParamEnd) {
            break;
        }
        if (key == kLaunchParamBufferPointer) {
            block = extra[i + 1];
        } else if (key == kLaunchParamBufferSize && extra[i + 1] != nullptr) {
            bytes = *static_cast<const std::size_t*>(extra[i + 1]);
        } else {
            return hipErrorInvalidValue;
        }
    }
    if ((block == nullptr && bytes != 0) || bytes < function.explicit_bytes) {
        this_thread().detail =
            fmt::format("{} takes {} bytes of arguments, {} were passed", function.info.name,
                        function.explicit_bytes, block == nullptr ? 0 : bytes);
        return hipErrorInvalidValue;
    }
    const auto* const first = static_cast<const std::byte*>(block);
    kernargs.assign(first, first + function.explicit_bytes);
    return hipSuccess;
}

hipError_t check_shape(const LoadedFunction& function, const Dim3& grid, const Dim3& block,
                       std::size_t dynamic_bytes) {
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || std::uint64_t{grid.x} * grid.y * grid.z == 0 || threads > function.info.max_threads) {
        this_thread().detail = fmt::format(
            "{} takes 1 to {} work-items in a block; block {} {} {}, grid {} {} {}", function.info.name,
            function.info.max_threads, block.x, block.y, block.z, grid.x, grid.y, grid.z);
        return hipErrorInvalidConfiguration;
    }
    // A dispatch packet holds the work-items of each dimension in 32 bits.
    const auto fits = [](std::uint32_t blocks, std::uint32_t items) {
        return std::uint64_t{blocks} * items <= UINT32_MAX;
    };
    if (!fits(grid.x, block.x) || !fits(grid.y, block.y) || !fits(grid.z, block.z)) {
        return hipErrorInvalidConfiguration;
    }
    if (function.info.lds_bytes + dynamic_bytes > kiln::sim::kMaxLdsBytes) {
        return hipErrorOutOfMemory;
    }
    return hipSuccess;
}

hipError_t launch(Runtime& runtime, Stream& stream, hipFunction_t handle, const Dim3& grid, const Dim3& block,
                  std::size_t dynamic_bytes, void** params, void** extra) {
    const auto function = runtime.functions.find(handle);
    const auto module = function != nullptr ? function->module.lock() : nullptr;
    if (module == nullptr || function->device != &stream.device) {
        return hipErrorInvalidHandle;
    }
    if (const hipError_t error = check_shape(*function, grid, block, dynamic_bytes); error != hipSuccess) {
        return error;
    }
    RunKernel step{module, function->kernel, grid, block, static_cast<std::uint32_t>(dynamic_bytes), {}};
    hipError_t error = hipSuccess;
    if (params != nullptr && extra != nullptr) {
        error = hipErrorInvalidValue;
    } else if (extra != nullptr) {
        error = pack_buffer(*function, extra, step.kernargs);
    } else if (params != nullptr) {
        error = pack_pointers(*function, params, step.kernargs);
    } else if (function->explicit_bytes != 0) {
        error = hipErrorInvalidValue;
    }
    return error == hipSuccess ? runtime.enqueue(stream, std::move(step)) : error;
}

}  // namespace

KILN_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                             unsigned grid_z, unsigned block_x, unsigned block_y,
                                             unsigned block_z, unsigned dynamic_bytes, hipStream_t stream,
                                             void** params, void** extra) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return launch(runtime, found, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                      dynamic_bytes, params, extra);
    });
}

// Counts work-items where hipModuleLaunchKernel counts blocks, and records two events around the kernel.
KILN_EXPORT hipError_t hipExtModuleLaunchKernel(hipFunction_t function, std::uint32_t global_x,
                                                std::uint32_t global_y, std::uint32_t global_z,
                                                std::uint32_t block_x, std::uint32_t block_y,
                                                std::uint32_t block_z, std::size_t dynamic_bytes,
                                                hipStream_t stream, void** params, void** extra,
                                                hipEvent_t start, hipEvent_t stop, std::uint32_t) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        if (block_x == 0 || block_y == 0 || block_z == 0 || global_x % block_x != 0 ||
            global_y % block_y != 0 || global_z % block_z != 0) {
            return hipErrorInvalidConfiguration;
        }
        const auto record = [&](hipEvent_t handle) {
            const auto event = handle != nullptr ? runtime.events.find(handle) : nullptr;
            return event != nullptr    ? runtime.record(*event, found)
                   : handle == nullptr ? hipSuccess
                                       : hipErrorInvalidHandle;
        };
        hipError_t error = record(start);
        if (error == hipSuccess) {
            error =
                launch(runtime, found, function, {global_x / block_x, global_y / block_y, global_z / block_z},
                       {block_x, block_y, block_z}, dynamic_bytes, params, extra);
        }
        return error == hipSuccess ? record(stop) : error;
    });
}
