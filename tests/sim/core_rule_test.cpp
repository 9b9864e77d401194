// Every rule of the machine broken once, in a kernel or on one wave: the message names the place and the
// rule.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "core_support.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void copy(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" __global__ void unaligned(const char* in, int* out) {
    out[threadIdx.x] = *(const int*)(in + 4 * threadIdx.x + (threadIdx.x == 37));
}
extern "C" __global__ void lds_reach(int* out, int n) {
    extern __shared__ int values[];
    values[threadIdx.x + n] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x + n];
}
extern "C" __global__ void lds_unwritten(int* out, int first) {
    __shared__ int values[256];
    if (threadIdx.x >= first) values[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];
}
extern "C" __global__ void register_unwritten(int* out) {
    int value;
    asm volatile("v_add_u32 %0, 1, v20" : "=v"(value) : : "v20");
    out[threadIdx.x] = value;
}
extern "C" __global__ void wait_for_first(const volatile int* flag, int* out) {
    if (blockIdx.x == 0) *out = 1;
    while (*flag == 0) {}
}
extern "C" __global__ void trap(int* out) {
    if (out[0]) __builtin_trap();
    out[1] = 1;
}
extern "C" __global__ __launch_bounds__(64) void small(int* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void scratch(int* out, int n) {
    volatile int values[64];
    for (int i = 0; i < 64; ++i) values[i] = i;
    out[threadIdx.x] = values[(threadIdx.x * n) & 63];
}
)";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(kSource);
    return result;
}

TEST_CASE("rule: a read one element past an allocation, at any work-group") {
    Bench bench(built());
    const auto in = bench.allocate<int>(1000), out = bench.allocate<int>(2000);
    std::fill(in.begin(), in.end(), 3);
    bench.run_well("copy", {4}, {256}, Arguments() << in.data() << out.data() << 1000);
    for (const unsigned threads : {1u, 3u}) {
        const std::string message =
            bench.run_badly("copy", {8}, {256}, Arguments() << in.data() << out.data() << 1100, 0, {threads});
        CAPTURE(message);
        CHECK(contains(message, "kernel copy"));
        CHECK(contains(message, "global_load_dword"));
        CHECK(contains(message, "at offset "));
        CHECK(contains(message, "work-group (3, 0, 0), wave 3, lane 40"));
        CHECK(contains(message, "4 bytes at 0x"));
        CHECK(contains(message, "outside every allocation"));
    }
}

TEST_CASE("rule: a write past an allocation, and to one that was freed") {
    Bench bench(built());
    const auto in = bench.allocate<int>(2000), out = bench.allocate<int>(1000);
    std::fill(in.begin(), in.end(), 3);
    const std::string message =
        bench.run_badly("copy", {8}, {256}, Arguments() << in.data() << out.data() << 1001);
    CHECK(contains(message, "global_store_dword"));
    CHECK(contains(message, "lane 40"));
    REQUIRE(bench.memory().free(out.data()).has_value());
    CHECK(contains(bench.run_badly("copy", {1}, {64}, Arguments() << in.data() << out.data() << 64),
                   "4 bytes at 0x"));
    CHECK(contains(
        bench.run_badly("copy", {1}, {64}, Arguments() << in.data() << static_cast<int*>(nullptr) << 64),
        "outside every allocation"));
}

TEST_CASE("rule: one broken ends work-groups that wait for the one that broke it") {
    Bench bench(built());
    const auto flag = bench.upload<int>({0});
    const auto arguments = Arguments() << flag.data() << static_cast<int*>(nullptr);
    CHECK(contains(bench.run_badly("wait_for_first", {4}, {64}, arguments, 0, {4}),
                   "outside every allocation"));
}

TEST_CASE("a run ends when it is told to stop") {
    Bench bench(built());
    const auto flag = bench.upload<int>({0}), out = bench.upload<int>({0});
    std::atomic<bool> stop = false;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stop = true;
    });
    const auto arguments = Arguments() << flag.data() << out.data();
    const sim::MachineConfig config{.threads = 2, .stop = &stop};
    CHECK(contains(bench.run_badly("wait_for_first", {4}, {64}, arguments, 0, config), "stopped"));
    stopper.join();
    CHECK(out[0] == 1);
}

TEST_CASE("rule: a misaligned access") {
    Bench bench(built());
    const auto in = bench.allocate<char>(260);
    const auto out = bench.allocate<int>(64);
    const std::string message =
        bench.run_badly("unaligned", {1}, {64}, Arguments() << in.data() << out.data());
    CHECK(contains(message, "misaligned"));
    CHECK(contains(message, "lane 37"));
}

TEST_CASE("rule: LDS past what the launch has") {
    Bench bench(built());
    const auto out = bench.allocate<int>(64);
    bench.run_well("lds_reach", {1}, {64}, Arguments() << out.data() << 0, 256);
    CHECK(contains(bench.run_badly("lds_reach", {1}, {64}, Arguments() << out.data() << 1, 256),
                   "of the 256 bytes of LDS"));
    bench.run_well("lds_reach", {1}, {64}, Arguments() << out.data() << 40896, 160 * 1024);
    const auto refused = bench.run("lds_reach", {1}, {64}, Arguments() << out.data() << 0, 160 * 1024 + 4);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::launch_failed);
    CHECK(contains(refused.error().message, "163840"));
}

TEST_CASE("rule: LDS that nothing wrote") {
    Bench bench(built());
    const auto out = bench.allocate<int>(256);
    bench.run_well("lds_unwritten", {1}, {256}, Arguments() << out.data() << 0);
    const std::string message = bench.run_badly("lds_unwritten", {1}, {256}, Arguments() << out.data() << 1);
    CHECK(contains(message, "LDS bytes, never written, which 'ds_read_b32"));
    CHECK(contains(message, "lane 0"));
    // Nothing is left over from the work-group that ran before.
    CHECK(contains(bench.run_badly("lds_unwritten", {3}, {256}, Arguments() << out.data() << 256, 0, {1}),
                   "work-group (0, 0, 0)"));
}

TEST_CASE("rule: a register that nothing wrote") {
    Bench bench(built());
    const auto out = bench.allocate<int>(64);
    const std::string message = bench.run_badly("register_unwritten", {1}, {64}, Arguments() << out.data());
    CHECK(contains(message, "global_store_dword"));
    CHECK(contains(message, "v20, never written, which 'v_add_u32"));
}

TEST_CASE("rule: registers past the kernel's allocation") {
    // As if the descriptor had promised less: the allocation is 8 registers, the kernel names v20.
    auto patched = built();
    auto object = compile::read_code_object(patched.code_object);
    REQUIRE(object.has_value());
    for (const auto& kernel : object->kernels) {
        if (kernel.name != "register_unwritten") {
            continue;
        }
        for (const auto& segment : object->segments) {
            if (kernel.descriptor_address >= segment.address &&
                kernel.descriptor_address + 64 <= segment.address + segment.contents.size()) {
                const std::size_t at =
                    static_cast<std::size_t>(segment.contents.data() - patched.code_object.data()) +
                    (kernel.descriptor_address - segment.address) + 48;
                patched.code_object[at] &= std::byte{0xc0};
            }
        }
    }
    Bench bench(patched);
    const auto out = bench.allocate<int>(64);
    const std::string message = bench.run_badly("register_unwritten", {1}, {64}, Arguments() << out.data());
    CHECK(contains(message, "v20 is named, the kernel has 8 VGPRs"));
}

TEST_CASE("rule: a trap") {
    Bench bench(built());
    const auto out = bench.upload(std::vector<int>{1, 0});
    CHECK(contains(bench.run_badly("trap", {1}, {1}, Arguments() << out.data()), "trapped"));
    out[0] = 0;
    bench.run_well("trap", {1}, {1}, Arguments() << out.data());
}

TEST_CASE("rule: a launch that does not fit the kernel") {
    Bench bench(built());
    const auto out = bench.allocate<int>(2048);
    const auto refused = [&](const char* kernel, device::Dim3 grid, device::Dim3 block,
                             const Arguments& arguments) {
        const auto result = bench.run(kernel, grid, block, arguments);
        REQUIRE_FALSE(result.has_value());
        CHECK(result.error().code == ErrorCode::launch_failed);
        return result.error().message;
    };
    CHECK(contains(refused("small", {1}, {65}, Arguments() << out.data()), "at most 64"));
    CHECK(contains(refused("small", {0}, {64}, Arguments() << out.data()), "zero dimension"));
    CHECK(contains(refused("copy", {1}, {64}, Arguments() << out.data()), "bytes of arguments"));
    CHECK(contains(refused("scratch", {1}, {64}, Arguments() << out.data() << 1), "scratch"));
}

TEST_CASE("rule: alignment and range of scalar loads and LDS, on one wave") {
    sim::Memory memory(1 << 16);
    void* block = *memory.allocate(64);
    sim::WaveState state;
    state.set_s64(2, reinterpret_cast<std::uint64_t>(block));
    state.set_v(0, 2);
    state.set_v(1, 1);
    state.lds = Bytes(64);
    const auto error = [&](std::string_view text) {
        const auto after = sim::run_wave(text, state, &memory);
        REQUIRE_FALSE(after.has_value());
        return after.error().message;
    };
    CHECK(contains(error("s_load_dwordx4 s[4:7], s[2:3], 0x34"), "outside every allocation"));
    CHECK(contains(error("s_load_dword s4, s[2:3], 0x2"), "misaligned"));
    CHECK(contains(error("ds_read_b32 v2, v0"), "misaligned"));
    CHECK(contains(error("ds_read_u8 v2, v0 offset:62"), "of the 64 bytes of LDS"));
    CHECK(contains(error("ds_write_b64 v0, v[0:1] offset:2"), "misaligned"));
    CHECK(contains(error("s_setpc_b64 s[2:3]"), "no instruction starts"));
    CHECK(contains(error("s_mov_b64 exec, 1\nv_permlane32_swap_b32_e32 v0, v1"), "switched off"));
    CHECK(contains(error("v_cvt_scalef32_pk_fp4_f32 v3, v1, v1, 0x7f800000"), "not specified"));
}

}  // namespace
}  // namespace kiln::sim_test
