// The bulk copy engine.
#pragma once

#include "device/macros.h"
#include "device/sm_90a/barrier.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
// For data that nobody reads again soon: first to leave the L2.
KILN_DEVICE u64 streaming_policy() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Global to shared memory, both 16-byte aligned, `bytes` a multiple of 16; counted at `barrier`.
KILN_DEVICE void copy_bulk(u32 destination, const void* source, u32 bytes, ArrivalBarrier barrier,
                           u64 policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
        "[%3], "
        "%4;" ::"r"(destination),
        "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier.address()), "l"(policy)
        : "memory");
}
#endif

}  // namespace kiln::device
