// The names that documents of a bundle may have.
#pragma once

#include <string_view>

#include "cache/bundle_layout.hpp"

namespace kiln::cache {

// One that a file may have in any folder, and that leads to no other: whoever unpacks a bundle relies on it.
[[nodiscard]] constexpr bool is_document_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxDocumentName && name != "." && name != ".." &&
           name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace kiln::cache
