// What the operators' checks of a launch have in common.
#pragma once

#include <cstdint>

namespace kiln::operators {

// On gfx950 a kernel reaches x by 32-bit byte offsets: 64 rows (the largest bucket that a table may have) of
// this many elements.
inline constexpr std::int64_t kMaxRowStride = std::int64_t{1} << 25;

// `bytes` is a power of two. Null is aligned to anything.
[[nodiscard]] inline bool is_misaligned(const void* pointer, std::uintptr_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(pointer) & (bytes - 1)) != 0;
}

}  // namespace kiln::operators
