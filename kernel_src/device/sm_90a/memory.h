// Global and shared memory by instruction.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
struct Words4 {
    u32 word[4];
};

// 16 aligned bytes that no thread of the launch writes.
KILN_DEVICE Words4 load_constant_16(const void* source) {
    Words4 loaded;
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]), "=r"(loaded.word[3])
                 : "l"(__cvta_generic_to_global(source)));
    return loaded;
}
// A float that no thread of the launch writes.
KILN_DEVICE f32 load_constant_4(const f32* source) {
    f32 loaded;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(loaded) : "l"(__cvta_generic_to_global(source)));
    return loaded;
}
// Where a pointer into this block's shared memory points, in the window that instructions address by 32 bits.
KILN_DEVICE u32 shared_address(const void* pointer) {
    return static_cast<u32>(__cvta_generic_to_shared(pointer));
}
KILN_DEVICE void store_shared_4(u32 address, f32 value) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(bits_as<u32>(value)) : "memory");
}
KILN_DEVICE void store_shared_8(u32 address, u32 first, u32 second) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(first), "r"(second) : "memory");
}
KILN_DEVICE Words4 load_shared_16(u32 address) {
    Words4 loaded;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]), "=r"(loaded.word[3])
                 : "r"(address)
                 : "memory");
    return loaded;
}
KILN_DEVICE void store_8(void* destination, u32 first, u32 second) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(destination)), "r"(first),
                 "r"(second)
                 : "memory");
}
#endif

}  // namespace kiln::device
