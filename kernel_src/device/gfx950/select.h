// The largest of numbered bf16 values, one after the other, by a wave.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/ordered.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
namespace detail {

// The larger of a lane's value and that of another lane, which the DPP control names; in the rows of a mask.
template <int kControl, int kRowMask>
KILN_DEVICE u32 larger_of_lanes(u32 value) {
    // Where a lane has no source, 0 stands in: the least there is.
    const u32 other = static_cast<u32>(
        __builtin_amdgcn_update_dpp(0, static_cast<i32>(value), kControl, kRowMask, 0xf, false));
    return value > other ? value : other;
}

}  // namespace detail

// The largest value of any lane, for all of them.
KILN_DEVICE u32 wave_max(u32 value) {
    constexpr int kRowShiftRight = 0x110;
    constexpr int kRowBroadcast15 = 0x142;  // the last lane of a row to the next row
    constexpr int kRowBroadcast31 = 0x143;  // lane 31 to the upper half
    value = detail::larger_of_lanes<kRowShiftRight + 1, 0xf>(value);
    value = detail::larger_of_lanes<kRowShiftRight + 2, 0xf>(value);
    value = detail::larger_of_lanes<kRowShiftRight + 4, 0xf>(value);
    value = detail::larger_of_lanes<kRowShiftRight + 8, 0xf>(value);
    value = detail::larger_of_lanes<kRowBroadcast15, 0xa>(value);
    value = detail::larger_of_lanes<kRowBroadcast31, 0xc>(value);
    return static_cast<u32>(__builtin_amdgcn_readlane(static_cast<i32>(value), kWaveLanes - 1));
}

// kPieces * 8 values as they lie in memory, at most 1024, spread over the lanes of a wave. As keys: the
// ordered value above, below a number that is larger for an earlier one. No two keys are equal.
template <int kPieces>
class WaveKeys {
  public:
    KILN_DEVICE WaveKeys(const ordered_bf16* values, u32 lane) {
#pragma unroll
        for (int load = 0; load < kLoads; ++load) {
            const u32 piece = load * kWaveLanes + lane;
            u32x4 packed = {};
            if (piece < kPieces) {
                packed = reinterpret_cast<const u32x4*>(values)[piece];
            }
#pragma unroll
            for (int i = 0; i < kPerLoad; ++i) {
                const u32 pair = packed[i / 2];
                const u32 upper = i % 2 == 0 ? pair << 16 : pair & 0xffff0000U;
                keys_[load * kPerLoad + i] = upper | (kLast - (piece * kPerLoad + i));
            }
        }
    }

    // Whether one of all the values is kOrderedNan.
    KILN_DEVICE bool any_nan() const {
        // From a NaN's keys on, counted so that what is no value comes last.
        u32 least = ~0U;
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const u32 above = keys_[i] - (static_cast<u32>(kOrderedNan) << 16);
            least = above < least ? above : least;
        }
        return __builtin_amdgcn_ballot_w64(least < (1U << 16)) != 0;
    }

    // Each lane's keys, the largest first; to be done once, before take_largest().
    KILN_DEVICE void sort() {
        // Batcher's merge exchange.
#pragma unroll
        for (int p = 1; p < kKeys; p *= 2) {
#pragma unroll
            for (int k = p; k >= 1; k /= 2) {
#pragma unroll
                for (int j = k % p; j + k < kKeys; j += 2 * k) {
#pragma unroll
                    for (int i = 0; i < k; ++i) {
                        if (i + j + k < kKeys && (i + j) / (2 * p) == (i + j + k) / (2 * p)) {
                            exchange(keys_[i + j], keys_[i + j + k]);
                        }
                    }
                }
            }
        }
    }

    // The largest key of any lane, for all of them; it is not there any more after that.
    KILN_DEVICE u32 take_largest() {
        const u32 largest = wave_max(keys_[0]);
        const bool is_here = keys_[0] == largest;
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const u32 next = i + 1 < kKeys ? keys_[i + 1] : 0;
            keys_[i] = is_here ? next : keys_[i];
        }
        return largest;
    }

    // The number of a key's value, from 0.
    KILN_DEVICE static u32 number(u32 key) {
        return kLast - (key & kLast);
    }

  private:
    static constexpr int kPerLoad = 8;
    static constexpr int kLoads = (kPieces + kWaveLanes - 1) / kWaveLanes;
    static constexpr int kKeys = kLoads * kPerLoad;
    static constexpr u32 kLast = 0xffff;
    static_assert(kPieces >= 1 && kKeys <= 16, "a lane's keys stay in registers");

    KILN_DEVICE static void exchange(u32& first, u32& second) {
        const u32 larger = first > second ? first : second;
        second = first > second ? second : first;
        first = larger;
    }

    u32 keys_[kKeys];
};
#endif

}  // namespace kiln::device
