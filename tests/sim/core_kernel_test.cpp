// HIP kernels, as clang compiles them, against the same arithmetic on the host.
#include <cmath>
#include <numeric>

#include "core_support.hpp"

namespace kiln::sim_test {
namespace {

constexpr const char* kSource = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void reduce(const int* a, int* out, int n) {
    __shared__ int sums[256];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
extern "C" __global__ void collatz(const u32* start, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 v = start[i];
    int count = 0;
    while (v > 1) {
        v = (v & 1) ? 3 * v + 1 : v / 2;
        if (++count == 100) break;
    }
    steps[i] = count;
}
extern "C" __global__ void where(u32* out) {
    u32 x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    u32 width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    out[(z * height + y) * width + x] = x | y << 8 | z << 16 | (blockIdx.x + blockIdx.y + blockIdx.z) << 24;
}
extern "C" __global__ void integers(const int* a, const int* b, int* out, long long* wide, int divisor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    u32 ux = x, uy = y;
    int* o = out + i * 12;
    o[0] = x / y;
    o[1] = x % y;
    o[2] = ux / uy;
    o[3] = ux % uy;
    o[4] = x / divisor;
    o[5] = x / 7;
    o[6] = __popc(ux) + __clz(uy) + __ffs(x);
    o[7] = __umulhi(ux, uy);
    o[8] = (x >> (y & 31)) ^ (ux >> (x & 31));
    o[9] = __byte_perm(ux, uy, 0x5274);
    o[10] = __brev(ux) + (short)x * (short)y;
    o[11] = min(x, y) - max((int)(signed char)x, y >> 3);
    long long wx = (long long)x * y + divisor;
    wide[i * 3] = wx / (y | 1);
    wide[i * 3 + 1] = (long long)((u64)wx % (uy | 1));
    wide[i * 3 + 2] = (wx << (x & 31)) ^ (wx >> (y & 63));
}
extern "C" __global__ void exact_floats(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    float* o = out + i * 8;
    o[0] = x / y;
    o[1] = sqrtf(fabsf(x));
    o[2] = floorf(x) + ceilf(y) + truncf(x) + rintf(y);
    o[3] = fmaf(x, y, 1.5f);
    o[4] = (float)(int)x + (float)(u32)fabsf(y);
    o[5] = ldexpf(x, 5) - copysignf(y, x);
    o[6] = fminf(x, y) * 2.0f;
    o[7] = x > y ? x : -y;
}
extern "C" __global__ void near_floats(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    float* o = out + i * 6;
    o[0] = expf(x);
    o[1] = logf(fabsf(x));
    o[2] = sinf(x);
    o[3] = cosf(x);
    o[4] = powf(fabsf(x), 1.25f);
    o[5] = tanhf(x);
}
extern "C" __global__ void doubles(const double* a, const double* b, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    double* o = out + i * 4;
    o[0] = x / y;
    o[1] = sqrt(fabs(x)) + floor(y);
    o[2] = fma(x, y, -1.0);
    o[3] = (double)(float)x + (double)(int)y + fmin(x, y);
}
extern "C" __global__ void shuffle(const int* a, int* out) {
    int v = a[threadIdx.x];
    int sum = v;
    for (int step = 32; step > 0; step >>= 1) sum += __shfl_xor(sum, step);
    out[threadIdx.x] = sum;
    out[threadIdx.x + 64] = __shfl_up(v, 1);
    out[threadIdx.x + 128] = __shfl(v, (threadIdx.x * 7) & 63);
    out[threadIdx.x + 192] = __popcll(__ballot(v & 1));
    out[threadIdx.x + 256] = __builtin_amdgcn_update_dpp(-1, v, 0x111, 0xf, 0xf, false);
    out[threadIdx.x + 320] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
}
extern "C" __global__ void scan(const int* in, int* out, int n) {
    extern __shared__ int values[];
    int t = threadIdx.x;
    for (int i = t; i < n; i += blockDim.x) values[i] = in[i];
    __syncthreads();
    for (int step = 1; step < n; step <<= 1) {
        int v = t >= step ? values[t - step] : 0;
        __syncthreads();
        values[t] += v;
        __syncthreads();
    }
    out[t] = values[t];
}
extern "C" __global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}
struct Item { char tag; short small; int count; double value; };
__constant__ int kTable[4] = {11, 22, 33, 44};
__device__ int counter;
extern "C" __global__ void structs(Item* items, Item by, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    Item item = items[i];
    item.tag += by.tag;
    item.small = item.small * by.small;
    item.count += kTable[i & 3];
    item.value *= by.value;
    items[i] = item;
    atomicAdd(&counter, item.count);
}
extern "C" __global__ void last_block(u32* arrived, int* slots, int* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        slots[blockIdx.x] = blockIdx.x * 3;
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += slots[i];
        *out = sum;
    }
}
extern "C" __global__ void late(int* out, int turns) {
    __shared__ int value;
    if (threadIdx.x < 64) {
        int v = 1;
        for (int i = 0; i < turns; ++i) {
            asm volatile("" : "+v"(v));
            v = v * 5 + i;
        }
        value = v;
    }
    __syncthreads();
    out[threadIdx.x] = value;
}
extern "C" __global__ void uneven(int* out) {
    __shared__ int shared[256];
    if (threadIdx.x >= 192) return;
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[191 - threadIdx.x];
}
)";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(kSource);
    return result;
}

std::vector<float> floats(std::size_t count, float low, float high) {
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> values(count);
    for (float& value : values) {
        value = distribution(random());
    }
    return values;
}
std::vector<int> integers(std::size_t count) {
    std::vector<int> values(count);
    for (int& value : values) {
        value = static_cast<int>(random()() >> (random()() % 31));
        value = random()() % 2 == 0 ? value : -value;
    }
    return values;
}

TEST_CASE("core: vector add, with a block that is not full") {
    Bench bench(built());
    const int n = 1000;
    const auto a = bench.upload(floats(n, -10, 10)), b = bench.upload(floats(n, -10, 10)),
               c = bench.allocate<float>(n);
    bench.run_well("add", {8}, {130}, Arguments() << a.data() << b.data() << c.data() << n);
    for (int i = 0; i < n; ++i) {
        REQUIRE(c[i] == a[i] + b[i]);
    }
}

TEST_CASE("core: a reduction through LDS and barriers") {
    Bench bench(built());
    const int n = 5000;
    const auto a = bench.upload(integers(n)), out = bench.allocate<int>(5);
    bench.run_well("reduce", {5}, {256}, Arguments() << a.data() << out.data() << n);
    const unsigned expected =
        std::accumulate(a.begin(), a.end(), 0u, [](unsigned s, int v) { return s + unsigned(v); });
    unsigned sum = 0;
    for (const int part : out) {
        sum += static_cast<unsigned>(part);
    }
    CHECK(sum == expected);
}

TEST_CASE("core: lanes that leave a loop at different times") {
    Bench bench(built());
    const int n = 777;
    std::vector<unsigned> start(n);
    for (unsigned& v : start) {
        v = random()() % 10000;
    }
    const auto a = bench.upload(start);
    const auto out = bench.allocate<int>(n);
    bench.run_well("collatz", {4}, {256}, Arguments() << a.data() << out.data() << n);
    for (int i = 0; i < n; ++i) {
        unsigned v = start[i];
        int count = 0;
        while (v > 1) {
            v = v & 1 ? 3 * v + 1 : v / 2;
            if (++count == 100) {
                break;
            }
        }
        REQUIRE(out[i] == count);
    }
}

TEST_CASE("core: three-dimensional grids and blocks") {
    Bench bench(built());
    const device::Dim3 grid{3, 2, 4}, block{5, 7, 2};
    const auto out = bench.allocate<unsigned>(3 * 5 * 2 * 7 * 4 * 2);
    bench.run_well("where", grid, block, Arguments() << out.data());
    for (unsigned z = 0; z < 8; ++z) {
        for (unsigned y = 0; y < 14; ++y) {
            for (unsigned x = 0; x < 15; ++x) {
                REQUIRE(out[(z * 14 + y) * 15 + x] == (x | y << 8 | z << 16 | (x / 5 + y / 7 + z / 2) << 24));
            }
        }
    }
}

TEST_CASE("core: integer division and bit work") {
    Bench bench(built());
    const int n = 600, divisor = static_cast<int>(random()() % 1000) + 3;
    std::vector<int> x = integers(n), y = integers(n);
    for (int i = 0; i < n; ++i) {
        y[i] = y[i] == 0 || (x[i] == INT32_MIN && y[i] == -1) ? 5 : y[i];
    }
    const auto a = bench.upload(x), b = bench.upload(y), out = bench.allocate<int>(n * 12);
    const auto wide = bench.allocate<long long>(n * 3);
    bench.run_well("integers", {3}, {200},
                   Arguments() << a.data() << b.data() << out.data() << wide.data() << divisor << n);
    for (int i = 0; i < n; ++i) {
        CAPTURE(x[i]);
        CAPTURE(y[i]);
        const auto ux = static_cast<unsigned>(x[i]), uy = static_cast<unsigned>(y[i]);
        const int* o = &out[i * 12];
        REQUIRE(o[0] == x[i] / y[i]);
        REQUIRE(o[1] == x[i] % y[i]);
        REQUIRE(static_cast<unsigned>(o[2]) == ux / uy);
        REQUIRE(static_cast<unsigned>(o[3]) == ux % uy);
        REQUIRE(o[4] == x[i] / divisor);
        REQUIRE(o[5] == x[i] / 7);
        REQUIRE(o[6] == __builtin_popcount(ux) + (uy ? __builtin_clz(uy) : 32) + __builtin_ffs(x[i]));
        REQUIRE(static_cast<unsigned>(o[7]) ==
                static_cast<unsigned>(static_cast<unsigned long long>(ux) * uy >> 32));
        REQUIRE(static_cast<unsigned>(o[8]) ==
                (static_cast<unsigned>(x[i] >> (y[i] & 31)) ^ (ux >> (x[i] & 31))));
        const auto byte = [&](unsigned n_byte) {
            return (n_byte < 4 ? ux >> (8 * n_byte) : uy >> (8 * (n_byte - 4))) & 0xff;
        };
        REQUIRE(static_cast<unsigned>(o[9]) == (byte(4) | byte(7) << 8 | byte(2) << 16 | byte(5) << 24));
        unsigned reversed = 0;
        for (unsigned n_bit = 0; n_bit < 32; ++n_bit) {
            reversed |= (ux >> n_bit & 1) << (31 - n_bit);
        }
        REQUIRE(static_cast<unsigned>(o[10]) ==
                reversed + static_cast<unsigned>(static_cast<short>(x[i]) * static_cast<short>(y[i])));
        REQUIRE(static_cast<unsigned>(o[11]) ==
                static_cast<unsigned>(std::min(x[i], y[i])) -
                    static_cast<unsigned>(std::max<int>(static_cast<signed char>(x[i]), y[i] >> 3)));
        const long long w = static_cast<long long>(x[i]) * y[i] + divisor;
        const auto uw = static_cast<unsigned long long>(w);
        REQUIRE(wide[i * 3] == w / (y[i] | 1));
        REQUIRE(static_cast<unsigned long long>(wide[i * 3 + 1]) == uw % (uy | 1));
        REQUIRE(static_cast<unsigned long long>(wide[i * 3 + 2]) ==
                ((uw << (x[i] & 31)) ^ static_cast<unsigned long long>(w >> (y[i] & 63))));
    }
}

TEST_CASE("core: float operations that are exact or correctly rounded") {
    Bench bench(built());
    const int n = 500;
    std::vector<float> x = floats(n, -1000, 1000), y = floats(n, -30, 30);
    x[0] = 0.0f;
    x[1] = -0.0f;
    x[2] = 1e-41f;  // a denormal
    y[3] = 3e-40f;
    x[4] = 3e38f;
    const auto a = bench.upload(x), b = bench.upload(y), out = bench.allocate<float>(n * 8);
    bench.run_well("exact_floats", {2}, {256}, Arguments() << a.data() << b.data() << out.data() << n);
    for (int i = 0; i < n; ++i) {
        CAPTURE(x[i]);
        CAPTURE(y[i]);
        const float* o = &out[i * 8];
        REQUIRE(o[0] == x[i] / y[i]);
        REQUIRE(o[1] == std::sqrt(std::fabs(x[i])));
        REQUIRE(o[2] == std::floor(x[i]) + std::ceil(y[i]) + std::trunc(x[i]) + std::rint(y[i]));
        REQUIRE(o[3] == std::fma(x[i], y[i], 1.5f));
        if (std::fabs(x[i]) < 2e9f) {
            REQUIRE(o[4] == static_cast<float>(static_cast<int>(x[i])) +
                                static_cast<float>(static_cast<unsigned>(std::fabs(y[i]))));
        }
        REQUIRE(o[5] == std::ldexp(x[i], 5) - std::copysign(y[i], x[i]));
        REQUIRE(o[6] == std::fmin(x[i], y[i]) * 2.0f);
        REQUIRE(o[7] == (x[i] > y[i] ? x[i] : -y[i]));
    }
}

TEST_CASE("core: device math functions are near the host's") {
    Bench bench(built());
    const int n = 500;
    const auto a = bench.upload(floats(n, -20, 20)), out = bench.allocate<float>(n * 6);
    bench.run_well("near_floats", {2}, {256}, Arguments() << a.data() << out.data() << n);
    for (int i = 0; i < n; ++i) {
        const double x = a[i];
        CAPTURE(x);
        const double expected[6] = {std::exp(x), std::log(std::fabs(x)),       std::sin(x),
                                    std::cos(x), std::pow(std::fabs(x), 1.25), std::tanh(x)};
        for (int k = 0; k < 6; ++k) {
            CAPTURE(k);
            REQUIRE(std::fabs(out[i * 6 + k] - expected[k]) <= 3e-7 * std::fabs(expected[k]) + 1e-7);
        }
    }
}

TEST_CASE("core: float64") {
    Bench bench(built());
    const int n = 300;
    std::uniform_real_distribution<double> distribution(-1000, 1000);
    std::vector<double> x(n), y(n);
    for (int i = 0; i < n; ++i) {
        x[i] = distribution(random());
        y[i] = distribution(random());
    }
    const auto a = bench.upload(x), b = bench.upload(y), out = bench.allocate<double>(n * 4);
    bench.run_well("doubles", {2}, {192}, Arguments() << a.data() << b.data() << out.data() << n);
    for (int i = 0; i < n; ++i) {
        const double* o = &out[i * 4];
        REQUIRE(o[0] == x[i] / y[i]);
        REQUIRE(o[1] == std::sqrt(std::fabs(x[i])) + std::floor(y[i]));
        REQUIRE(o[2] == std::fma(x[i], y[i], -1.0));
        REQUIRE(o[3] == static_cast<double>(static_cast<float>(x[i])) + static_cast<int>(y[i]) +
                            std::fmin(x[i], y[i]));
    }
}

TEST_CASE("core: values move between lanes") {
    Bench bench(built());
    const auto a = bench.upload(integers(64)), out = bench.allocate<int>(384);
    bench.run_well("shuffle", {1}, {64}, Arguments() << a.data() << out.data());
    unsigned sum = 0;
    int odd = 0;
    for (const int v : a) {
        sum += static_cast<unsigned>(v);
        odd += v & 1;
    }
    for (int lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        CHECK(static_cast<unsigned>(out[lane]) == sum);
        CHECK(out[lane + 64] == a[lane == 0 ? 0 : lane - 1]);
        CHECK(out[lane + 128] == a[lane * 7 % 64]);
        CHECK(out[lane + 192] == odd);
        CHECK(out[lane + 256] == (lane % 16 == 0 ? -1 : a[lane - 1]));  // row_shr:1
        CHECK(out[lane + 320] == a[lane ^ 1]);                          // swap neighbours
    }
}

TEST_CASE("core: dynamic LDS") {
    Bench bench(built());
    const int n = 256;
    const auto in = bench.upload(integers(n)), out = bench.allocate<int>(n);
    bench.run_well("scan", {1}, {256}, Arguments() << in.data() << out.data() << n, n * 4);
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += static_cast<unsigned>(in[i]);
        REQUIRE(static_cast<unsigned>(out[i]) == sum);
    }
}

TEST_CASE("core: a tiled transposition") {
    Bench bench(built());
    const int n = 96;
    const auto in = bench.upload(floats(n * n, -1, 1)), out = bench.allocate<float>(n * n);
    bench.run_well("transpose", {3, 3}, {32, 8}, Arguments() << in.data() << out.data() << n);
    for (int y = 0; y < n; ++y) {
        for (int x = 0; x < n; ++x) {
            REQUIRE(out[x * n + y] == in[y * n + x]);
        }
    }
}

TEST_CASE("core: structures by value, constants and device variables") {
    struct Item {
        char tag;
        short small;
        int count;
        double value;
    };
    Bench bench(built());
    const int n = 50;
    std::vector<Item> items(n);
    for (int i = 0; i < n; ++i) {
        items[i] = {static_cast<char>(i), static_cast<short>(i * 3), i * 100, i * 0.5};
    }
    const auto there = bench.upload(items);
    bench.run_well("structs", {1}, {64}, Arguments() << there.data() << Item{2, -3, 0, 1.25} << n);
    const int table[4] = {11, 22, 33, 44};
    for (int i = 0; i < n; ++i) {
        REQUIRE(there[i].tag == static_cast<char>(i + 2));
        REQUIRE(there[i].small == static_cast<short>(i * -9));
        REQUIRE(there[i].count == i * 100 + table[i % 4]);
        REQUIRE(there[i].value == i * 0.5 * 1.25);
    }
}

TEST_CASE("core: the last work-group sees what the others stored") {
    Bench bench(built());
    const unsigned groups = 37;
    const auto arrived = bench.upload(std::vector<unsigned>{0});
    const auto slots = bench.allocate<int>(groups), out = bench.allocate<int>(1);
    bench.run_well("last_block", {groups}, {128}, Arguments() << arrived.data() << slots.data() << out.data(),
                   0, {4});
    CHECK(out[0] == static_cast<int>(3 * groups * (groups - 1) / 2));
}

TEST_CASE("core: waves that have ended count as arrived at a barrier") {
    Bench bench(built());
    const auto out = bench.allocate<int>(192);
    bench.run_well("uneven", {1}, {256}, Arguments() << out.data());
    for (int i = 0; i < 192; ++i) {
        REQUIRE(out[i] == 191 - i);
    }
}

TEST_CASE("core: a barrier waits for a wave however long it takes") {
    Bench bench(built());
    const auto out = bench.allocate<int>(128);
    const int turns = 60000;  // far more instructions than a wave's turn
    bench.run_well("late", {1}, {128}, Arguments() << out.data() << turns);
    unsigned v = 1;
    for (int i = 0; i < turns; ++i) {
        v = v * 5 + static_cast<unsigned>(i);
    }
    CHECK(static_cast<unsigned>(out[0]) == v);
    CHECK(static_cast<unsigned>(out[127]) == v);
}

TEST_CASE("core: any number of threads gives the same bits and counts") {
    const int n = 20000;
    const std::vector<float> x = floats(n, -3, 3);
    std::vector<float> first;
    device::ExecutionCounts first_counts;
    for (const unsigned threads : {1u, 2u, 5u}) {
        Bench bench(built());
        const auto a = bench.upload(x), out = bench.allocate<float>(n * 6);
        const auto counts = bench.run_well("near_floats", {79}, {256},
                                           Arguments() << a.data() << out.data() << n, 0, {threads});
        if (threads == 1) {
            first.assign(out.begin(), out.end());
            first_counts = counts;
            continue;
        }
        CHECK(std::memcmp(first.data(), out.data(), out.size_bytes()) == 0);
        CHECK(std::memcmp(&first_counts, &counts, sizeof counts) == 0);
    }
}

TEST_CASE("core: counts of a kernel that can be counted by hand") {
    Bench bench(built());
    const int n = 1000;
    const auto a = bench.upload(floats(n, -10, 10)), b = bench.upload(floats(n, -10, 10)),
               c = bench.allocate<float>(n);
    const auto counts =
        bench.run_well("add", {4}, {256}, Arguments() << a.data() << b.data() << c.data() << n);
    CHECK(counts.work_groups == 4);
    CHECK(counts.waves == 16);
    // 1000 lanes of 16 waves load two floats and store one; all waves but none skip: the last one has 40
    // lanes.
    CHECK(counts.vmem == 16 * 3);
    CHECK(counts.global_bytes_read == 8u * n);
    CHECK(counts.global_bytes_written == 4u * n);
    // 4000 bytes of each array, of which every work-group has lines of its own.
    CHECK(counts.global_line_requests == 3 * 32);
    CHECK(counts.global_lines_read == 2 * 32);
    CHECK(counts.die_lines_read == 2 * 32);
    CHECK(counts.global_lines_written == 32);
    CHECK(counts.mfma == 0);
    CHECK(counts.lds == 0);
    CHECK(counts.instructions == counts.valu + counts.salu + counts.smem + counts.vmem);
    // Two pointers and n, block size, the third pointer: however clang groups them, these bytes.
    CHECK(counts.scalar_bytes_read == 16 * (3 * 8 + 4 + 4));
}

}  // namespace
TEST_CASE("core: lines that several dies read are counted once for each") {
    Bench bench(R"(
extern "C" __global__ void same(const int* x, int* out) {
    out[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
}
)");
    const auto x = bench.upload(std::vector<int>(64, 5)), out = bench.allocate<int>(20 * 64);
    const auto counts = bench.run_well("same", {20}, {64}, Arguments() << x.data() << out.data());
    CHECK(counts.global_line_requests == 20 * 4);
    CHECK(counts.global_lines_read == 2);
    CHECK(counts.die_lines_read == 8 * 2);
    CHECK(counts.global_lines_written == 40);
    CHECK(counts.global_bytes_read == 20 * 256);
}

}  // namespace kiln::sim_test
