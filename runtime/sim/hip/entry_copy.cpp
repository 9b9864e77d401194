// Copies and fills.
#include <cstdint>

#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

namespace {

enum class Blocks { yes, no };

bool reads_device(hipMemcpyKind kind) {
    return kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice ||
           kind == hipMemcpyDeviceToDeviceNoCU;
}
bool writes_device(hipMemcpyKind kind) {
    return kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice ||
           kind == hipMemcpyDeviceToDeviceNoCU;
}

// Both ends are checked now: a side that the kind calls the device's must lie in an allocation, and no side
// may leave one.
hipError_t copy(Runtime& runtime, Stream& stream, void* to, const void* from, std::size_t bytes,
                hipMemcpyKind kind, Blocks blocks) {
    if (bytes == 0) {
        return hipSuccess;
    }
    if (to == nullptr || from == nullptr) {
        return hipErrorInvalidValue;
    }
    if (kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU) {
        return hipErrorInvalidMemcpyDirection;
    }
    using Extent = Allocations::Extent;
    const Extent target = runtime.allocations.extent(to, bytes);
    const Extent source = runtime.allocations.extent(from, bytes);
    if (target == Extent::beyond || source == Extent::beyond ||
        (writes_device(kind) && target == Extent::unknown) ||
        (reads_device(kind) && source == Extent::unknown)) {
        this_thread().detail = "a side of the copy is not inside an allocation";
        return hipErrorInvalidValue;
    }
    const CopyBytes step{to, from, bytes, target == Extent::inside, source == Extent::inside};
    // Memory that was never pinned is staged by the driver before it returns: then the program may reuse it.
    hipStreamCaptureStatus status{};
    unsigned long long id = 0;
    const bool staged = target == Extent::unknown || source == Extent::unknown;
    if (const hipError_t error = runtime.capture_status(stream, status, id);
        error == hipSuccess && status == hipStreamCaptureStatusNone && (blocks == Blocks::yes || staged)) {
        return runtime.enqueue_and_wait(stream, step);
    }
    return runtime.enqueue(stream, step);
}

hipError_t copy_now(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        return copy(runtime, *runtime.stream(nullptr), to, from, bytes, kind, Blocks::yes);
    });
}

hipError_t copy_later(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return copy(runtime, found, to, from, bytes, kind, Blocks::no);
    });
}

hipError_t fill(Runtime& runtime, Stream& stream, const FillMemory& step, Blocks blocks) {
    if (step.count == 0) {
        return hipSuccess;
    }
    const auto to = reinterpret_cast<std::uintptr_t>(step.to);
    if (step.to == nullptr || to % step.element_bytes != 0 || step.count > SIZE_MAX / step.element_bytes ||
        runtime.allocations.extent(step.to, step.count * step.element_bytes) != Allocations::Extent::inside) {
        return hipErrorInvalidValue;
    }
    return blocks == Blocks::yes ? runtime.enqueue_and_wait(stream, step) : runtime.enqueue(stream, step);
}

hipError_t fill_now(void* to, std::uint32_t value, unsigned element_bytes, std::size_t count) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        return fill(runtime, *runtime.stream(nullptr), {to, value, element_bytes, count}, Blocks::yes);
    });
}

hipError_t fill_later(void* to, std::uint32_t value, unsigned element_bytes, std::size_t count,
                      hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return fill(runtime, found, {to, value, element_bytes, count}, Blocks::no);
    });
}

}  // namespace

KILN_EXPORT hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
    return copy_now(to, from, bytes, kind);
}
KILN_EXPORT hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, std::size_t bytes) {
    return copy_now(to, from, bytes, hipMemcpyHostToDevice);
}
KILN_EXPORT hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, std::size_t bytes) {
    return copy_now(to, from, bytes, hipMemcpyDeviceToHost);
}
KILN_EXPORT hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes) {
    return copy_now(to, from, bytes, hipMemcpyDeviceToDevice);
}

KILN_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                      hipStream_t stream) {
    return copy_later(to, from, bytes, kind, stream);
}
KILN_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, std::size_t bytes,
                                          hipStream_t stream) {
    return copy_later(to, from, bytes, hipMemcpyHostToDevice, stream);
}
KILN_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, std::size_t bytes,
                                          hipStream_t stream) {
    return copy_later(to, from, bytes, hipMemcpyDeviceToHost, stream);
}
KILN_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes,
                                          hipStream_t stream) {
    return copy_later(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}
KILN_EXPORT hipError_t hipMemcpyWithStream(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                           hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return copy(runtime, found, to, from, bytes, kind, Blocks::yes);
    });
}

KILN_EXPORT hipError_t hipMemset(void* to, int value, std::size_t bytes) {
    return fill_now(to, static_cast<std::uint32_t>(value), 1, bytes);
}
KILN_EXPORT hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, std::size_t count) {
    return fill_now(to, value, 1, count);
}
KILN_EXPORT hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, std::size_t count) {
    return fill_now(to, value, 2, count);
}
KILN_EXPORT hipError_t hipMemsetD32(hipDeviceptr_t to, int value, std::size_t count) {
    return fill_now(to, static_cast<std::uint32_t>(value), 4, count);
}

KILN_EXPORT hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream) {
    return fill_later(to, static_cast<std::uint32_t>(value), 1, bytes, stream);
}
KILN_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, std::size_t count,
                                        hipStream_t stream) {
    return fill_later(to, value, 1, count, stream);
}
KILN_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, std::size_t count,
                                         hipStream_t stream) {
    return fill_later(to, value, 2, count, stream);
}
KILN_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count,
                                         hipStream_t stream) {
    return fill_later(to, static_cast<std::uint32_t>(value), 4, count, stream);
}
