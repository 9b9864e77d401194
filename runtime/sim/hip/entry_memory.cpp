// Allocating, and what an address is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

namespace {

constexpr std::size_t kPage = 4096;

hipError_t allocate(Runtime& runtime, SimDevice& device, void** pointer, std::size_t bytes) {
    if (pointer == nullptr) {
        return hipErrorInvalidValue;
    }
    *pointer = nullptr;
    if (device.fault() != hipSuccess) {
        return device.fault();
    }
    if (bytes == 0) {
        return hipSuccess;
    }
    const auto memory = device.memory().allocate(bytes, kiln::sim::Memory::Contents::unwritten);
    if (!memory) {
        this_thread().detail = memory.error().message;
        return hipErrorOutOfMemory;
    }
    runtime.allocations.insert({.begin = reinterpret_cast<std::uintptr_t>(*memory),
                                .bytes = bytes,
                                .type = hipMemoryTypeDevice,
                                .device = device.ordinal(),
                                .memory = &device.memory()});
    *pointer = *memory;
    return hipSuccess;
}

// Memory of the host that every device may touch.
void admit(Runtime& runtime, void* pointer, const Allocation& allocation) {
    for (int ordinal = 0; ordinal < runtime.num_devices(); ++ordinal) {
        runtime.device(ordinal).memory().admit(pointer, allocation.bytes);
    }
    runtime.allocations.insert(allocation);
}

hipError_t allocate_host(Runtime& runtime, ThreadState& thread, void** pointer, std::size_t bytes,
                         hipMemoryType type, unsigned flags) {
    if (pointer == nullptr) {
        return hipErrorInvalidValue;
    }
    *pointer = nullptr;
    if (bytes == 0) {
        return hipSuccess;
    }
    if (bytes > SIZE_MAX - kPage) {
        return hipErrorOutOfMemory;
    }
    void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (memory == nullptr) {
        return hipErrorOutOfMemory;
    }
    admit(runtime, memory,
          {.begin = reinterpret_cast<std::uintptr_t>(memory),
           .bytes = bytes,
           .type = type,
           .device = thread.device,
           .flags = flags});
    *pointer = memory;
    return hipSuccess;
}

void wait_for_all(Runtime& runtime) {
    for (int ordinal = 0; ordinal < runtime.num_devices(); ++ordinal) {
        static_cast<void>(runtime.synchronize(runtime.device(ordinal)));
    }
}

// Host memory, after every device has done its work. `registered`: which of the two kinds may go this way.
hipError_t release_host(Runtime& runtime, void* pointer, bool registered) {
    const auto allocation = runtime.allocations.find(pointer);
    if (!allocation || allocation->begin != reinterpret_cast<std::uintptr_t>(pointer) ||
        allocation->type == hipMemoryTypeDevice || allocation->registered != registered) {
        return hipErrorInvalidValue;
    }
    wait_for_all(runtime);
    runtime.allocations.erase(pointer);
    for (int ordinal = 0; ordinal < runtime.num_devices(); ++ordinal) {
        runtime.device(ordinal).memory().withdraw(pointer);
    }
    if (!registered) {
        std::free(pointer);
    }
    return hipSuccess;
}

}  // namespace

KILN_EXPORT hipError_t hipMalloc(void** pointer, std::size_t bytes) {
    return enter_outside_capture(
        [&](ThreadState&, Runtime& runtime) { return allocate(runtime, runtime.current(), pointer, bytes); });
}

KILN_EXPORT hipError_t hipHostMalloc(void** pointer, std::size_t bytes, unsigned flags) {
    return enter_outside_capture([&](ThreadState& thread, Runtime& runtime) {
        return allocate_host(runtime, thread, pointer, bytes, hipMemoryTypeHost, flags);
    });
}

KILN_EXPORT hipError_t hipHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    return hipHostMalloc(pointer, bytes, flags);
}

KILN_EXPORT hipError_t hipMallocHost(void** pointer, std::size_t bytes) {
    return hipHostMalloc(pointer, bytes, 0);
}

KILN_EXPORT hipError_t hipMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
    return enter_outside_capture([&](ThreadState& thread, Runtime& runtime) {
        return allocate_host(runtime, thread, pointer, bytes, hipMemoryTypeManaged, flags);
    });
}

KILN_EXPORT hipError_t hipHostFree(void* pointer) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        return pointer == nullptr ? hipSuccess : release_host(runtime, pointer, false);
    });
}

KILN_EXPORT hipError_t hipFreeHost(void* pointer) {
    return hipHostFree(pointer);
}

KILN_EXPORT hipError_t hipFree(void* pointer) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) -> hipError_t {
        if (pointer == nullptr) {
            return hipSuccess;
        }
        const auto allocation = runtime.allocations.find(pointer);
        if (!allocation || allocation->begin != reinterpret_cast<std::uintptr_t>(pointer)) {
            return hipErrorInvalidValue;
        }
        if (allocation->type != hipMemoryTypeDevice) {
            return release_host(runtime, pointer, false);
        }
        SimDevice& device = runtime.device(allocation->device);
        const hipError_t fault = runtime.synchronize(device);
        // Erased first: once the memory is free, another thread may be given the same address.
        const auto erased = runtime.allocations.erase(pointer);
        if (!erased) {
            return hipErrorInvalidValue;
        }
        if (!device.memory().free(pointer)) {  // a module's image: not the program's to free
            runtime.allocations.insert(*erased);
            return hipErrorInvalidValue;
        }
        return fault;
    });
}

KILN_EXPORT hipError_t hipMallocAsync(void** pointer, std::size_t bytes, hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        hipStreamCaptureStatus status{};
        unsigned long long id = 0;
        const hipError_t error = runtime.capture_status(found, status, id);
        if (error != hipSuccess || status != hipStreamCaptureStatusNone) {
            return hipErrorStreamCaptureUnsupported;  // memory nodes are not simulated
        }
        return allocate(runtime, found.device, pointer, bytes);
    });
}

KILN_EXPORT hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        const auto allocation = runtime.allocations.find(pointer);
        if (!allocation || allocation->begin != reinterpret_cast<std::uintptr_t>(pointer) ||
            allocation->type != hipMemoryTypeDevice || allocation->device != found.device.ordinal()) {
            return hipErrorInvalidValue;
        }
        hipStreamCaptureStatus status{};
        unsigned long long id = 0;
        const hipError_t error = runtime.capture_status(found, status, id);
        if (error != hipSuccess || status != hipStreamCaptureStatusNone) {
            return hipErrorStreamCaptureUnsupported;
        }
        return runtime.enqueue(found, FreeMemory{pointer});
    });
}

KILN_EXPORT hipError_t hipHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
    return enter_outside_capture([&](ThreadState& thread, Runtime& runtime) {
        if (pointer == nullptr || bytes == 0) {
            return hipErrorInvalidValue;
        }
        if (runtime.allocations.find(pointer)) {
            return hipErrorHostMemoryAlreadyRegistered;
        }
        admit(runtime, pointer,
              {.begin = reinterpret_cast<std::uintptr_t>(pointer),
               .bytes = bytes,
               .type = hipMemoryTypeHost,
               .device = thread.device,
               .flags = flags,
               .registered = true});
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipHostUnregister(void* pointer) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        return release_host(runtime, pointer, true) == hipSuccess ? hipSuccess
                                                                  : hipErrorHostMemoryNotRegistered;
    });
}

KILN_EXPORT hipError_t hipHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto allocation = runtime.allocations.find(pointer);
        if (device_pointer == nullptr || flags != 0 || !allocation ||
            allocation->type == hipMemoryTypeDevice) {
            return hipErrorInvalidValue;
        }
        *device_pointer = pointer;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (free == nullptr || total == nullptr) {
            return hipErrorInvalidValue;
        }
        const auto& memory = runtime.current().memory();
        *total = memory.capacity_bytes();
        *free = *total - std::min(*total, memory.used_bytes());
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes,
                                             hipDeviceptr_t pointer) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto allocation = runtime.allocations.find(pointer);
        if (!allocation) {
            return hipErrorNotFound;
        }
        if (base != nullptr) {
            *base = reinterpret_cast<void*>(allocation->begin);
        }
        if (bytes != nullptr) {
            *bytes = allocation->bytes;
        }
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (attributes == nullptr || pointer == nullptr) {
            return hipErrorInvalidValue;
        }
        *attributes = {};
        const auto allocation = runtime.allocations.find(pointer);
        if (!allocation) {  // as HIP has it since 6.0: an answer, no error
            attributes->type = hipMemoryTypeUnregistered;
            attributes->device = -2;
            return hipSuccess;
        }
        attributes->type = allocation->type;
        attributes->device = allocation->device;
        attributes->devicePointer = const_cast<void*>(pointer);
        attributes->hostPointer =
            allocation->type == hipMemoryTypeDevice ? nullptr : const_cast<void*>(pointer);
        attributes->isManaged = allocation->type == hipMemoryTypeManaged ? 1 : 0;
        attributes->allocationFlags = allocation->flags;
        return hipSuccess;
    });
}
