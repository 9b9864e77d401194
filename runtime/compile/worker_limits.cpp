#include "runtime/compile/worker_limits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::compile {

std::string limits_in_the_way(std::uint64_t memory_limit) {
    std::string named;
    for (const Need& need : kNeeds) {
        rlim_t least = need.least;
        if (memory_limit != 0 && (need.resource == RLIMIT_AS || need.resource == RLIMIT_DATA)) {
            least = std::min<rlim_t>(least, memory_limit);
        }
        rlimit limit{};
        if (::getrlimit(need.resource, &limit) == 0 && limit.rlim_max < least) {
            named += fmt::format("{}{} of {} {}", named.empty() ? "" : ", ", need.name,
                                 limit.rlim_max / need.unit, need.unit_name);
        }
    }
    return named;
}

}  // namespace kiln::compile
