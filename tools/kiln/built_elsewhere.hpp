// Which entries of a bundle another compiler than this machine's built.
#pragma once

#include <cstdint>

#include "cache/layer.hpp"
#include "runtime/service/settings.hpp"

namespace kiln::cli {

// How many: all of them where there is no compiler here. Entries that can not be read do not count.
[[nodiscard]] std::uint64_t count_built_elsewhere(const cache::Layer& layer,
                                                  const service::Settings& settings);

}  // namespace kiln::cli
