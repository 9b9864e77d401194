// The engine's own kernels: what it has beside the operators that kiln serves, and what it runs where kiln
// declines. Plain on purpose: a thread for a result, no tuning. One source for HIP and for CUDA.
//
// They read weights in the layouts that kiln's operators take (kiln/formats.h), so that an engine keeps one
// copy of them, and compute what kiln/linear.h, router.h, moe_sort.h and fused_moe.h say. Values are finite.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

struct alignas(16) Chunk {
    u32 words[4];
};

constexpr int kThreads = 64;
constexpr int kQuantiserGroup = 128, kMxGroup = 32, kTileRows = 16;

__device__ inline float bf16_to_float(u32 bits) {
    return __uint_as_float(bits << 16);
}

__device__ inline float larger(float a, float b) {
    return a > b ? a : b;
}

// Of the eight bf16 in a chunk.
__device__ inline float element(const Chunk& chunk, int i) {
    return bf16_to_float(chunk.words[i / 2] >> i % 2 * 16 & 0xffff);
}

__device__ inline u16 float_to_bf16(float value) {
    const u32 bits = __float_as_uint(value);
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ inline float e4m3_to_float(u32 code) {
    return __uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 20) * 0x1p120f;
}

// Rounded to nearest even; |value| at most 448.
__device__ inline float round_to_e4m3(float value) {
    const float size = fabsf(value);
    const u32 bits = __float_as_uint(size);
    const float rounded = size < 0x1p-6f ? (size + 0x1p14f) - 0x1p14f
                                         : __uint_as_float((bits + 0x7ffff + (bits >> 20 & 1)) & ~0xfffffu);
    return copysignf(rounded, value);
}

// Twice the value, from a table of the eight sizes.
__device__ inline float doubled_e2m1(u32 code) {
    const float size = static_cast<float>(0xC8643210u >> 4 * (code & 7) & 15);
    return code & 8 ? -size : size;
}

__device__ inline float half_of_e8m0(u32 code) {
    return code > 1 ? __uint_as_float((code - 1) << 23) : __uint_as_float(0x200000u << code);
}

// The 16 bytes from byte 16 * chunk of row n, preshuffled (16, 16); row_bytes of a row.
__device__ inline Chunk load_weights(const u8* w, int n, int chunk, int row_bytes) {
    const long long offset =
        static_cast<long long>(n / kTileRows) * kTileRows * row_bytes + chunk * 256 + n % kTileRows * 16;
    return *reinterpret_cast<const Chunk*>(w + offset);
}

// The e8m0 scale of row r and 32-group c of `columns`, preshuffled.
__device__ inline u32 load_mx_scale(const u8* scales, int r, int c, int columns) {
    const int padded = (columns + 7) / 8 * 8;
    return scales[static_cast<long long>(r / 32) * 32 * padded + c / 8 * 256 + c % 4 * 64 + r % 16 * 4 +
                  c % 8 / 4 * 2 + r % 32 / 16];
}

// The product of x, bf16 [k], with row n of an expert's mxfp4 weights, which is row r of its scales.
__device__ float mx_dot(const u16* x, const u8* w, const u8* scales, int n, int r, int k) {
    float sum = 0;
    for (int group = 0; group < k / kMxGroup; ++group) {
        const Chunk codes = load_weights(w, n, group, k / 2);
        float dot = 0;
        for (int word = 0; word < 4; ++word) {
            const Chunk values = reinterpret_cast<const Chunk*>(x + group * kMxGroup)[word];
            for (int i = 0; i < 8; ++i) {
                dot += doubled_e2m1(codes.words[word] >> 4 * i) * element(values, i);
            }
        }
        sum += dot * half_of_e8m0(load_mx_scale(scales, r, group, k / kMxGroup));
    }
    return sum;
}

// residual += update, and its rows brought to a root mean square of 1. A block for a token.
extern "C" __global__ void plain_add_norm(u16* residual, const u16* update, u16* normed, int hidden) {
    __shared__ float squares[kThreads];
    const long long row = static_cast<long long>(blockIdx.x) * hidden;
    float mine = 0;
    for (int i = threadIdx.x; i < hidden; i += kThreads) {
        residual[row + i] = float_to_bf16(bf16_to_float(residual[row + i]) + bf16_to_float(update[row + i]));
        mine += bf16_to_float(residual[row + i]) * bf16_to_float(residual[row + i]);
    }
    squares[threadIdx.x] = mine;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < kThreads; ++i) {
        sum += squares[i];
    }
    const float scale = 1 / sqrtf(sum / hidden + 1e-6f);
    for (int i = threadIdx.x; i < hidden; i += kThreads) {
        normed[row + i] = float_to_bf16(bf16_to_float(residual[row + i]) * scale);
    }
}

// What stands in for attention: a gate over values, both columns of the projection.
extern "C" __global__ void plain_mix(const u16* projected, u16* mixed, int columns, int width) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const u16* row = projected + static_cast<long long>(blockIdx.y) * columns;
    if (i < width) {
        const float gate = bf16_to_float(row[width + i]);
        mixed[blockIdx.y * width + i] = float_to_bf16(bf16_to_float(row[i]) / (1 + expf(-gate)));
    }
}

// The quantiser of linear: e4m3 values, as floats, and the scale of each 128 of them.
extern "C" __global__ void plain_quantise(const u16* x, int ldx, float* q, float* scales, int m, int k) {
    const int blocks = k / kQuantiserGroup, i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= m * blocks) {
        return;
    }
    const long long first = static_cast<long long>(i / blocks) * ldx + i % blocks * kQuantiserGroup;
    const Chunk* chunks = reinterpret_cast<const Chunk*>(x + first);
    float* values = q + static_cast<long long>(i) * kQuantiserGroup;
    float amax = 1e-10f;
    for (int j = 0; j < kQuantiserGroup; ++j) {
        values[j] = element(chunks[j / 8], j % 8);
        amax = larger(amax, fabsf(values[j]));
    }
    scales[i] = amax * (1.0f / 448);
    const float inverse = 1 / scales[i];
    for (int j = 0; j < kQuantiserGroup; ++j) {
        values[j] = round_to_e4m3(values[j] * inverse);
    }
}

extern "C" __global__ void plain_linear(const float* q, const float* scales, const u8* w,
                                        const float* w_scale, u16* out, int n, int k) {
    const int column = blockIdx.x * kThreads + threadIdx.x, token = blockIdx.y;
    if (column >= n) {
        return;
    }
    const int blocks = k / kQuantiserGroup;
    float sum = 0;
    for (int block = 0; block < blocks; ++block) {
        const float* values = q + (static_cast<long long>(token) * blocks + block) * kQuantiserGroup;
        float dot = 0;
        for (int chunk = 0; chunk < kQuantiserGroup / 16; ++chunk) {
            const Chunk codes = load_weights(w, column, block * (kQuantiserGroup / 16) + chunk, k);
            for (int i = 0; i < 16; ++i) {
                dot += values[chunk * 16 + i] * e4m3_to_float(codes.words[i / 4] >> i % 4 * 8);
            }
        }
        sum += scales[token * blocks + block] * w_scale[column / 128 * blocks + block] * dot;
    }
    out[static_cast<long long>(token) * n + column] = float_to_bf16(sum);
}

// Logits of the experts, rounded to bf16, and behind them the shared expert's, which is not.
extern "C" __global__ void plain_logits(const u16* x, const u16* gate, const u16* shared_gate, float* logits,
                                        int experts, int hidden) {
    const int expert = blockIdx.x * kThreads + threadIdx.x, token = blockIdx.y;
    if (expert > experts) {
        return;
    }
    const u16* weights = expert < experts ? gate + static_cast<long long>(expert) * hidden : shared_gate;
    float sum = 0;
    for (int i = 0; i < hidden; ++i) {
        sum += bf16_to_float(x[static_cast<long long>(token) * hidden + i]) * bf16_to_float(weights[i]);
    }
    logits[token * (experts + 1) + expert] = expert < experts ? bf16_to_float(float_to_bf16(sum)) : sum;
}

// The top_k experts of largest logit, the lower id first where two are equal, and the shared one behind them.
extern "C" __global__ void plain_choose(const float* logits, int* ids, int m, int experts, int top_k) {
    const int token = blockIdx.x * kThreads + threadIdx.x;
    if (token >= m) {
        return;
    }
    const float* mine = logits + token * (experts + 1);
    float last = __uint_as_float(0x7f800000);
    int last_id = -1;
    for (int k = 0; k < top_k; ++k) {
        int best = -1;
        for (int e = 0; e < experts; ++e) {
            const bool follows = mine[e] < last || (mine[e] == last && e > last_id);
            if (follows && (best < 0 || mine[e] > mine[best])) {
                best = e;
            }
        }
        last = mine[best];
        last_id = best;
        ids[token * (top_k + 1) + k] = best;
    }
    ids[token * (top_k + 1) + top_k] = experts;
}

// The weights of chosen experts, whoever chose them.
extern "C" __global__ void plain_weigh(const float* logits, const int* ids, float* weights, int m,
                                       int experts, int top_k) {
    const int token = blockIdx.x * kThreads + threadIdx.x;
    if (token >= m) {
        return;
    }
    const float* mine = logits + token * (experts + 1);
    const int first = token * (top_k + 1);
    float largest = mine[ids[first]], sum = 0;
    for (int k = 1; k < top_k; ++k) {
        largest = larger(largest, mine[ids[first + k]]);
    }
    for (int k = 0; k < top_k; ++k) {
        weights[first + k] = expf(mine[ids[first + k]] - largest);
        sum += weights[first + k];
    }
    for (int k = 0; k < top_k; ++k) {
        weights[first + k] /= sum;
    }
    weights[first + top_k] = 1 / (1 + expf(-mine[experts]));
}

// Pairs grouped by expert in blocks of block_m rows, as kiln/moe_sort.h has it. One block of threads; up to
// 1024 experts.
extern "C" __global__ void plain_sort(const int* ids, int* sorted_ids, int* sorted_expert_ids, int* num_valid,
                                      int m, int slots, int experts, int block_m) {
    __shared__ int blocks[1024];
    const int pairs = m * slots;
    for (int e = threadIdx.x; e < experts; e += kThreads) {
        int count = 0;
        for (int p = 0; p < pairs; ++p) {
            count += ids[p] == e;
        }
        blocks[e] = (count + block_m - 1) / block_m;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < experts; e += kThreads) {
        int block = 0;
        for (int before = 0; before < e; ++before) {
            block += blocks[before];
        }
        const int end = block + blocks[e];
        int row = block * block_m;
        for (; block < end; ++block) {
            sorted_expert_ids[block] = e;
        }
        for (int p = 0; p < pairs; ++p) {
            if (ids[p] == e) {
                sorted_ids[row++] = p % slots << 24 | p / slots;
            }
        }
        for (; row < end * block_m; ++row) {
            sorted_ids[row] = slots << 24 | m;
        }
        if (e == experts - 1) {
            num_valid[0] = end * block_m;
            num_valid[1] = m;
        }
    }
}

// The token of a sorted row, or -1.
__device__ inline int token_of(const int* sorted_ids, const int* num_valid, int row) {
    if (row >= num_valid[0]) {
        return -1;
    }
    const int token = sorted_ids[row] & 0xffffff;
    return token < num_valid[1] ? token : -1;
}

// silu(gate) * up of every sorted row. A block of threads for a row and 64 columns.
extern "C" __global__ void plain_gate_up(const u16* x, const u8* w13, const u8* w13_scale,
                                         const int* sorted_ids, const int* sorted_expert_ids,
                                         const int* num_valid, u16* h, int block_m, int hidden,
                                         int intermediate) {
    const int row = blockIdx.x, i = blockIdx.y * kThreads + threadIdx.x;
    const int token = token_of(sorted_ids, num_valid, row);
    if (token < 0 || i >= intermediate) {
        return;
    }
    const int expert = sorted_expert_ids[row / block_m], rows = 2 * intermediate;
    const u16* from = x + static_cast<long long>(token) * hidden;
    const u8* w = w13 + static_cast<long long>(expert) * rows * (hidden / 2);
    const float gate = mx_dot(from, w, w13_scale, i, expert * rows + i, hidden);
    const float up = mx_dot(from, w, w13_scale, intermediate + i, expert * rows + intermediate + i, hidden);
    h[static_cast<long long>(row) * intermediate + i] = float_to_bf16(gate / (1 + expf(-gate)) * up);
}

// The second product of every sorted row, put where its token and slot are.
extern "C" __global__ void plain_down(const u16* h, const u8* w2, const u8* w2_scale, const int* sorted_ids,
                                      const int* sorted_expert_ids, const int* num_valid, float* products,
                                      int block_m, int slots, int hidden, int intermediate) {
    const int row = blockIdx.x, n = blockIdx.y * kThreads + threadIdx.x;
    const int token = token_of(sorted_ids, num_valid, row);
    if (token < 0 || n >= hidden) {
        return;
    }
    const int expert = sorted_expert_ids[row / block_m], slot = sorted_ids[row] >> 24;
    const u8* w = w2 + static_cast<long long>(expert) * hidden * (intermediate / 2);
    products[static_cast<long long>(token * slots + slot) * hidden + n] = mx_dot(
        h + static_cast<long long>(row) * intermediate, w, w2_scale, n, expert * hidden + n, intermediate);
}

// The weighted sum over a token's slots, in order.
extern "C" __global__ void plain_combine(const float* products, const float* weights, u16* out, int slots,
                                         int hidden) {
    const int n = blockIdx.x * kThreads + threadIdx.x, token = blockIdx.y;
    if (n >= hidden) {
        return;
    }
    float sum = 0;
    for (int slot = 0; slot < slots; ++slot) {
        const long long pair = static_cast<long long>(token) * slots + slot;
        sum += weights[pair] * products[pair * hidden + n];
    }
    out[static_cast<long long>(token) * hidden + n] = float_to_bf16(sum);
}
