// The order of work-groups and waves, and waits between work-groups.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core_support.hpp"

namespace kiln::sim_test {
namespace {

constexpr std::string_view kSource = R"(
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
// When each wave came to draw its number, `turns` times.
extern "C" __global__ void draw(int* counter, int* numbers, int turns) {
    int wave = blockIdx.x * (blockDim.x / 64) + threadIdx.x / 64;
    for (int n = 0; n < turns; ++n) {
        if (threadIdx.x % 64 == 0)
            numbers[wave * turns + n] = __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, DEVICE);
    }
}
// Each work-group waits for the one after it.
extern "C" __global__ void chain(int* flags, int* out) {
    int block = blockIdx.x;
    if (block + 1 < (int)gridDim.x) {
        while (__hip_atomic_load(flags + block + 1, __ATOMIC_ACQUIRE, DEVICE) == 0) __builtin_amdgcn_s_sleep(1);
    }
    if (threadIdx.x == 0) {
        out[block] = block + 1 < (int)gridDim.x ? out[block + 1] + 1 : 1;
        __hip_atomic_store(flags + block, 1, __ATOMIC_RELEASE, DEVICE);
    }
}
// A barrier over all work-groups: the last wave of each waits while the others are at its barrier.
extern "C" __global__ void meet(int* arrived, int* out, int in_vain) {
    extern __shared__ int lds[];
    int last = blockDim.x - 1;
    lds[threadIdx.x] = 1;
    if ((int)threadIdx.x == last) {
        __hip_atomic_fetch_add(arrived, 1, __ATOMIC_RELEASE, DEVICE);
        while (__hip_atomic_load(arrived, __ATOMIC_ACQUIRE, DEVICE) < (int)gridDim.x + in_vain) {}
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = lds[last];
}
extern "C" __global__ void wait_for_last(int* flag, int* nowhere) {
    if (blockIdx.x + 1 == gridDim.x) {
        nowhere[threadIdx.x] = 1;
        __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, DEVICE);
    } else {
        while (__hip_atomic_load(flag, __ATOMIC_RELAXED, DEVICE) == 0) {}
    }
}
)";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(std::string(kSource));
    return result;
}

sim::RunOrder order(const std::string& text) {
    const auto parsed = sim::parse_order(text);
    REQUIRE_MESSAGE(parsed.has_value(), (parsed ? std::string{} : parsed.error().message));
    CHECK(sim::to_text(*parsed) == text);
    return *parsed;
}

const std::vector<std::string>& all_orders() {
    static const std::vector<std::string> orders = [] {
        std::vector<std::string> texts = {"any", "ascending", "descending"};
        for (const char* seeded : {"shuffle:", "interleave:", "interleave:"}) {
            texts.push_back(seeded + std::to_string(random()()));
        }
        return texts;
    }();
    return orders;
}

std::vector<int> draw(const std::string& text, unsigned groups, unsigned waves, int turns = 1) {
    Bench bench(built());
    const auto counter = bench.upload<int>({0});
    const auto numbers = bench.allocate<int>(groups * waves * static_cast<unsigned>(turns));
    bench.run_well("draw", {groups}, {64 * waves}, Arguments() << counter.data() << numbers.data() << turns,
                   0, {.order = order(text)});
    return {numbers.begin(), numbers.end()};
}

bool is_permutation(std::vector<int> numbers) {
    std::ranges::sort(numbers);
    for (std::size_t n = 0; n < numbers.size(); ++n) {
        if (numbers[n] != static_cast<int>(n)) {
            return false;
        }
    }
    return true;
}

}  // namespace

TEST_CASE("order: texts") {
    for (const char* text : {"", "up", "shuffle", "shuffle:", "shuffle:1x", "shuffle:-1", "ascending:1",
                             "interleave:99999999999999999999"}) {
        const auto parsed = sim::parse_order(text);
        REQUIRE_FALSE(parsed.has_value());
        CHECK(contains(parsed.error().message, "interleave:SEED"));
        CHECK(contains(parsed.error().message, std::string("\"") + text + "\""));
    }
    CHECK(sim::parse_scopes("late").value() == sim::Scopes::late);
    CHECK(sim::parse_scopes("early").value() == sim::Scopes::early);
    CHECK(contains(sim::parse_scopes("never").error().message, "expected early or late, found \"never\""));
}

TEST_CASE("order: a shuffle starts every work-group once, whatever their number") {
    for (const std::uint64_t count : {1u, 2u, 3u, 17u, 64u, 257u, 5000u}) {
        std::vector<int> indices;
        for (std::uint64_t n = 0; n < count; ++n) {
            indices.push_back(static_cast<int>(sim::group_at({sim::RunOrder::shuffle, 7}, count, n)));
        }
        CHECK(is_permutation(indices));
    }
}

TEST_CASE("order: ascending and descending, of work-groups and of waves") {
    const std::vector<int> up = draw("ascending", 20, 3), down = draw("descending", 20, 3);
    for (int n = 0; n < 60; ++n) {
        CHECK(up[static_cast<std::size_t>(n)] == n);
        CHECK(down[static_cast<std::size_t>(n)] == 59 - n);
    }
}

TEST_CASE("order: a seed says the order, another one another") {
    for (const std::string kind : {"shuffle:", "interleave:"}) {
        CAPTURE(kind);
        const std::vector<int> one = draw(kind + "1", 20, 3), again = draw(kind + "1", 20, 3),
                               two = draw(kind + "2", 20, 3);
        CHECK(is_permutation(one));
        CHECK(is_permutation(two));
        CHECK(one == again);
        CHECK(one != two);
        CHECK(one != draw("ascending", 20, 3));
    }
    // Shuffled, a work-group's waves take their turns one after the other.
    const std::vector<int> shuffled = draw("shuffle:3", 20, 3);
    bool waves_in_order = true;
    for (std::size_t group = 0; group < 20; ++group) {
        const int lowest = *std::min_element(&shuffled[3 * group], &shuffled[3 * group] + 3);
        CHECK(lowest % 3 == 0);
        CHECK(*std::max_element(&shuffled[3 * group], &shuffled[3 * group] + 3) == lowest + 2);
        waves_in_order &= std::is_sorted(&shuffled[3 * group], &shuffled[3 * group] + 3);
    }
    CHECK_FALSE(waves_in_order);
}

TEST_CASE("order: interleaved, waves of several work-groups go on in turns") {
    constexpr int kTurns = 20;
    const std::vector<int> numbers = draw("interleave:5", 8, 2, kTurns);
    CHECK(is_permutation(numbers));
    // How often a wave draws after another one did in between.
    int interrupted = 0;
    for (std::size_t n = 1; n < numbers.size(); ++n) {
        interrupted += n % kTurns != 0 && numbers[n] != numbers[n - 1] + 1;
    }
    CHECK(interrupted > 50);
    // The first work-group to draw is not done before another one begins.
    const auto first = std::ranges::find(numbers, 0) - numbers.begin();
    const auto of_group = [&](std::ptrdiff_t n) { return n / (2 * kTurns); };
    bool other_between = false;
    for (std::size_t n = 0; n < numbers.size(); ++n) {
        const auto group = of_group(static_cast<std::ptrdiff_t>(n));
        other_between |=
            group != of_group(first) &&
            numbers[n] < *std::max_element(&numbers[static_cast<std::size_t>(of_group(first)) * 40],
                                           &numbers[static_cast<std::size_t>(of_group(first)) * 40] + 40);
    }
    CHECK(other_between);
}

TEST_CASE("order: waits between work-groups end, whichever comes first") {
    for (const std::string& text : all_orders()) {
        for (const sim::Scopes scopes : {sim::Scopes::early, sim::Scopes::late}) {
            CAPTURE(text);
            CAPTURE(to_text(scopes));
            constexpr unsigned kGroups = 100;
            Bench bench(built());
            const auto flags = bench.upload(std::vector<int>(kGroups, 0));
            const auto out = bench.upload(std::vector<int>(kGroups, 0));
            const sim::MachineConfig config{.order = order(text), .scopes = scopes};
            bench.run_well("chain", {kGroups}, {64}, Arguments() << flags.data() << out.data(), 0, config);
            for (unsigned n = 0; n < kGroups; ++n) {
                CHECK(out[n] == static_cast<int>(kGroups - n));
            }
            const auto arrived = bench.upload<int>({0});
            bench.run_well("meet", {kGroups}, {128}, Arguments() << arrived.data() << out.data() << 0, 512,
                           config);
            CHECK(arrived[0] == static_cast<int>(kGroups));
            CHECK(std::ranges::count(out, 1) == kGroups);
        }
    }
}

TEST_CASE("order: as many work-groups as the machine holds are in flight together, and no more") {
    Bench bench(built());
    const auto arrived = bench.upload<int>({0});
    const auto out = bench.allocate<int>(257);
    // One a compute unit.
    const std::uint32_t lds = sim::kMaxLdsBytes;
    const auto arguments = Arguments() << arrived.data() << out.data() << 0;
    bench.run_well("meet", {256}, {64}, arguments, lds, {.order = order("descending")});
    CHECK(arrived[0] == 256);

    arrived[0] = 0;
    std::atomic<bool> stop = false;
    std::thread stopper([&] {
        while (__atomic_load_n(arrived.data(), __ATOMIC_RELAXED) < 256) {
            std::this_thread::yield();
        }
        stop = true;
    });
    const std::string message =
        bench.run_badly("meet", {257}, {64}, arguments, lds, {.order = order("ascending"), .stop = &stop});
    stopper.join();
    CHECK(contains(message, "stopped before its end"));
    CHECK(arrived[0] == 256);
}

TEST_CASE("order: a broken rule ends work-groups that wait for the one that broke it") {
    for (const std::string& text : all_orders()) {
        CAPTURE(text);
        Bench bench(built());
        const auto flag = bench.upload<int>({0});
        const auto arguments = Arguments() << flag.data() << static_cast<int*>(nullptr);
        CHECK(contains(bench.run_badly("wait_for_last", {40}, {64}, arguments, 0, {.order = order(text)}),
                       "outside every allocation"));
    }
}

}  // namespace kiln::sim_test
