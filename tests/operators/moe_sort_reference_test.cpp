#include "runtime/operators/moe_sort_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace kiln::operators;

namespace {

// Three tokens of two slots, four experts, blocks of 16.
MoeSortArrays small_case() {
    MoeSortArrays arrays;
    arrays.problem = {4, 2, 16, 0, false};
    arrays.m = 3;
    arrays.ids = {2, 0, 2, -1, 3, 2};
    arrays.weights = {10, 11, 12, 13, 14, 15};
    return arrays;
}

std::vector<std::int32_t> range(const std::vector<std::int32_t>& all, std::size_t first, std::size_t count) {
    return {all.begin() + static_cast<std::ptrdiff_t>(first),
            all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

}  // namespace

TEST_CASE("moe_sort reference: a case by hand") {
    const MoeSortResult result = moe_sort_reference(small_case(), 0xee);
    constexpr std::int32_t kSlot1 = 1 << 24;
    constexpr std::int32_t kPadding = (2 << 24) | 3;
    constexpr auto kFiller = static_cast<std::int32_t>(0xeeeeeeee);

    CHECK(result.num_valid == std::vector<std::int32_t>{48, 3});
    // Capacity 6 + 4 * 16 - 2 = 68 rows, 5 blocks.
    CHECK(result.sorted_expert_ids == std::vector<std::int32_t>{0, 2, 3, kFiller, kFiller});
    REQUIRE(result.sorted_ids.size() == 68);
    CHECK(range(result.sorted_ids, 0, 2) == std::vector<std::int32_t>{kSlot1 | 0, kPadding});
    CHECK(range(result.sorted_ids, 16, 4) == std::vector<std::int32_t>{0, 1, kSlot1 | 2, kPadding});
    CHECK(range(result.sorted_ids, 32, 2) == std::vector<std::int32_t>{2, kPadding});
    CHECK(result.sorted_ids[47] == kPadding);
    CHECK(result.sorted_ids[48] == kFiller);
    CHECK(result.sorted_weights[0] == 11);
    CHECK(result.sorted_weights[18] == 15);
    CHECK(result.sorted_weights[19] == 0);
    CHECK(result.moe_buf.empty());
}

TEST_CASE("moe_sort reference: the rows that are promised suffice for the worst ids") {
    for (const std::int64_t experts : {1, 2, 3, 16, 129}) {
        for (const std::int64_t slots : {1, 5, 16}) {
            for (const std::int64_t block_m : {16, 128}) {
                const MoeSortProblem problem{experts, slots, block_m, 0, false};
                for (const std::int64_t m : {1, 2, 7, 40}) {
                    // As many experts as can be with one pair more than whole blocks.
                    const std::int64_t pairs = m * slots;
                    std::int64_t left = pairs, rows = 0;
                    for (std::int64_t expert = 0; expert < experts && left > 0; ++expert) {
                        const bool is_last = expert == experts - 1;
                        const std::int64_t own = is_last ? left : 1;
                        rows += (own + block_m - 1) / block_m * block_m;
                        left -= own;
                    }
                    CHECK(rows <= moe_sort_rows(problem, m));
                    CHECK(moe_sort_blocks(problem, m) * block_m >= moe_sort_rows(problem, m));
                }
            }
        }
    }
}

TEST_CASE("moe_sort reference: a comparison names the array and the place") {
    const MoeSortArrays arrays = make_moe_sort_case({8, 4, 16, 2048, true}, 3, 1);
    const MoeSortResult expected = moe_sort_reference(arrays, 0xff);
    CHECK(compare_moe_sort(arrays, expected, expected).passed());
    const auto remark = [&](auto change) {
        MoeSortResult found = expected;
        change(found);
        const MoeSortComparison comparison = compare_moe_sort(arrays, expected, found);
        CHECK(comparison.differing == 1);
        return comparison.remark;
    };
    CHECK(remark([](auto& r) { r.num_valid[1] = 4; }) == "num_valid[1]: expected 3, found 4");
    CHECK(remark([](auto& r) { r.sorted_ids[5] = 9; }).starts_with("sorted_ids[5]: expected "));
    CHECK(remark([](auto& r) { r.sorted_weights[0] = -1; }).starts_with("sorted_weights[0]: expected "));
    CHECK(remark([](auto& r) { r.sorted_expert_ids.back() = 1; }).starts_with("sorted_expert_ids["));
    CHECK(remark([](auto& r) { r.moe_buf[7] = 1; }) == "moe_buf[7]: expected 0, found 1");
    CHECK(remark([](auto& r) { r.q[100] ^= 1; }).starts_with("q[100]: expected "));
    CHECK(remark([](auto& r) { r.q_scale.back() = 0; }).starts_with("q_scale["));
}

TEST_CASE("moe_sort reference: cases reach into the corners, and fewer tokens are the head of more") {
    const MoeSortProblem problem{513, 11, 32, 2048, true};
    const MoeSortArrays arrays = make_moe_sort_case(problem, 14, 3);
    const auto out_of_range = [&](std::int32_t id) { return id < -1 || id >= problem.experts; };
    CHECK(std::ranges::any_of(arrays.ids, out_of_range));
    CHECK(std::ranges::count(arrays.ids, -1) >= 11);
    const MoeSortArrays shorter = make_moe_sort_case(problem, 5, 3);
    const MoeSortArrays cut = head(arrays, 5);
    CHECK(cut.ids == shorter.ids);
    CHECK(cut.weights == shorter.weights);
    CHECK(cut.x == shorter.x);

    const MoeSortArrays distinct = make_moe_sort_case({16, 16, 16, 0, false}, 4, 3, MoeSortDraw::distinct);
    for (std::size_t token = 0; token < 4; ++token) {
        CHECK(std::set<std::int32_t>(&distinct.ids[token * 16], &distinct.ids[token * 16] + 16).size() == 16);
    }
    CHECK(std::set<std::int32_t>(arrays.ids.begin(), arrays.ids.end()).size() > 50);
}
