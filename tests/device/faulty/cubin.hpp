// What the double of CUDA's driver takes for a cubin, and nothing else would.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace kiln::test {

inline const Bytes& cubin() {
    static const Bytes bytes = [] {
        constexpr std::size_t kHeaderBytes = 64, kMachineOffset = 18;
        constexpr std::uint16_t kCuda = 190;
        Bytes image(kHeaderBytes);
        std::memcpy(image.data() + kMachineOffset, &kCuda, sizeof kCuda);
        return image;
    }();
    return bytes;
}

}  // namespace kiln::test
