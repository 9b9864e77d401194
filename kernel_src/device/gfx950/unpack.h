// bf16 to float32 on the matrix unit: four elements of every lane in one instruction, where the vector unit
// takes four.
#pragma once

#include "device/gfx950/fragment.h"
#include "device/gfx950/mfma.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// The identity times a lane's four elements is these elements again, in that lane. Exact whatever the order
// and width of the sums: three of the four products are zero. Two things differ from a shift: -0 comes out as
// +0, and an infinity or a NaN makes a NaN of all four; an operator that uses this must not mind.
class Bf16Unpacker {
  public:
    KILN_DEVICE explicit Bf16Unpacker(u32 lane)
        : identity_(bits_as<s16x4>(QuadFragment::identity_row(static_cast<int>(lane)))) {}

    // The lower half of `first` is the first element.
    KILN_DEVICE f32x4 operator()(u32 first, u32 second) const {
        const u32x2 packed = {first, second};
        return mfma_4x4x4_bf16(identity_, bits_as<s16x4>(packed), f32x4{});
    }

  private:
    s16x4 identity_;
};
#endif

}  // namespace kiln::device
