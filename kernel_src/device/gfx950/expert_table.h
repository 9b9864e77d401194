// Which tokens an expert serves, found anew by every work-group from the ids: cheaper than a launch of its
// own that sorts, as long as there are few.
//
// A pair is a (token, slot) with a legal id. A group is an expert with at least one token; groups are counted
// in the order of the experts, and so are rows: one for each different (expert, token), in the order of the
// experts, then of the tokens. Every work-group comes to the same numbers.
#pragma once

#include "device/gfx950/cross_lane.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
template <int kTokens>
struct TokenMaskOf {
    static_assert(kTokens <= 64, "a token is a bit");
    using Type = u64;
};
template <int kTokens>
requires(kTokens <= 32) struct TokenMaskOf<kTokens> {
    using Type = u32;
};

KILN_DEVICE u32 count_bits(u32 mask) {
    return static_cast<u32>(__builtin_popcount(mask));
}
KILN_DEVICE u32 count_bits(u64 mask) {
    return static_cast<u32>(__builtin_popcountll(mask));
}

template <int kExperts>
KILN_DEVICE bool is_expert(i32 id) {
    return static_cast<u32>(id) < kExperts;
}

// Lane i gets the number of the i-th set bit of `mask`; lanes past the last one get any number.
KILN_DEVICE u32 number_of_bit(u64 mask, u32 lane) {
    // Lanes whose bit is not set send behind the others, so that every lane gets something.
    const u32 below = count_below(mask);
    const bool set = (mask >> lane & 1) != 0;
    return to_lane(lane, set ? below : count_lanes(mask) + lane - below);
}

// Lives in LDS. kThreads: of the work-group.
template <int kExperts, int kSlots, int kMaxTokens, int kThreads>
class ExpertTable {
  public:
    using Mask = typename TokenMaskOf<kMaxTokens>::Type;
    static constexpr int kPairsOfThread = (kMaxTokens * kSlots + kThreads - 1) / kThreads;

    // A thread's pairs are thread + n * kThreads; -1 where there is none.
    struct Ids {
        i32 of[kPairsOfThread];
    };
    KILN_DEVICE static Ids load(const i32* ids, u32 tokens, u32 thread) {
        const u32 pairs = tokens * kSlots;
        const Buffer buffer(ids, pairs * sizeof(i32));
        Ids result;
#pragma unroll
        for (int n = 0; n < kPairsOfThread; ++n) {
            const u32 pair = thread + n * kThreads;
            const i32 id = static_cast<i32>(buffer.load_4(pair * sizeof(i32), 0));
            result.of[n] = pair < pairs ? id : -1;
        }
        return result;
    }

    // By all threads; ends with a barrier.
    KILN_DEVICE void fill(const Ids& ids, u32 thread) {
#pragma unroll
        for (int n = 0; n < kEntries; n += kThreads) {
            if (const u32 entry = thread + n; kEntries % kThreads == 0 || entry < kEntries) {
                tokens_[entry] = 0;
            }
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < kPairsOfThread; ++n) {
            if (is_expert<kExperts>(ids.of[n])) {
                const u32 token = (thread + n * kThreads) / kSlots;
                __hip_atomic_fetch_or(&tokens_[ids.of[n]], Mask{1} << token, __ATOMIC_RELAXED,
                                      __HIP_MEMORY_SCOPE_WORKGROUP);
            }
        }
        __syncthreads();
    }

    // Calls visit(expert, its tokens, group, first row) for each group, in one lane. By one whole wave, after
    // fill(). Returns, in the last lane, the number of groups.
    template <class Visit>
    KILN_DEVICE u32 for_each_group(u32 lane, const Visit& visit) const {
        constexpr u32 kGroup = 1U << 16;  // above the rows, in one sum
        Mask masks[kEntriesOfLane];
        u32 own = 0;
#pragma unroll
        for (int n = 0; n < kEntriesOfLane; ++n) {
            masks[n] = tokens_[lane * kEntriesOfLane + n];
            own += count_bits(masks[n]) + (masks[n] != 0 ? kGroup : 0);
        }
        const u32 end = running_sum(own);
        u32 next = end - own;
#pragma unroll
        for (int n = 0; n < kEntriesOfLane; ++n) {
            if (masks[n] != 0) {
                visit(lane * kEntriesOfLane + n, masks[n], next / kGroup, next % kGroup);
            }
            next += count_bits(masks[n]) + (masks[n] != 0 ? kGroup : 0);
        }
        return end / kGroup;
    }

    // How many tokens before this one the expert serves.
    KILN_DEVICE u32 tokens_before(i32 expert, u32 token) const {
        return count_bits(static_cast<Mask>(tokens_[expert] & ((Mask{1} << token) - 1)));
    }

  private:
    static constexpr int kEntriesOfLane = (kExperts + kWaveLanes - 1) / kWaveLanes;
    static constexpr int kEntries = kEntriesOfLane * kWaveLanes;

    Mask tokens_[kEntries];
};
#endif

}  // namespace kiln::device
