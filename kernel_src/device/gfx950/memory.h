// Global memory by buffers, whose end stops lanes that run past it.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// A raw buffer: a lane whose offset reaches `bytes` reads zero, writes nothing and causes no traffic. Offsets
// are 32 bits.
class Buffer {
  public:
    // A constant term of a lane's offset below this costs nothing: it goes into the instruction.
    static constexpr u32 kInstructionReach = 4096;
    // The lane offset of a lane that has nothing to read or write: past the end of any buffer of up to 2 GiB,
    // whether or not the check adds a wave offset (of less than 2 GiB) to it.
    static constexpr u32 kNowhere = 1U << 31;

    KILN_DEVICE Buffer(const void* base, u32 bytes)
        : resource_(__builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(base), 0, static_cast<i32>(bytes),
                                                      kRawDwords)) {}

    // The check sees `lane_offset` for certain, `wave_offset` perhaps not: put what decides into the former.
    KILN_DEVICE u32x4 load_16(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b128(resource_, static_cast<i32>(lane_offset),
                                                     static_cast<i32>(wave_offset), 0);
    }
    // For bytes that no other work-group asks for: non-temporal, so that they do not push others out of the
    // caches.
    KILN_DEVICE u32x4 load_streaming_16(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b128(resource_, static_cast<i32>(lane_offset),
                                                     static_cast<i32>(wave_offset), kNonTemporal);
    }
    KILN_DEVICE u32x2 load_8(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b64(resource_, static_cast<i32>(lane_offset),
                                                    static_cast<i32>(wave_offset), 0);
    }
    KILN_DEVICE u32 load_4(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b32(resource_, static_cast<i32>(lane_offset),
                                                    static_cast<i32>(wave_offset), 0);
    }
    KILN_DEVICE u32 load_2(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b16(resource_, static_cast<i32>(lane_offset),
                                                    static_cast<i32>(wave_offset), 0);
    }
    KILN_DEVICE u32 load_byte(u32 lane_offset, u32 wave_offset) const {
        return __builtin_amdgcn_raw_buffer_load_b8(resource_, static_cast<i32>(lane_offset),
                                                   static_cast<i32>(wave_offset), 0);
    }
    KILN_DEVICE void store_8(u32x2 value, u32 lane_offset, u32 wave_offset) const {
        __builtin_amdgcn_raw_buffer_store_b64(value, resource_, static_cast<i32>(lane_offset),
                                              static_cast<i32>(wave_offset), 0);
    }

  private:
    static constexpr i32 kNonTemporal = 2;  // in the cache policy operand
    // Last word of the descriptor on gfx9: untyped 32-bit data.
    static constexpr i32 kRawDwords = 0x00027000;
    __amdgpu_buffer_rsrc_t resource_;
};

// Adds two bf16 to those in memory, each rounded to nearest even, in one operation whose order among others'
// is any. `to` is aligned to 4 bytes.
KILN_DEVICE void add_bf16_pair(bf16_bits* to, u32 pair) {
    using Pair = __attribute__((address_space(1))) s16x2;
    (void)__builtin_amdgcn_global_atomic_fadd_v2bf16(reinterpret_cast<Pair*>(reinterpret_cast<u64>(to)),
                                                     bits_as<s16x2>(pair));
}
#endif

}  // namespace kiln::device
