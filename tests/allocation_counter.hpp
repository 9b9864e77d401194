// Counts every operator new of the program that links it, libraries included: the launch path must add none.
#pragma once

#include <cstdint>

namespace kiln::test {

[[nodiscard]] std::uint64_t num_allocations();

}  // namespace kiln::test
