#include "runtime/compile/worker/limits.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "runtime/compile/worker_limits.hpp"

namespace kiln::compile::worker {
namespace {

// The soft limit becomes at least `wanted`, or the hard limit where that is less.
void raise(const Need& need) {
    rlimit limit{};
    if (::getrlimit(need.resource, &limit) == 0 && limit.rlim_cur < need.least) {
        limit.rlim_cur = std::min(need.least, limit.rlim_max);
        ::setrlimit(need.resource, &limit);  // what it can not do, the host names when something fails
    }
}

}  // namespace

std::uint64_t settle_limits(std::uint64_t memory_limit) {
    for (const Need& need : kNeeds) {
        raise(need);
    }
    const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CORE, &no_core);

    rlimit space{};
    if (::getrlimit(RLIMIT_AS, &space) != 0) {
        return 0;
    }
    if (memory_limit != 0 && memory_limit < space.rlim_max) {
        space.rlim_max = memory_limit;
    }
    space.rlim_cur = space.rlim_max;
    ::setrlimit(RLIMIT_AS, &space);
    return space.rlim_max == RLIM_INFINITY ? 0 : space.rlim_max;
}

}  // namespace kiln::compile::worker
