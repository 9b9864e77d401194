// Barriers in shared memory, which also count bytes that are on their way.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
// A barrier in shared memory that completes when `arrivals` have arrived and the announced bytes have come.
class ArrivalBarrier {
  public:
    KILN_DEVICE explicit ArrivalBarrier(u32 address) : address_(address) {}

    KILN_DEVICE void initialise(u32 arrivals) const {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_), "r"(arrivals) : "memory");
    }
    KILN_DEVICE void arrive_and_expect(u32 bytes) const {
        asm volatile(
            "{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t}" ::"r"(
                address_),
            "r"(bytes)
            : "memory");
    }
    KILN_DEVICE void arrive() const {
        asm volatile(
            "{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(address_)
            : "memory");
    }
    // Phases alternate in parity; the first is 0.
    KILN_DEVICE void wait(u32 parity) const {
        asm volatile(
            "{\n\t.reg .pred done;\n"
            "again:\n\t"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
            "@done bra finished;\n\t"
            "bra again;\n"
            "finished:\n\t}" ::"r"(address_),
            "r"(parity)
            : "memory");
    }
    [[nodiscard]] KILN_DEVICE u32 address() const { return address_; }

  private:
    u32 address_;
};

// To the copy engine and to the other blocks of the cluster: by the thread that initialised them.
KILN_DEVICE void make_barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Barrier kBarrier of the block (0 is __syncthreads()'s), of kThreads threads: to arrive and go on, or to
// wait for them all.
template <int kBarrier, int kThreads>
KILN_DEVICE void arrive_at_block() {
    asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
template <int kBarrier, int kThreads>
KILN_DEVICE void wait_for_block() {
    asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
#endif

}  // namespace kiln::device
