#include "runtime/sim/numeric/matrix_loops.hpp"

namespace kiln::sim::numeric {
extern const Engine kPortableEngine = {unpack, sum};
}
