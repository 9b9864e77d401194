// The log is the process's, and services are many: what it follows.
//
// What the program sets at run time goes before the environment that a service opened later finds; what the
// configuration of a service says goes before both, and the last that was said counts.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "runtime/service/settings.hpp"

namespace kiln::service {

// Of a service, or a command without one, that begins with these settings.
void adopt_log(const Settings& settings);

// At run time, as kiln_log_set. invalid_argument names another word, and nothing is changed.
[[nodiscard]] Result<void> set_log(std::optional<std::string_view> level,
                                   std::optional<std::string_view> format);

}  // namespace kiln::service
