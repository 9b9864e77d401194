// The last work-group of a launch to arrive, elected by counters in global memory: it may read what all
// others wrote before they arrived.
//
// Work-groups count in up to 16 groups, and the last of each group at the root: no address is asked for by
// all of them. A counter wraps from its end to zero, so that an election leaves all as it found them: zero.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kElectionGroups = 16;
inline constexpr int kElectionStride = 128;  // bytes: each counter has a cache line of its own

// Of the counters: the root, then the groups.
inline constexpr int kElectionBytes = (1 + kElectionGroups) * kElectionStride;

#if defined(__HIP__)
// What this work-item's wave wrote is visible to every work-group that acquires after it has seen, by an
// atomic operation, one of this wave's that follows.
KILN_DEVICE void release_to_device() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
}
KILN_DEVICE void acquire_from_device() {
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}

namespace detail {
// True for the last of `arrivals`, which leaves the counter at zero.
KILN_DEVICE bool is_last_arrival(void* counter, u32 arrivals) {
    const u32 earlier =
        __builtin_amdgcn_atomic_inc32(static_cast<u32*>(counter), arrivals - 1, __ATOMIC_RELAXED, "agent");
    return earlier == arrivals - 1;
}
}  // namespace detail

// With one counter of 4 bytes: for few work-groups, whose number a launch decides.
class SmallElection {
  public:
    KILN_DEVICE explicit SmallElection(void* counter) : counter_(counter) {}

    // As Election::arrive().
    KILN_DEVICE bool arrive(u32 work_groups) const { return detail::is_last_arrival(counter_, work_groups); }

  private:
    void* counter_;
};

template <int kWorkGroups>
class Election {
  public:
    KILN_DEVICE explicit Election(void* counters) : counters_(static_cast<u8*>(counters)) {}

    // By one work-item, after release_to_device(). True in the last work-group: its waves then
    // acquire_from_device().
    KILN_DEVICE bool arrive(u32 work_group) const {
        constexpr u32 kMembers = (kWorkGroups + kElectionGroups - 1) / kElectionGroups;
        constexpr u32 kGroups = (kWorkGroups + kMembers - 1) / kMembers;
        const u32 group = work_group / kMembers;
        // The last group may have fewer.
        const u32 members = group + 1 < kGroups ? kMembers : kWorkGroups - group * kMembers;
        if (!is_last(1 + group, members)) {
            return false;
        }
        // What the members of the group have released is released again, to the last at the root.
        acquire_from_device();
        release_to_device();
        return is_last(0, kGroups);
    }

  private:
    KILN_DEVICE bool is_last(u32 counter, u32 arrivals) const {
        return detail::is_last_arrival(counters_ + counter * kElectionStride, arrivals);
    }

    u8* counters_;
};
#endif

}  // namespace kiln::device
