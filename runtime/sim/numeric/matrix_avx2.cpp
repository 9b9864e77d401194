// Built with -mavx2 -mfma, and called only on hosts that have both.
#include "runtime/sim/numeric/matrix_loops.hpp"

namespace kiln::sim::numeric {
extern const Engine kAvx2Engine = {unpack, sum};
}
