// What generate.cpp wrote down of the shipped rows when kiln was built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::shipped {

[[nodiscard]] std::span<const std::int64_t> row_numbers();
[[nodiscard]] std::span<const std::string_view> row_texts();

}  // namespace kiln::shipped
