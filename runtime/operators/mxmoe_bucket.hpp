// A bucket of fused_moe/mxmoe with its constants resolved: what packing a launch's arguments depends on.
#pragma once

#include <cstdint>

namespace kiln::operators {

// How the second product is summed over a token's slots: the values of the constant "g2".
enum class MxmoeSum : std::uint8_t {
    atomic = 0,    // added to the result as it comes, rounded each time: not the same bits every time
    combined = 1,  // kept for each pair, and added up in slot order by a kernel of its own
    fused = 2      // the same, by the work-group that comes last
};

struct MxmoeBucket {
    std::uint32_t block_m = 0;
    bool f16in = false;  // x is quantised where it is multiplied: there is no quantised copy of it
    MxmoeSum sum = MxmoeSum::atomic;
};

}  // namespace kiln::operators
