// What a program hands to hipModuleLoadData: a pointer, and no size.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/device/hip/types.hpp"

namespace kiln::sim::hip {

using namespace kiln::hip;

// What the simulated device reports, and what a code object must agree with.
inline constexpr std::string_view kDeviceTarget = "gfx950:sramecc+:xnack-";

// Bytes of which only the beginning is known: what the headers say is believed, up to a gigabyte.
[[nodiscard]] inline ByteView unmeasured(const void* image) {
    constexpr std::size_t kMaxImageBytes = std::size_t{1} << 30;
    return {static_cast<const std::byte*>(image), image != nullptr ? kMaxImageBytes : 0};
}

// The gfx950 code object in `image`, which is an ELF file or an offload bundle of clang's (uncompressed) that
// holds one. Its size is taken from its headers, as the driver does; nothing is read that they do not speak
// of, nor past the end.
struct FoundImage {
    hipError_t error = hipSuccess;  // hipErrorInvalidImage, hipErrorNoBinaryForGpu
    ByteView code_object;           // part of `image`
};
[[nodiscard]] FoundImage find_image(ByteView image);

// True when a code object for `target` ("gfx950:xnack-") runs on the device: the same processor, and every
// feature that it pins agrees.
[[nodiscard]] bool serves_device(std::string_view target);

}  // namespace kiln::sim::hip
