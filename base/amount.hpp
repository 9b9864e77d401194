// Amounts as people write them on a command line and in a variable: "10GiB", "30d".
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace kiln {

// A whole number of bytes, with B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024) behind it,
// or nothing; in any case of letters. bad_input says what was expected and what was found.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

// A whole number with s, m, h, d or w behind it.
[[nodiscard]] Result<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace kiln
