// Work split among machines that do not speak with each other: each computes the same split, and takes its
// own part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.hpp"
#include "runtime/operators/specialisation.hpp"

namespace kiln::service {

// What there is to split: who it is, and what it costs, in any unit.
struct ShardItem {
    Digest id;
    std::uint64_t cost = 0;
};

// The shard of each item, from 0, in the order of `items`. Requires a `count` of at least 1 and ids that
// differ.
//
// 1. It depends on the set of items and on `count` alone, not on their order.
// 2. Even: no shard costs more than 1.03 times the mean and one item.
// 3. Stable: an item keeps its shard when others come or go, unless room or the lack of it moves it. Of many
//    items for each shard few move; of a handful, most may.
[[nodiscard]] std::vector<std::uint32_t> assign_shards(std::span<const ShardItem> items, std::uint32_t count);

// The same for what is to be compiled, by what that is estimated to cost. What one vendor's compiler builds
// is split without regard to the rest, so that a machine without the other's computes the same split.
[[nodiscard]] std::vector<std::uint32_t> assign_shards(std::span<const operators::Specialisation> wanted,
                                                       std::uint32_t count);

// What compiling costs, in no unit: told from the text alone, hence the same on every machine and before
// anything was compiled. Seconds of processor time of 150 shipped specialisations, drawn at random, are told
// to within a third but for one in ten.
[[nodiscard]] std::uint64_t estimated_compile_cost(const operators::Specialisation& specialisation);

}  // namespace kiln::service
