// Blocks of a cluster: they run at the same time and write into each other's shared memory.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
KILN_DEVICE u32 cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// A barrier of all threads of the cluster, in two halves. What a thread wrote before it arrived releasing is
// seen by those that waited; arriving so waits for all that the thread has asked of the memory, plain
// arriving does not.
KILN_DEVICE void cluster_arrive_releasing() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
KILN_DEVICE void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
KILN_DEVICE void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where block `rank` has what this block has at `shared_address`.
KILN_DEVICE u32 cluster_address(u32 shared_address, u32 rank) {
    u32 address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address), "r"(rank));
    return address;
}

// Stores 16 bytes in another block's shared memory and counts them at that block's barrier.
KILN_DEVICE void store_remote_16(u32 address, const f32 (&value)[4], u32 barrier_address) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
            "r"(address),
        "r"(bits_as<u32>(value[0])), "r"(bits_as<u32>(value[1])), "r"(bits_as<u32>(value[2])),
        "r"(bits_as<u32>(value[3])), "r"(barrier_address)
        : "memory");
}
#endif

}  // namespace kiln::device
