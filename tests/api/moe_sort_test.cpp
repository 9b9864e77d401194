// moe_sort through the public interface: sizes, every reason to decline, launches that share a workspace.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "kiln/kiln.hpp"
#include "tests/api/simulator.hpp"

using kiln::MoeSort;
using kiln::test::Driver;

namespace {

const MoeSort kServed{
    .experts = 513, .slots = 11, .block_m = 32, .hidden = 4096, .quant = MoeSort::Quant::mxfp8};

std::int32_t declines(void (*change)(MoeSort&), const std::string& part = "", kiln::Config config = {}) {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open(config);
    REQUIRE_MESSAGE(service, service.failure().message);
    MoeSort problem = kServed;
    change(problem);
    kiln::Failure why;
    const kiln::Status status = service.supports(KILN_NO_DEVICE, problem, &why);
    REQUIRE(status.declined());
    CHECK_MESSAGE(why.message.find(part) != std::string::npos, why.message);
    return status.decline();
}

}  // namespace

TEST_CASE("moe_sort: sizes of arrays for M tokens") {
    // 16 * 11 + 513 * 32 - 11 rows; scales for rows in multiples of 256 and 128 groups.
    CHECK(kServed.rows(16) == 16581);
    CHECK(kServed.blocks(16) == 519);
    CHECK(kServed.scale_bytes(16) == 16640 * 128);
    CHECK(MoeSort{.experts = 4, .slots = 10, .block_m = 16}.rows(2) == 20 + 64 - 4);
    CHECK(MoeSort{.experts = 4, .slots = 10, .block_m = 16}.scale_bytes(2) == 0);
    CHECK(kServed.rows(0) > 0);
    for (const std::int64_t m : {std::int64_t{-1}, std::int64_t{1} << 24}) {
        CHECK(kServed.rows(m) == -KILN_ERROR_INVALID_ARGUMENT);
        CHECK(kServed.blocks(m) == -KILN_ERROR_INVALID_ARGUMENT);
        CHECK(kServed.scale_bytes(m) == -KILN_ERROR_INVALID_ARGUMENT);
    }
    CHECK(MoeSort{.experts = 4, .slots = 10, .block_m = 17}.rows(2) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_moe_sort_rows(nullptr, 1) == -KILN_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("moe_sort: what a problem is declined for") {
    CHECK(declines([](MoeSort& sort) { sort.experts = 1025; }, "experts=1025") == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](MoeSort& sort) { sort.slots = 17; }) == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](MoeSort& sort) { sort.block_m = 24; }) == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](MoeSort& sort) { sort.hidden = 2880; }, "quant=mxfp8") == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](MoeSort& sort) { sort.x_type = kiln::Dtype::fp16; }, "x_type=fp16") ==
          KILN_DECLINE_X_TYPE);
    CHECK(declines([](MoeSort& sort) { sort.x_inner_stride = 2; }) == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(declines([](MoeSort& sort) { sort.expert_mask = true; }) == KILN_DECLINE_EXPERT_MASK);
    CHECK(declines([](MoeSort& sort) { sort.num_local_tokens = true; }) == KILN_DECLINE_LOCAL_TOKENS);
    CHECK(declines([](MoeSort&) {}, "", {.disable = "moe_sort"}) == KILN_DECLINE_SWITCHED_OFF);
}

TEST_CASE("moe_sort: every legal problem is served, whatever no row names") {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open();
    for (const std::int64_t experts : {1, 2, 16, 128, 129, 255, 256, 257, 384, 513, 1000, 1024}) {
        for (const std::int64_t slots : {1, 4, 9, 10, 11, 16}) {
            for (const std::int64_t block_m : {16, 32, 64, 128}) {
                for (const std::int64_t hidden : {0, 8, 2048, 262144}) {
                    const MoeSort sort{
                        .experts = experts, .slots = slots, .block_m = block_m, .hidden = hidden};
                    CHECK(service.supports(KILN_NO_DEVICE, sort));
                }
                CHECK(service.supports(KILN_NO_DEVICE, MoeSort{.experts = experts,
                                                               .slots = slots,
                                                               .block_m = block_m,
                                                               .hidden = 6144,
                                                               .quant = MoeSort::Quant::mxfp8}));
            }
        }
    }
}

TEST_CASE("moe_sort: what a launch is declined for") {
    kiln::test::shared_cache();
    const auto plan = kiln::Service::open({.device = "sim", .log = "warning"}).prepare(0, kServed);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    CHECK(plan.max_m() == (1 << 24) - 1);
    CHECK(plan.workspace_bytes(5) == 0);
    CHECK(plan.workspace_bytes(6) > 0);

    alignas(256) static char memory[512];  // never reached
    const auto at = [](std::size_t offset) { return static_cast<void*>(memory + offset); };
    const auto words = [&](std::size_t offset) { return static_cast<std::int32_t*>(at(offset)); };
    const auto floats = [&](std::size_t offset) { return static_cast<float*>(at(offset)); };
    const MoeSort::Args good{words(0), floats(0), at(0), 4096,  words(0), floats(0),
                             words(0), words(0),  at(0), at(0), at(0),    at(0)};
    const auto launch = [&](std::int64_t m, const MoeSort::Args& args) {
        return plan.launch(nullptr, m, args).decline();
    };
    const auto changed = [&](auto change, std::int64_t m = 16) {
        MoeSort::Args args = good;
        change(args);
        return launch(m, args);
    };
    CHECK(launch(-1, good) == KILN_DECLINE_M_NEGATIVE);
    CHECK(launch(1 << 24, good) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(plan.launch(nullptr, 0, {}).ok());
    CHECK(changed([](auto& a) { a.ids = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.weights = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.x = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.sorted_ids = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.sorted_weights = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.sorted_expert_ids = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.num_valid = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.moe_buf = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.q = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.q_scale = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.workspace = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([&](auto& a) { a.workspace = at(128); }) == KILN_DECLINE_WORKSPACE_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.ids = reinterpret_cast<std::int32_t*>(memory + 2); }) ==
          KILN_DECLINE_IDS_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.weights = reinterpret_cast<float*>(memory + 1); }) ==
          KILN_DECLINE_WEIGHTS_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.sorted_ids = words(8); }) == KILN_DECLINE_SORTED_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.sorted_weights = floats(4); }) == KILN_DECLINE_SORTED_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.sorted_expert_ids = reinterpret_cast<std::int32_t*>(memory + 2); }) ==
          KILN_DECLINE_SORTED_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.num_valid = reinterpret_cast<std::int32_t*>(memory + 1); }) ==
          KILN_DECLINE_SORTED_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.moe_buf = at(8); }) == KILN_DECLINE_MOE_BUF_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.x = at(2); }) == KILN_DECLINE_X_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.ldx = 4088; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.ldx = 4100; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.ldx = 1 << 25; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.q = at(4); }) == KILN_DECLINE_Q_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.q_scale = at(2); }) == KILN_DECLINE_Q_SCALE_ALIGNMENT);
}
