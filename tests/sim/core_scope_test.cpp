// Memory scopes: what a work-group sees of another's stores, at the earliest and at the latest.
#include <algorithm>
#include <array>

#include "core_support.hpp"

namespace kiln::sim_test {
namespace {

constexpr std::string_view kSource = R"hip(
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
#define RELEASE() __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent")
#define ACQUIRE() __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent")
#define COMPILER_FENCE() asm volatile("" ::: "memory")
__device__ void raise(int* flag) { __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, DEVICE); }
__device__ void await(int* flag) { while (__hip_atomic_load(flag, __ATOMIC_RELAXED, DEVICE) == 0) {} }

// Work-group 0 stores once all others have looked, and raises its flag; then they look again.
extern "C" __global__ void pass_on(int* data, int* flags, int* before, int* after, int release, int acquire) {
    int block = blockIdx.x, lane = threadIdx.x;
    if (block == 0) {
        for (int n = 1; n < (int)gridDim.x; ++n) await(flags + n);
        COMPILER_FENCE();
        data[lane] = 100 + lane;
        if (release) RELEASE();
        asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
        raise(flags);
        // What it stored itself it sees, released or not.
        COMPILER_FENCE();
        before[lane] = after[lane] = data[lane];
        return;
    }
    before[block * 64 + lane] = data[lane];
    COMPILER_FENCE();
    raise(flags + block);
    await(flags);
    if (acquire) ACQUIRE();
    COMPILER_FENCE();
    after[block * 64 + lane] = data[lane];
}

// The same with device-scope stores and loads, which need no fence.
extern "C" __global__ void pass_on_relaxed(int* data, int* flags, int* after) {
    int block = blockIdx.x, lane = threadIdx.x;
    if (block == 0) {
        __hip_atomic_store(data + lane, 100 + lane, __ATOMIC_RELAXED, DEVICE);
        asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
        raise(flags);
    } else {
        await(flags);
    }
    after[block * 64 + lane] = __hip_atomic_load(data + lane, __ATOMIC_RELAXED, DEVICE);
}

// Plain stores, then read-modify-writes on the same words, by one work-group after the other.
extern "C" __global__ void mix(int* words, int* out) {
    int lane = threadIdx.x;
    words[blockIdx.x * 64 + lane] = 5;
    int old = __hip_atomic_fetch_add(words + blockIdx.x * 64 + lane, 3, __ATOMIC_RELAXED, DEVICE);
    COMPILER_FENCE();
    int now = words[blockIdx.x * 64 + lane];
    words[blockIdx.x * 64 + lane] = now + 1;
    out[blockIdx.x * 64 + lane] = 100 * old + 10 * now;
    COMPILER_FENCE();
    out[blockIdx.x * 64 + lane] +=
        __hip_atomic_load(words + blockIdx.x * 64 + lane, __ATOMIC_RELAXED, DEVICE);
}

// Bytes of one line from work-groups on all dies: each keeps its own, and none of the others'.
extern "C" __global__ void bytes(unsigned char* out, int rounds) {
    for (int n = 0; n < rounds; ++n) {
        if (threadIdx.x == n)
            out[blockIdx.x + gridDim.x * n] = blockIdx.x + n;
        if (n % 3 == 0)
            RELEASE();
    }
}

// Wave 1 stores twice and waits until `Left` of its stores may be outstanding; after the barrier wave 0 releases.
template <int Left>
__device__ void wait_for_some(int* data, int* flags, int* after) {
    int lane = threadIdx.x % 64;
    if (blockIdx.x == 0) {
        if (threadIdx.x >= 64) {
            data[lane] = 1;
            COMPILER_FENCE();
            data[64 + lane] = 1;
            asm volatile("s_waitcnt vmcnt(%0)" ::"n"(Left) : "memory");
        }
        __builtin_amdgcn_s_barrier();
        if (threadIdx.x == 0) {
            RELEASE();
            raise(flags);
        }
    } else {
        await(flags);
        ACQUIRE();
        if (threadIdx.x == 0) {
            after[0] = data[0];
            after[1] = data[64];
        }
    }
}
extern "C" __global__ void wait_for_all_stores(int* d, int* f, int* a) { wait_for_some<0>(d, f, a); }
extern "C" __global__ void wait_for_one_store(int* d, int* f, int* a) { wait_for_some<1>(d, f, a); }
extern "C" __global__ void wait_for_no_store(int* d, int* f, int* a) { wait_for_some<2>(d, f, a); }

// Work-group 1 reads through the scalar cache what work-group 0 has released.
__device__ int scalar_load(const int* from) {
    int value;
    asm volatile("s_load_dword %0, %1, 0x0\n\ts_waitcnt lgkmcnt(0)" : "=s"(value) : "s"(from) : "memory");
    return value;
}
extern "C" __global__ void through_scalar_cache(int* data, int* flags, int* after) {
    if (blockIdx.x == 0) {
        data[0] = 1;
        RELEASE();
        raise(flags);
        return;
    }
    await(flags);
    ACQUIRE();
    int stale = scalar_load(data);
    asm volatile("s_dcache_inv" ::: "memory");
    int fresh = scalar_load(data);
    after[0] = stale;
    after[1] = fresh;
}

// The last work-group adds up what all have stored. `fences`: what of the idiom is there.
enum { kRelease = 1, kAcquire = 2, kBefore = 4 /* every wave's, before the barrier */ };
template <int Fences>
__device__ void sum_up(int* partial, int* counter, int* total) {
    __shared__ int last;
    int lane = threadIdx.x, threads = blockDim.x, groups = gridDim.x;
    partial[blockIdx.x * threads + lane] = 1 + lane % 7;
    if (Fences & kRelease && Fences & kBefore)
        RELEASE();
    __syncthreads();
    if (lane == 0) {
        if (Fences & kRelease && !(Fences & kBefore))
            RELEASE();
        last = __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, DEVICE) == groups - 1;
    }
    __syncthreads();
    if (!last)
        return;
    if (Fences & kAcquire)
        ACQUIRE();
    COMPILER_FENCE();
    int sum = 0;
    for (int n = 0; n < groups; ++n)
        sum += partial[n * threads + lane];
    total[lane] = sum;
    if (lane == 0)
        *counter = 0;
}
extern "C" __global__ void sum_well(int* p, int* c, int* t) {
    sum_up<kRelease | kAcquire | kBefore>(p, c, t);
}
extern "C" __global__ void sum_unreleased(int* p, int* c, int* t) {
    sum_up<kAcquire>(p, c, t);
}
extern "C" __global__ void sum_unacquired(int* p, int* c, int* t) {
    sum_up<kRelease | kBefore>(p, c, t);
}
extern "C" __global__ void sum_released_by_one(int* p, int* c, int* t) {
    sum_up<kRelease | kAcquire>(p, c, t);
}
// With the fence that does both, before the count only.
extern "C" __global__ void sum_threadfence(int* partial, int* counter, int* total) {
    __shared__ int last;
    int lane = threadIdx.x, threads = blockDim.x, groups = gridDim.x;
    partial[blockIdx.x * threads + lane] = 1 + lane % 7;
    __threadfence();
    __syncthreads();
    if (lane == 0)
        last = __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, DEVICE) == groups - 1;
    __syncthreads();
    if (!last)
        return;
    COMPILER_FENCE();
    int sum = 0;
    for (int n = 0; n < groups; ++n)
        sum += partial[n * threads + lane];
    total[lane] = sum;
    if (lane == 0)
        *counter = 0;
}
)hip";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(std::string(kSource));
    return result;
}

sim::MachineConfig config(const std::string& order, sim::Scopes scopes) {
    return {.order = sim::parse_order(order).value(), .scopes = scopes};
}

constexpr unsigned kGroups = 10;  // 8 and 9 are on the dies of 0 and 1

struct PassedOn {
    std::array<int, kGroups> before, after;  // what lane 5 saw
};
PassedOn pass_on(sim::Scopes scopes, const std::string& order, bool release, bool acquire) {
    Bench bench(built());
    const auto data = bench.upload(std::vector<int>(64, 7)),
               flags = bench.upload(std::vector<int>(kGroups, 0));
    const auto before = bench.allocate<int>(64 * kGroups), after = bench.allocate<int>(64 * kGroups);
    bench.run_well("pass_on", {kGroups}, {64},
                   Arguments() << data.data() << flags.data() << before.data() << after.data() << int{release}
                               << int{acquire},
                   0, config(order, scopes));
    PassedOn seen{};
    for (unsigned n = 0; n < kGroups; ++n) {
        seen.before[n] = before[64 * n + 5];
        seen.after[n] = after[64 * n + 5];
    }
    // Whatever was visible when: after the launch everything is there.
    CHECK(data[5] == 105);
    return seen;
}

// Ten waves' worth of sums, `launches` times; whether all were right.
bool sums(const char* kernel, const std::string& order, sim::Scopes scopes, unsigned launches = 2) {
    constexpr unsigned kBlocks = 20, kThreads = 256;
    Bench bench(built());
    const auto partial = bench.upload(std::vector<int>(kBlocks * kThreads, 0));
    const auto counter = bench.upload<int>({0});
    const auto total = bench.upload(std::vector<int>(kThreads, 0));
    bool right = true;
    for (unsigned launch = 0; launch < launches; ++launch) {
        std::ranges::fill(total, 0);
        std::ranges::fill(partial, 0);
        bench.run_well(kernel, {kBlocks}, {kThreads},
                       Arguments() << partial.data() << counter.data() << total.data(), 0,
                       config(order, scopes));
        for (unsigned n = 0; n < kThreads; ++n) {
            right &= total[n] == static_cast<int>(kBlocks * (1 + n % 7));
        }
        CHECK(counter[0] == 0);
    }
    return right;
}

std::vector<std::string> all_orders() {
    std::vector<std::string> orders = {"any", "ascending", "descending"};
    for (int n = 0; n < 3; ++n) {
        orders.push_back("shuffle:" + std::to_string(random()()));
        orders.push_back("interleave:" + std::to_string(random()()));
    }
    return orders;
}

}  // namespace

TEST_CASE("scopes: a store reaches another die when it was released and acquired, and not before") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        for (const bool release : {false, true}) {
            for (const bool acquire : {false, true}) {
                CAPTURE(release);
                CAPTURE(acquire);
                const PassedOn late = pass_on(sim::Scopes::late, order, release, acquire);
                for (unsigned n = 1; n < kGroups; ++n) {
                    CAPTURE(n);
                    CHECK(late.before[n] == 7);
                    // The die's own L2 has it once the store was waited for.
                    CHECK(late.after[n] == (n == 8 || (release && acquire) ? 105 : 7));
                }
                CHECK(late.after[0] == 105);
                const PassedOn early = pass_on(sim::Scopes::early, order, release, acquire);
                for (unsigned n = 1; n < kGroups; ++n) {
                    CHECK(early.before[n] == 7);
                    CHECK(early.after[n] == 105);
                }
            }
        }
    }
}

TEST_CASE("scopes: device-scope stores and loads pass the caches by") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        Bench bench(built());
        const auto data = bench.upload(std::vector<int>(64, 7)), flags = bench.upload<int>({0});
        const auto after = bench.allocate<int>(64 * kGroups);
        bench.run_well("pass_on_relaxed", {kGroups}, {64},
                       Arguments() << data.data() << flags.data() << after.data(), 0,
                       config(order, sim::Scopes::late));
        for (unsigned n = 0; n < 64 * kGroups; ++n) {
            CHECK(after[n] == 100 + static_cast<int>(n % 64));
        }
    }
}

TEST_CASE("scopes: a work-group sees its own stores, loads and read-modify-writes in their order") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        Bench bench(built());
        const auto words = bench.upload(std::vector<int>(64 * kGroups, 1)),
                   out = bench.upload(std::vector<int>(64 * kGroups, 0));
        bench.run_well("mix", {kGroups}, {64}, Arguments() << words.data() << out.data(), 0,
                       config(order, sim::Scopes::late));
        CHECK(std::ranges::count(out, 500 + 80 + 9) == 64 * kGroups);
        CHECK(std::ranges::count(words, 9) == 64 * kGroups);
    }
}

TEST_CASE("scopes: dies that write into one line keep each other's bytes") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        constexpr unsigned kBlocks = 50, kRounds = 12;
        Bench bench(built());
        const auto out = bench.upload(std::vector<unsigned char>(kBlocks * kRounds + 40, 0xee));
        bench.run_well("bytes", {kBlocks}, {64}, Arguments() << out.data() << static_cast<int>(kRounds), 0,
                       config(order, sim::Scopes::late));
        for (unsigned n = 0; n < out.size(); ++n) {
            CHECK(out[n] == (n < kBlocks * kRounds ? n % kBlocks + n / kBlocks : 0xee));
        }
    }
}

TEST_CASE("scopes: the last work-group's idiom holds under every order and both extremes") {
    for (const std::string& order : all_orders()) {
        for (const sim::Scopes scopes : {sim::Scopes::early, sim::Scopes::late}) {
            CAPTURE(order);
            CHECK(sums("sum_well", order, scopes));
        }
    }
}

TEST_CASE(
    "scopes: the last work-group's idiom without its release, or its acquire, is caught in every order") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        for (const char* kernel : {"sum_unreleased", "sum_unacquired"}) {
            CAPTURE(kernel);
            CHECK_FALSE(sums(kernel, order, sim::Scopes::late));
            CHECK(sums(kernel, "ascending", sim::Scopes::early));
        }
    }
}

TEST_CASE("scopes: one thread's fence after the barrier does not release other waves' stores in flight") {
    CHECK_FALSE(sums("sum_released_by_one", "ascending", sim::Scopes::late));
    CHECK_FALSE(sums("sum_released_by_one", "descending", sim::Scopes::late));
    CHECK(sums("sum_released_by_one", "ascending", sim::Scopes::early));
}

TEST_CASE("scopes: what a wave has not waited for is in flight, what it has waited for is not") {
    struct Case {
        const char* kernel;
        int first, second;  // what the other work-group sees
    };
    for (const Case& one : {Case{"wait_for_all_stores", 1, 1}, Case{"wait_for_one_store", 1, 0},
                            Case{"wait_for_no_store", 0, 0}}) {
        CAPTURE(one.kernel);
        for (const sim::Scopes scopes : {sim::Scopes::late, sim::Scopes::early}) {
            Bench bench(built());
            const auto data = bench.upload(std::vector<int>(128, 0)), flags = bench.upload<int>({0});
            const auto after = bench.upload<int>({7, 7});
            bench.run_well(one.kernel, {2}, {128}, Arguments() << data.data() << flags.data() << after.data(),
                           0, config("ascending", scopes));
            const bool late = scopes == sim::Scopes::late;
            CHECK(after[0] == (late ? one.first : 1));
            CHECK(after[1] == (late ? one.second : 1));
            CHECK(data[0] + data[64] == 2);
        }
    }
}

TEST_CASE("scopes: buffer_inv does not touch the scalar cache, s_dcache_inv does") {
    for (const std::string& order : all_orders()) {
        CAPTURE(order);
        Bench bench(built());
        const auto data = bench.upload<int>({0}), flags = bench.upload<int>({0}),
                   after = bench.upload<int>({7, 7});
        bench.run_well("through_scalar_cache", {2}, {64},
                       Arguments() << data.data() << flags.data() << after.data(), 0,
                       config(order, sim::Scopes::late));
        CHECK(after[0] == 0);
        CHECK(after[1] == 1);
    }
}

TEST_CASE(
    "scopes: a fence before the count does not acquire what is released after it: interleaved shows it") {
    CHECK(sums("sum_threadfence", "ascending", sim::Scopes::late));
    // The window is narrow: the same orders every time, so that some are known to hit it.
    unsigned caught = 0;
    for (int seed = 0; seed < 40; ++seed) {
        caught += !sums("sum_threadfence", "interleave:" + std::to_string(seed), sim::Scopes::late, 1);
    }
    CHECK(caught > 0);
}

}  // namespace kiln::sim_test
