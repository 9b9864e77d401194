// What a launch takes of the engine's thread: stack, measured by painting one of 64 KiB, and memory, of which
// none. Over a double of HIP's driver, or with KILN_TEST_CUDA of CUDA's.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/kiln.hpp"
#ifdef KILN_TEST_CUDA
#include "runtime/compile/toolchain.hpp"
#include "tests/skipped.hpp"
#endif

namespace {

thread_local std::uint64_t num_allocations = 0;

}  // namespace

// Every allocation of the process comes through here, those of libkiln too. The C library's own entry points
// do the work.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
    ++num_allocations;
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    ++num_allocations;
    return __libc_calloc(count, bytes);
}
void* realloc(void* pointer, std::size_t bytes) {
    ++num_allocations;
    return __libc_realloc(pointer, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    ++num_allocations;
    return __libc_memalign(alignment, bytes);
}
}

namespace fs = std::filesystem;

#ifdef KILN_TEST_CUDA
std::string kiln::test::why_skipped() {
    const auto toolchain = compile::find_toolchain({}, compile::Family::cuda);
    return toolchain ? "" : toolchain.error().message;
}
#endif

namespace {

#ifdef KILN_TEST_CUDA
constexpr bool kCuda = true;
constexpr const char* kTable =
    R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "sm_90a",
          "provenance": {"kind": "untuned"}, "buckets": [
          {"max_m": 16, "template": "linear/small_m",
           "constants": {"split_k": 1, "tiles_n": 1, "warp_tiles": 1, "warps_k": 1, "steps": 1, "stages": 1,
                         "early_steps": 1}},
          {"max_m": 32, "template": "linear/small_m",
           "constants": {"split_k": 1, "tiles_n": 1, "warp_tiles": 1, "warps_k": 1, "steps": 1, "stages": 1,
                         "early_steps": 1}}]}]})";
#else
constexpr bool kCuda = false;
constexpr const char* kTable =
    R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "gfx950",
          "provenance": {"kind": "untuned"}, "buckets": [
          {"max_m": 16, "template": "linear/small_m",
           "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}},
          {"max_m": 32, "template": "linear/small_m",
           "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";
#endif

constexpr std::size_t kStackBytes = 64 * 1024;
const kiln::Linear kProblem{.n = 16, .k = 128};

class Scratch {
  public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "kiln-launch-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        folder_ = name;
        std::ofstream(path("table.json")) << kTable;
    }
    ~Scratch() { fs::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
    [[nodiscard]] kiln::Service open(const char* cache, const char* worker = nullptr,
                                     const char* log = "off") const {
        const auto cache_dir = path(cache);
        const auto shapes = path("table.json");
        auto service = kiln::Service::open({.cache_dir = cache_dir.c_str(),
                                            .shapes_path = shapes.c_str(),
                                            .device = kCuda ? "cuda" : "hip",
                                            .worker = worker,
                                            .hip_library = kCuda ? nullptr : KILN_TEST_DOUBLE,
                                            .log = log,
                                            .cuda_library = kCuda ? KILN_TEST_DOUBLE : nullptr});
        REQUIRE_MESSAGE(service, service.failure().message);
        return service;
    }

  private:
    fs::path folder_;
};

const Scratch& scratch() {
    static const Scratch instance;
    return instance;
}

// What the double answers.
template <class T>
T& control(const char* name) {
    static void* const library = dlopen(KILN_TEST_DOUBLE, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    return *static_cast<T*>(dlsym(library, name));
}

void set_device(int device) {
    static void* const library = dlopen(KILN_TEST_DOUBLE, RTLD_NOW | RTLD_LOCAL);
    reinterpret_cast<void (*)(int)>(dlsym(library, "double_set_device"))(device);
}

// One launch on a thread whose whole stack is of 64 KiB.
struct Measured {
    kiln_status status = 0;
    std::uint64_t allocations = 0;
    std::size_t stack_bytes = 0;  // with what any thread takes
};

struct Job {
    const kiln_plan* plan;
    std::int64_t m;
    const kiln_linear_args* args;
    Measured measured;
};

Measured launch_on_small_stack(const kiln_plan* plan, std::int64_t m, const kiln_linear_args* args) {
    alignas(4096) static std::byte stack[kStackBytes];
    constexpr std::byte kPaint{0xa5};
    std::fill(std::begin(stack), std::end(stack), kPaint);
    Job job{plan, m, args, {}};
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstack(&attributes, stack, sizeof stack) == 0);
    pthread_t thread{};
    const auto body = [](void* given) -> void* {
        auto& own = *static_cast<Job*>(given);
        const auto before = num_allocations;
        own.measured.status =
            own.plan != nullptr ? kiln_linear_launch(own.plan, nullptr, own.m, own.args) : KILN_OK;
        own.measured.allocations = num_allocations - before;
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, body, &job) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    pthread_attr_destroy(&attributes);
    const auto* const deepest =
        std::find_if(std::begin(stack), std::end(stack), [&](std::byte b) { return b != kPaint; });
    job.measured.stack_bytes = static_cast<std::size_t>(std::end(stack) - deepest);
    return job.measured;
}

alignas(16) std::byte memory[64];
const kiln_linear_args kGood{memory, 128, memory, reinterpret_cast<float*>(memory), memory};

kiln_linear_args with(void (*change)(kiln_linear_args&)) {
    kiln_linear_args args = kGood;
    change(args);
    return args;
}

// The C handle of a plan, released at the end.
struct Handle {
    explicit Handle(const kiln::Service& service, std::int32_t mode = KILN_PREPARE_BLOCKING) {
        kiln_linear problem = KILN_LINEAR_INIT;
        problem.n = kProblem.n;
        problem.k = kProblem.k;
        kiln_prepare_options options = KILN_PREPARE_OPTIONS_INIT;
        options.mode = mode;
        kiln_error* error = nullptr;
        const auto status = kiln_linear_prepare(service.handle(), 0, &problem, &options, &plan, &error);
        REQUIRE_MESSAGE(status == KILN_OK, kiln_error_get_message(error));
    }
    ~Handle() { kiln_plan_release(plan); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    kiln_plan* plan = nullptr;
};

std::size_t of_any_thread() {
    return launch_on_small_stack(nullptr, 0, nullptr).stack_bytes;
}

void check(const std::string& what, kiln_status expected, const Measured& measured) {
    CAPTURE(what);
    CHECK(measured.status == expected);
    CHECK(measured.allocations == 0);
    CHECK(measured.stack_bytes < kStackBytes);
    MESSAGE(what, ": ", measured.stack_bytes - of_any_thread(), " bytes of stack");
}

}  // namespace

TEST_CASE("AReadyPlanLaunchesFromASmallStackWithoutAllocating") {
    const Handle handle(scratch().open("cache"));
    check("a launch, the first of its thread", KILN_OK, launch_on_small_stack(handle.plan, 1, &kGood));
    check("a launch", KILN_OK, launch_on_small_stack(handle.plan, 17, &kGood));
    check("a launch of nothing", KILN_OK, launch_on_small_stack(handle.plan, 0, nullptr));
    // With CUDA these threads had no context, and each launch entered one for itself.
    set_device(0);
    check("a launch with the device current", KILN_OK, launch_on_small_stack(handle.plan, 1, &kGood));
    set_device(kCuda ? -1 : 0);
}

TEST_CASE("EveryDeclineOfALaunchTakesNoMemory") {
    const Handle handle(scratch().open("cache"));
    const auto declines = [&](const std::string& what, kiln_decline expected, std::int64_t m,
                              const kiln_linear_args& args) {
        check(what, expected, launch_on_small_stack(handle.plan, m, &args));  // the first of its kind
        CHECK(launch_on_small_stack(handle.plan, m, &args).allocations == 0);
    };
    declines("M negative", KILN_DECLINE_M_NEGATIVE, -1, kGood);
    declines("M too large", KILN_DECLINE_M_TOO_LARGE, 33, kGood);
    declines("a null pointer", KILN_DECLINE_NULL_POINTER, 1, with([](auto& a) { a.x = nullptr; }));
    declines("x not aligned", KILN_DECLINE_X_ALIGNMENT, 1, with([](auto& a) { a.x = memory + 8; }));
    declines("rows of x", KILN_DECLINE_X_ROW_STRIDE, 1, with([](auto& a) { a.ldx = 120; }));
    declines("w not aligned", KILN_DECLINE_W_ALIGNMENT, 1, with([](auto& a) { a.w = memory + 8; }));
    declines("w_scale not aligned", KILN_DECLINE_W_SCALE_ALIGNMENT, 1,
             with([](auto& a) { a.w_scale = reinterpret_cast<float*>(memory + 2); }));
    declines("out not aligned", KILN_DECLINE_OUT_ALIGNMENT, 1, with([](auto& a) { a.out = memory + 8; }));
    set_device(1);
    declines("another device", KILN_DECLINE_OTHER_DEVICE, 1, kGood);
    set_device(kCuda ? -1 : 0);
}

TEST_CASE("APlanThatIsNotReadyDeclinesWithoutMemory") {
    // What its worker is to compile stays in progress.
    const auto service = scratch().open("cold", KILN_TEST_SILENT_WORKER);
    {
        const Handle handle(service, KILN_PREPARE_BACKGROUND);
        check("compiling", KILN_DECLINE_COMPILING, launch_on_small_stack(handle.plan, 1, &kGood));
    }
    const Handle handle(scratch().open("cold"), KILN_PREPARE_LAZY);
    control<int>("double_capturing") = 1;
    check("a first use under capture", KILN_DECLINE_CAPTURE, launch_on_small_stack(handle.plan, 1, &kGood));
    control<int>("double_capturing") = 0;
}

TEST_CASE("ARefusedLaunchDeclinesFromThenOnWithoutMemory") {
    const Handle handle(scratch().open("cache", nullptr, "error"));
    control<int>("double_launch_error") = 700;  // of an earlier launch
    check("an earlier failure", -KILN_ERROR_DEVICE_FAILED, launch_on_small_stack(handle.plan, 1, &kGood));
    control<int>("double_launch_error") = 701;
    // This one is said in the log: the one launch that may take memory, but still little stack.
    const auto refused = launch_on_small_stack(handle.plan, 1, &kGood);
    CHECK(refused.status == -KILN_ERROR_LAUNCH_FAILED);
    CHECK(refused.stack_bytes < kStackBytes);
    MESSAGE("a refused launch: ", refused.stack_bytes - of_any_thread(), " bytes of stack");
    control<int>("double_launch_error") = 0;
    check("disabled", KILN_DECLINE_DISABLED, launch_on_small_stack(handle.plan, 1, &kGood));
}
