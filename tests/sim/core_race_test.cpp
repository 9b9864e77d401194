// Races in LDS and in memory: every planted one is found, under every order, with both instructions named;
// what the rule orders passes.
#include <doctest/doctest.h>

#include <string>

#include "core_support.hpp"

namespace kiln::sim_test {
namespace {

constexpr const char* kSource = R"(
typedef unsigned int u32;
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
#define RELEASE() __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent")
#define ACQUIRE() __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent")

// Each wave reads what the other wrote. `barriers`: 1 before reading, 2 before writing again.
extern "C" __global__ void swap_waves(int* out, int barriers) {
    __shared__ int values[128];
    int t = threadIdx.x;
    values[t] = t;
    if (barriers & 1) __syncthreads();
    int other = values[t ^ (blockDim.x >> 1)];
    asm volatile("" : "+v"(other));
    if (barriers & 2) __syncthreads();
    values[t] = other + 1;
    out[t] = values[t];
}
// Two waves write the bytes of every word, each its own.
extern "C" __global__ void own_bytes(u32* out, int shift) {
    __shared__ unsigned char bytes[256];
    bytes[2 * (threadIdx.x & 63) + (threadIdx.x >> 6 << shift)] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x < 32) out[threadIdx.x] = ((u32*)bytes)[threadIdx.x];
}
extern "C" __global__ void count_lds(int* out) {
    __shared__ int counts[4];
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&counts[threadIdx.x & 3], 1);
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = counts[threadIdx.x];
}
// The last wave to arrive, by a counter in LDS, adds up. `atomic`: how the others arrive.
extern "C" __global__ void last_wave(int* out, int atomic) {
    __shared__ int sums[4], arrived;
    if (threadIdx.x == 0) arrived = sums[0] = sums[1] = sums[2] = sums[3] = 0;
    __syncthreads();
    int wave = threadIdx.x >> 6, before = 3;
    if ((threadIdx.x & 63) == 0) {
        sums[wave] = wave + 1;
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        if (atomic) before = atomicAdd(&arrived, 1);
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (before == 3 && (atomic || wave == 3)) *out = sums[0] + sums[1] + sums[2] + sums[3];
    }
}
extern "C" __global__ void one_place(int* out) { if (threadIdx.x == 0) out[blockIdx.x & 1] = blockIdx.x; }
extern "C" __global__ void shift_down(int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i + 1];
}
extern "C" __global__ void halves(unsigned short* out) {
    out[2 * threadIdx.x + blockIdx.x] = 7 + blockIdx.x;
}
extern "C" __global__ void through_memory(int* there, int* out, int barrier) {
    there[threadIdx.x] = threadIdx.x;
    if (barrier) __syncthreads();
    out[threadIdx.x] = there[threadIdx.x ^ 64];
}
extern "C" __global__ void scalar(int* there, int* out) {
    if (blockIdx.x == 1 && threadIdx.x == 0) there[5] = 1;
    if (blockIdx.x == 0) out[threadIdx.x] = there[5];
}
// Fences of the last-block idiom: 1 all release, 2 all acquire; 4: thread 0 alone releases, after the barrier;
// 8: the barrier before counting.
extern "C" __global__ void last_block(u32* arrived, int* slots, int* out, int fences) {
    __shared__ bool last;
    slots[blockIdx.x * 128 + threadIdx.x] = blockIdx.x;
    if (fences & 1) RELEASE();
    if (fences & 8) __syncthreads();
    if (threadIdx.x == 0) {
        if (fences & 4) RELEASE();
        last = __hip_atomic_fetch_add(arrived, 1, __ATOMIC_RELAXED, DEVICE) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    if (fences & 2) ACQUIRE();
    int sum = 0;
    for (int n = 0; n < (int)gridDim.x; ++n) sum += slots[n * 128 + threadIdx.x];
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0) *arrived = 0;
}
// Work-group n waits for n - 1: each adds to what that one left.
extern "C" __global__ void chain(u32* flags, int* sum, int release) {
    if (threadIdx.x == 0 && blockIdx.x > 0)
        while (__hip_atomic_load(flags + blockIdx.x - 1, __ATOMIC_RELAXED, DEVICE) == 0) {}
    __syncthreads();
    ACQUIRE();
    if (threadIdx.x == 0) *sum += blockIdx.x;
    if (release) RELEASE();
    __syncthreads();
    if (threadIdx.x == 0) __hip_atomic_store(flags + blockIdx.x, 1, __ATOMIC_RELAXED, DEVICE);
}
// Counted by all but work-group 1, which reads the count without order.
extern "C" __global__ void look(u32* counter, const u32* again, u32* out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x != 1) __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, DEVICE);
    else if (again) *out = *again;
    else *out = __hip_atomic_load(counter, __ATOMIC_RELAXED, DEVICE);
}
// Every work-group adds (1, 2) to each pair of bf16. `peek`: one only reads, plainly, what the others add.
typedef short s16x2 __attribute__((ext_vector_type(2)));
typedef __attribute__((address_space(1))) s16x2* Pairs;
extern "C" __global__ void add_pairs(u32* sums, u32* out, int peek) {
    if (peek && blockIdx.x == 1) out[threadIdx.x] = sums[threadIdx.x ^ 1];
    else __builtin_amdgcn_global_atomic_fadd_v2bf16((Pairs)(sums + threadIdx.x), s16x2{0x3f80, 0x4000});
}
)";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(kSource);
    return result;
}

std::vector<sim::MachineConfig> every_way() {
    using sim::RunOrder;
    std::vector<sim::MachineConfig> all;
    for (const RunOrder order : {RunOrder{},
                                 {RunOrder::descending},
                                 {RunOrder::shuffle, random()()},
                                 {RunOrder::interleave, random()()}}) {
        for (const sim::Scopes scopes : {sim::Scopes::early, sim::Scopes::late}) {
            sim::MachineConfig config;
            config.order = order;
            config.scopes = scopes;
            config.checks = sim::Checks::all();
            all.push_back(config);
        }
    }
    return all;
}

class RaceBench : public Bench {
  public:
    RaceBench() : Bench(built()) {}
    // `arguments` makes them anew for every way, with memory as the kernel wants to find it.
    template <class Make>
    void passes(const char* kernel, unsigned groups, unsigned items, Make&& arguments) {
        for (const sim::MachineConfig& config : every_way()) {
            CAPTURE(to_text(config.order));
            CAPTURE(to_text(config.scopes));
            run_well(kernel, {groups}, {items}, arguments(), 0, config);
        }
    }
    template <class Make>
    std::string races(const char* kernel, unsigned groups, unsigned items, Make&& arguments) {
        std::string message;
        for (const sim::MachineConfig& config : every_way()) {
            message = run_badly(kernel, {groups}, {items}, arguments(), 0, config);
            CAPTURE(message);
            CAPTURE(to_text(config.order));
            CHECK(contains(message, ": a race: "));
        }
        return message;
    }
};

TEST_CASE("race: LDS, the barrier before or after reading left out") {
    RaceBench bench;
    const auto out = bench.allocate<int>(128);
    const auto arguments = [&](int barriers) { return Arguments() << out.data() << barriers; };
    bench.passes("swap_waves", 1, 128, [&] { return arguments(3); });
    CHECK(out[1] == 66);
    const std::string read = bench.races("swap_waves", 1, 128, [&] { return arguments(2); });
    CAPTURE(read);
    CHECK(contains(read, "at LDS address"));
    CHECK(contains(read, "of the same work-group too; no barrier lies between"));
    CHECK((contains(read, "touched by 'ds_write_b32") || contains(read, "touched by 'ds_read_b32")));
    CHECK((contains(read, "kernel swap_waves: 'ds_write_b32") ||
           contains(read, "kernel swap_waves: 'ds_read_b32")));
    bench.races("swap_waves", 1, 128, [&] { return arguments(1); });
    // One wave alone needs no barrier.
    bench.passes("swap_waves", 1, 64, [&] { return arguments(2); });
}

TEST_CASE("race: bytes of a word are told apart") {
    RaceBench bench;
    const auto out = bench.allocate<unsigned>(32);
    bench.passes("own_bytes", 1, 128, [&] { return Arguments() << out.data() << 0; });
    CHECK(out[0] == 0x41014000);
    bench.races("own_bytes", 1, 128, [&] { return Arguments() << out.data() << 1; });
    const auto halves = bench.allocate<std::uint16_t>(258);
    bench.passes("halves", 2, 128, [&] { return Arguments() << halves.data(); });
    bench.races("halves", 3, 128, [&] { return Arguments() << halves.data(); });
}

TEST_CASE("race: atomic operations in LDS do not race, and order what lies around them") {
    RaceBench bench;
    const auto out = bench.allocate<int>(4);
    bench.passes("count_lds", 1, 256, [&] { return Arguments() << out.data(); });
    CHECK(out[3] == 64);
    bench.passes("last_wave", 1, 256, [&] { return Arguments() << out.data() << 1; });
    CHECK(out[0] == 10);
    CHECK(contains(bench.races("last_wave", 1, 256, [&] { return Arguments() << out.data() << 0; }),
                   "no barrier lies between"));
}

TEST_CASE("race: two work-groups on one place of memory") {
    RaceBench bench;
    const auto out = bench.allocate<int>(2);
    bench.passes("one_place", 2, 64, [&] { return Arguments() << out.data(); });
    const std::string message = bench.races("one_place", 3, 64, [&] { return Arguments() << out.data(); });
    CAPTURE(message);
    CHECK(contains(message, "kernel one_place: 'global_store_dword"));
    CHECK(contains(message, "touched by 'global_store_dword"));
    CHECK((contains(message, "of work-group (0, 0, 0), wave 0 too") ||
           contains(message, "of work-group (2, 0, 0), wave 0 too")));
    CHECK(contains(message, "no release, atomic access and acquire at device scope"));
    // Launches are apart.
    bench.passes("one_place", 1, 64, [&] { return Arguments() << out.data(); });
}

TEST_CASE("race: a neighbour's element is read before or after it is overwritten") {
    RaceBench bench;
    const auto x = bench.upload(std::vector<int>(257, 1));
    const std::string message = bench.races("shift_down", 4, 64, [&] { return Arguments() << x.data(); });
    CAPTURE(message);
    CHECK(contains(message, "global_load_dword"));
    CHECK(contains(message, "global_store_dword"));
    bench.passes("shift_down", 1, 64, [&] { return Arguments() << x.data(); });
    const auto out = bench.allocate<int>(64);
    CHECK(contains(bench.races("scalar", 2, 64, [&] { return Arguments() << x.data() << out.data(); }),
                   "load_dword"));
}

TEST_CASE("race: waves of one work-group through memory") {
    RaceBench bench;
    const auto there = bench.allocate<int>(128), out = bench.allocate<int>(128);
    bench.passes("through_memory", 1, 128, [&] { return Arguments() << there.data() << out.data() << 1; });
    CHECK(out[0] == 64);
    CHECK(contains(
        bench.races("through_memory", 1, 128, [&] { return Arguments() << there.data() << out.data() << 0; }),
        "no barrier lies between"));
}

TEST_CASE("race: the last work-group reads what the others stored") {
    RaceBench bench;
    const unsigned groups = 20;
    const auto arrived = bench.allocate<unsigned>(1);
    const auto slots = bench.allocate<int>(groups * 128), out = bench.allocate<int>(128);
    const auto arguments = [&](int fences) {
        return [&, fences] {
            arrived[0] = 0;
            return Arguments() << arrived.data() << slots.data() << out.data() << fences;
        };
    };
    bench.passes("last_block", groups, 128, arguments(1 | 2 | 8));
    CHECK(out[127] == 190);
    CHECK(arrived[0] == 0);
    for (const int fences : {2 | 8, 1 | 8, 8}) {
        CAPTURE(fences);
        const std::string message = bench.races("last_block", groups, 128, arguments(fences));
        CAPTURE(message);
        CHECK(contains(message, "global_load_dword"));
        CHECK(contains(message, "touched by 'global_store_dword"));
    }
    // Without the barrier, what the second wave stores is not counted.
    bench.races("last_block", groups, 128, arguments(2 | 4));
}

TEST_CASE("race: work-groups that wait for each other") {
    RaceBench bench;
    const unsigned groups = 12;
    const auto flags = bench.allocate<unsigned>(groups);
    const auto sum = bench.allocate<int>(1);
    const auto arguments = [&](int release) {
        return [&, release] {
            std::fill(flags.begin(), flags.end(), 0);
            sum[0] = 0;
            return Arguments() << flags.data() << sum.data() << release;
        };
    };
    bench.passes("chain", groups, 64, arguments(1));
    CHECK(sum[0] == 66);
    bench.races("chain", groups, 64, arguments(0));
}

TEST_CASE("race: a counter is read without order") {
    RaceBench bench;
    const auto counter = bench.upload<unsigned>({0}), out = bench.upload<unsigned>({0});
    const unsigned* const none = nullptr;
    bench.passes("look", 3, 64, [&] { return Arguments() << counter.data() << none << out.data(); });
    bench.races("look", 3, 64, [&] { return Arguments() << counter.data() << counter.data() << out.data(); });
}

TEST_CASE("race: work-groups that add to the same pairs of bf16 do not race") {
    RaceBench bench;
    const auto sums = bench.allocate<unsigned>(128), out = bench.allocate<unsigned>(128);
    const auto arguments = [&](int peek) {
        return [&, peek] {
            // However the adds are ordered, every sum on the way is exact.
            for (const unsigned sum : sums) {
                CHECK((sum == 0 || peek != 0 || sum == 0x41c04140));
            }
            std::fill(sums.begin(), sums.end(), 0);
            return Arguments() << sums.data() << out.data() << peek;
        };
    };
    std::fill(sums.begin(), sums.end(), 0);
    bench.passes("add_pairs", 12, 128, arguments(0));
    CHECK(sums[127] == 0x41c04140);  // 24, 12
    CHECK(contains(bench.races("add_pairs", 12, 128, arguments(1)), "global_atomic_pk_add_bf16"));
}

TEST_CASE("race: nothing is looked for when the check is off") {
    RaceBench bench;
    const auto out = bench.allocate<int>(2);
    bench.run_well("one_place", {8}, {64}, Arguments() << out.data());
}

}  // namespace
}  // namespace kiln::sim_test
