// The resource limits of a worker. A host may run under limits that are right for it and would strangle a
// compiler; and a compiler must not take the host's machine with it.
#pragma once

#include <cstdint>

namespace kiln::compile::worker {

// Raises each inherited soft limit that is below what a compile needs as far as the hard one allows, switches
// core files of half a gigabyte off, and bounds the address space to `memory_limit` bytes (0: no bound of our
// own). Returns the bound that holds then, which an inherited one may have made smaller; 0 for none.
//
// A sanitizer reserves terabytes of address space, so a process bounded in this way can not carry one; the
// worker never does.
[[nodiscard]] std::uint64_t settle_limits(std::uint64_t memory_limit);

}  // namespace kiln::compile::worker
