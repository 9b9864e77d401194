// Structs whose first member says how large the caller believes them to be: a caller that was built against
// another version of a header has another size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace kiln {

// A copy of such a struct: members that the caller does not know are zero, and members that this library does
// not know must be. False when the struct makes no sense; then `to` is not to be used. Such structs are
// aligned to their first member, so one that ends elsewhere ends within a member.
[[nodiscard]] inline bool read_versioned(const void* from, std::size_t from_bytes, void* to,
                                         std::size_t to_bytes) {
    if (from_bytes < sizeof(std::size_t) || from_bytes % sizeof(std::size_t) != 0 || from_bytes > 4096) {
        return false;
    }
    std::memset(to, 0, to_bytes);
    std::memcpy(to, from, std::min(from_bytes, to_bytes));
    const auto* bytes = static_cast<const unsigned char*>(from);
    for (std::size_t i = to_bytes; i < from_bytes; ++i) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace kiln
