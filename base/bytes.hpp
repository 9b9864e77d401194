// The two views of raw memory that cross the interfaces of the rooms.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

inline std::string_view as_text(ByteView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln
