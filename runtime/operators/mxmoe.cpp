#include "runtime/operators/mxmoe.hpp"

#include "fused_moe/mxmoe_workspace.h"
#include "moe_sort/general_workspace.h"

namespace kiln::operators {

MxmoeWorkspace mxmoe_workspace(const MxmoeBucket& bucket, std::int64_t hidden, std::int64_t intermediate,
                               std::int64_t experts, std::int64_t slots, std::int64_t m) {
    const kiln::mxmoe::Workspace sizes{
        static_cast<std::uint32_t>(hidden), static_cast<std::uint32_t>(intermediate),
        static_cast<std::uint32_t>(experts), static_cast<std::uint32_t>(slots), bucket.block_m};
    const auto tokens = static_cast<std::uint64_t>(m);
    const kiln::moe_sort::GeneralWorkspace sort{static_cast<std::uint32_t>(experts),
                                                static_cast<std::uint32_t>(m * slots)};
    constexpr std::int64_t kAlignment = 256;
    MxmoeWorkspace at;
    const auto take = [&at](std::uint64_t bytes) {
        const std::int64_t begin = at.scratch;
        at.scratch += (static_cast<std::int64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
        return begin;
    };
    at.zeroed = MxmoeWorkspace::kCounters +
                (bucket.sum == MxmoeSum::fused ? static_cast<std::int64_t>(sizes.counters()) : 0);
    at.sort = take(sort.bytes(false));
    at.sorted_ids = take(sizes.rows(tokens) * sizeof(std::int32_t));
    at.sorted_weights = take(sizes.rows(tokens) * sizeof(float));
    at.sorted_expert_ids = take(sizes.rows(tokens) / bucket.block_m * sizeof(std::int32_t));
    at.num_valid = take(2 * sizeof(std::int32_t));
    at.x_q = take(bucket.f16in ? 0 : sizes.x_q(tokens));
    at.x_scale = take(bucket.f16in ? 0 : sizes.x_scale(tokens));
    at.h_q = take(sizes.h_q(tokens));
    at.h_scale = take(sizes.h_scale(tokens));
    at.v = take(bucket.sum == MxmoeSum::atomic ? 0 : sizes.v(tokens));
    at.flag = take(sizeof(std::int32_t));
    return at;
}

}  // namespace kiln::operators
