// What the operators' checks of a launch have in common.
#pragma once

#include <cstdint>

#include "kiln/kiln.h"

namespace kiln::operators {

// On gfx950 a kernel reaches x by 32-bit byte offsets: 64 rows (the largest bucket that a table may have) of
// this many elements.
inline constexpr std::int64_t kMaxRowStride = std::int64_t{1} << 25;

// `bytes` is a power of two. Null is aligned to anything.
[[nodiscard]] inline bool is_misaligned(const void* pointer, std::uintptr_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(pointer) & (bytes - 1)) != 0;
}

// bf16 rows of `width` elements, `ldx` apart, which is below `limit`: KILN_OK or a decline. Null is the
// caller's to look for.
[[nodiscard]] inline int check_rows(const void* x, std::int64_t ldx, std::int64_t width,
                                    std::int64_t limit = kMaxRowStride) {
    if (is_misaligned(x, 16)) {
        return KILN_DECLINE_X_ALIGNMENT;
    }
    if (ldx < width || ldx % 8 != 0 || ldx >= limit) {
        return KILN_DECLINE_X_ROW_STRIDE;
    }
    return KILN_OK;
}

}  // namespace kiln::operators
