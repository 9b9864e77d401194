// What this room asks of JSON that it keeps and does not look into.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace kiln::cache {

[[nodiscard]] inline bool is_json_object(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{' && nlohmann::json::accept(text);
}

}  // namespace kiln::cache
