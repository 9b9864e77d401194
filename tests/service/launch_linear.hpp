// A launch of a plan of `linear`, as kiln_linear_launch makes it.
#pragma once

#include <cstdint>

#include "runtime/service/launch.hpp"

namespace kiln::test {

inline kiln_status launch_linear(const service::Plan& plan, device::Stream stream, std::int64_t m,
                                 const kiln_linear_args& args) {
    return service::launch<operators::LinearProblem>(plan, stream, m, args);
}

}  // namespace kiln::test
