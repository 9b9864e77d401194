// What there is to set, for who documents it.
#pragma once

#include <vector>

#include "runtime/service/settings.hpp"

namespace kiln::service {

// Every variable, in the order of the documentation, at its default as far as that is the same everywhere.
[[nodiscard]] std::vector<Setting> preset_settings();

}  // namespace kiln::service
