// HIP kernels with every builtin that the project's templates use, for isa_compile_test.cpp.
#pragma once

namespace kiln::sim::test {

inline constexpr const char* kInstructionKernels = R"hip(
typedef unsigned u32;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef int i32x8 __attribute__((ext_vector_type(8)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef __bf16 bf16x2 __attribute__((ext_vector_type(2)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef short s16x2 __attribute__((ext_vector_type(2)));

#define AS_U32(...) __builtin_bit_cast(u32, __VA_ARGS__)

extern "C" __global__ void fp4_up(const u32* in, const float* scale, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[4 * t + 0] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(in[t], scale[t], 0));
    out[4 * t + 1] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(in[t], scale[t], 1));
    out[4 * t + 2] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(in[t], scale[t], 2));
    out[4 * t + 3] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(in[t], scale[t], 3));
}
extern "C" __global__ void fp8_up(const u32* in, const float* scale, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[2 * t + 0] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(in[t], scale[t], false));
    out[2 * t + 1] = AS_U32(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(in[t], scale[t], true));
}
extern "C" __global__ void fp4_down(const float* in, const float* scale, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const float* x = in + 8 * t;
    u32 a = 0, b = 0;
    a = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(a, x[0], x[1], scale[t], 0);
    a = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(a, x[2], x[3], scale[t], 1);
    a = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(a, x[4], x[5], scale[t], 2);
    a = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(a, x[6], x[7], scale[t], 3);
    b = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(b, bf16x2{(__bf16)x[0], (__bf16)x[1]}, scale[t], 0);
    b = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(b, bf16x2{(__bf16)x[2], (__bf16)x[3]}, scale[t], 1);
    b = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(b, bf16x2{(__bf16)x[4], (__bf16)x[5]}, scale[t], 2);
    b = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(b, bf16x2{(__bf16)x[6], (__bf16)x[7]}, scale[t], 3);
    out[2 * t] = a;
    out[2 * t + 1] = b;
}
extern "C" __global__ void fp8_down(const float* in, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    int a = 0;
    a = __builtin_amdgcn_cvt_pk_fp8_f32(in[4 * t], in[4 * t + 1], a, false);
    a = __builtin_amdgcn_cvt_pk_fp8_f32(in[4 * t + 2], in[4 * t + 3], a, true);
    out[t] = a;
}
extern "C" __global__ void arithmetic(const float* x, const float* y, float* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[4 * t] = x[t] / y[t];
    out[4 * t + 1] = 1.0f / y[t];
    out[4 * t + 2] = __builtin_sqrtf(x[t]);
    out[4 * t + 3] = x[t] * y[t] + 1.0f;
}
extern "C" __global__ void exponential(const float* x, float* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = expf(x[t]);
}
extern "C" __global__ void bf16_round(const float* x, u32* out) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = AS_U32(bf16x2{(__bf16)x[2 * t], (__bf16)x[2 * t + 1]});
}
extern "C" __global__ void dot2(const bf16x2* x, const bf16x2* y, const float* z, float* out) {
    const int t = threadIdx.x;
    out[t] = __builtin_amdgcn_fdot2_f32_bf16(x[t], y[t], z[t], false);
}
extern "C" __global__ void move_lanes(int* out) {
    const int t = threadIdx.x;
    out[0 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x111, 0xf, 0xf, false);  // row_shr:1
    out[1 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x101, 0xf, 0xf, true);   // row_shl:1
    out[2 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x4e, 0xf, 0xf, false);   // quad_perm:[2,3,0,1]
    out[3 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x140, 0xf, 0xf, false);  // row_mirror
    out[4 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x142, 0xa, 0xf, false);  // row_bcast:15
    out[5 * 64 + t] = __builtin_amdgcn_update_dpp(-1, t, 0x143, 0xc, 0xf, false);  // row_bcast:31
    out[6 * 64 + t] = __builtin_amdgcn_ds_bpermute(4 * (63 - t), t);
    out[7 * 64 + t] = __builtin_amdgcn_readlane(t * 3, 17);
    const auto swapped = __builtin_amdgcn_permlane32_swap(t, 100 + t, false, false);
    out[8 * 64 + t] = swapped[0];
    out[9 * 64 + t] = swapped[1];
    out[10 * 64 + t] = __builtin_amdgcn_ds_swizzle(t, 0x401f);  // xor 16
}
extern "C" __global__ void atomic_add(s16x2* out) {
    const int t = threadIdx.x;
    typedef __attribute__((address_space(1))) s16x2* Global;
    __builtin_amdgcn_global_atomic_fadd_v2bf16((Global)(out + t % 4), s16x2{0x3f80, 0x4000});
}
extern "C" __global__ void buffer_load(const u32* in, int bytes, u32x4* out) {
    const int t = threadIdx.x;
    const auto buffer = __builtin_amdgcn_make_buffer_rsrc((void*)in, 0, bytes, 0x27000);
    out[t] = __builtin_amdgcn_raw_buffer_load_b128(buffer, 16 * t, 0, 0);
}
extern "C" __global__ void multiply_bf16(const bf16x8* a, const bf16x8* b, const f32x4* c, f32x4* d) {
    const int t = threadIdx.x;
    d[t] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(a[t], b[t], c[t], 0, 0, 0);
}
extern "C" __global__ void multiply_scaled(const i32x8* a, const i32x8* b, const f32x4* c, const int* scale_a, const int* scale_b, f32x4* d) {
    const int t = threadIdx.x;
    d[t] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[t], b[t], c[t], 0, 4, 1, scale_a[t], 2, scale_b[t]);
    d[64 + t] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[t], b[t], c[t], 0, 4, 0, 0, 0, 0);
    d[128 + t] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[t], a[t], c[t], 0, 0, 3, scale_a[t], 0, 127);
}
extern "C" __global__ void share(const u32* in, u32* out) {
    __shared__ u32 room[256];
    const int t = threadIdx.x;
    room[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    out[blockIdx.x * 256 + t] = room[255 - t] + room[(t + 64) % 256];
}
)hip";

}  // namespace kiln::sim::test
