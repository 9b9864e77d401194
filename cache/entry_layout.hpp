// The fixed numbers of the entry grammar (entry.hpp), for the writer, the reader and the tests that cut files
// at them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "cache/entry.hpp"

namespace kiln::cache {

inline constexpr std::string_view kMagic = "\x89KILN\r\n\x1A";

struct SectionName {
    std::string_view tag;
    bool may_be_compressed;
};

// In the order of the file. The key stays readable by any tool that shows text in binary files.
inline constexpr std::array<SectionName, 4> kSections{{
    {"KEY ", false},
    {"META", true},
    {"CODE", true},
    {"LIST", true},
}};

inline constexpr std::size_t kDescriptorBytes = 4 + 4 + 8 + 8;
inline constexpr std::size_t kHeaderBytes = kMagic.size() + 4 + 4 + kSections.size() * kDescriptorBytes;
inline constexpr std::size_t kFooterBytes = 32;

}  // namespace kiln::cache
