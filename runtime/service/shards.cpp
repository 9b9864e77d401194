#include "runtime/service/shards.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "runtime/compile/target_family.hpp"

namespace kiln::service {

namespace {

// How much an item wants to be in a shard: the highest bidder of those with room has it (rendezvous hashing).
// A shard's bid does not depend on how many there are. The mixing is that of SplitMix64.
std::uint64_t bid(std::uint64_t item, std::uint32_t shard) {
    std::uint64_t mixed = item + (std::uint64_t{shard} + 1) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

std::uint64_t head_of(const Digest& id) {
    std::uint64_t head = 0;
    std::memcpy(&head, id.bytes.data(), sizeof head);
    return head;
}

}  // namespace

std::vector<std::uint32_t> assign_shards(std::span<const ShardItem> items, std::uint32_t count) {
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return items[i].id; });

    std::uint64_t total = 0;
    for (const ShardItem& item : items) {
        total += item.cost;
    }
    // In hundredths of a cost. What would stand out by less than its half still has room: else, where a shard
    // holds a handful, nearly every item would go where it does not want to be.
    const std::uint64_t room = total * 103 / count;
    std::vector<std::uint64_t> loads(count);
    std::vector<std::uint32_t> shards(items.size());
    for (const std::size_t i : order) {
        const ShardItem& item = items[i];
        const std::uint64_t head = head_of(item.id);
        std::uint32_t best = 0;
        std::uint64_t best_bid = 0;
        bool found = false;
        for (std::uint32_t shard = 0; shard < count; ++shard) {
            if (loads[shard] * 100 + item.cost * 50 > room) {
                continue;
            }
            if (const std::uint64_t offered = bid(head, shard); !found || offered > best_bid) {
                found = true;
                best = shard;
                best_bid = offered;
            }
        }
        if (!found) {
            best = static_cast<std::uint32_t>(std::ranges::min_element(loads) - loads.begin());
        }
        loads[best] += item.cost;
        shards[i] = best;
    }
    return shards;
}

std::vector<std::uint32_t> assign_shards(std::span<const operators::Specialisation> wanted,
                                         std::uint32_t count) {
    std::map<compile::Family, std::vector<std::size_t>> families;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        families[compile::family_of(wanted[i].target.processor)].push_back(i);
    }
    std::vector<std::uint32_t> shards(wanted.size());
    for (const auto& [family, members] : families) {
        std::vector<ShardItem> items;
        for (const std::size_t i : members) {
            items.push_back({sha256(wanted[i].request_document), estimated_compile_cost(wanted[i])});
        }
        const std::vector<std::uint32_t> assigned = assign_shards(items, count);
        for (std::size_t i = 0; i < members.size(); ++i) {
            shards[members[i]] = assigned[i];
        }
    }
    return shards;
}

std::uint64_t estimated_compile_cost(const operators::Specialisation& specialisation) {
    // What the compiler takes without any text of ours, in bytes of such text: least squares over the sample
    // gave 0.07 s and 5.7 ms for each kilobyte.
    constexpr std::uint64_t kWithoutText = 12'000;
    const compile::CompileRequest& request = specialisation.request;
    std::uint64_t bytes = request.source.size();
    for (const compile::Header& header : request.headers) {
        bytes += header.text.size();
    }
    return kWithoutText + bytes;
}

}  // namespace kiln::service
