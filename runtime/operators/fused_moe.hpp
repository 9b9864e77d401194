// The operator `fused_moe`: its problem, the arguments of its kernels, and the checks of a launch.
//
// The mathematics, the layouts and the meaning of every field stand in the public header (kiln/fused_moe.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"

namespace kiln::operators {

class Operator;

// The dimensions that a launch looks at. Everything else was judged when the problem was asked for.
struct FusedMoeProblem {
    std::int64_t hidden = 0;
    std::int64_t intermediate = 0;
    std::int64_t experts = 0;
    std::int64_t slots = 0;
    bool fp8 = false;  // else mxfp4
};

}  // namespace kiln::operators
