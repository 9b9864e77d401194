#include "runtime/service/shards.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using kiln::Digest;
using kiln::service::assign_shards;
using kiln::service::ShardItem;

namespace {

struct Random {
    unsigned seed = std::random_device{}();
    std::mt19937 engine{seed};

    std::uint64_t below(std::uint64_t end) { return engine() % end; }
    // As unlike as what kiln compiles, and more.
    std::vector<ShardItem> items(std::size_t count) {
        std::vector<ShardItem> result;
        for (std::size_t i = 0; i < count; ++i) {
            result.push_back(
                {kiln::sha256(std::to_string(engine()) + "/" + std::to_string(i)), 20'000 + below(80'000)});
        }
        return result;
    }
};

std::map<Digest, std::uint32_t> by_id(const std::vector<ShardItem>& items, std::uint32_t count) {
    const auto shards = assign_shards(items, count);
    REQUIRE(shards.size() == items.size());
    std::map<Digest, std::uint32_t> result;
    for (std::size_t i = 0; i < items.size(); ++i) {
        REQUIRE(shards[i] < count);
        result[items[i].id] = shards[i];
    }
    return result;
}

// The part of `before` that is elsewhere in `after`.
double moved(const std::map<Digest, std::uint32_t>& before, const std::map<Digest, std::uint32_t>& after) {
    const auto elsewhere = std::ranges::count_if(before, [&](const auto& item) {
        return after.contains(item.first) && after.at(item.first) != item.second;
    });
    return static_cast<double>(elsewhere) / static_cast<double>(before.size());
}

}  // namespace

TEST_CASE("shards: the same set gives the same split in whatever order it comes") {
    Random random;
    INFO("seed " << random.seed);
    auto items = random.items(300);
    const auto split = by_id(items, 7);
    std::ranges::shuffle(items, random.engine);
    CHECK(by_id(items, 7) == split);
    CHECK(assign_shards(std::vector<ShardItem>(), 3).empty());
    for (const auto& [id, shard] : by_id(items, 1)) {
        CHECK(shard == 0);
    }
}

TEST_CASE("shards: none costs more than the mean, three hundredths and one item") {
    Random random;
    INFO("seed " << random.seed);
    for (const std::size_t size : {1, 5, 44, 810, 10'000}) {
        for (const std::uint32_t count : {2, 3, 4, 16, 100}) {
            const auto items = random.items(size);
            const auto shards = assign_shards(items, count);
            std::vector<std::uint64_t> loads(count);
            std::uint64_t total = 0;
            std::uint64_t largest = 0;
            for (std::size_t i = 0; i < items.size(); ++i) {
                loads[shards[i]] += items[i].cost;
                total += items[i].cost;
                largest = std::max(largest, items[i].cost);
            }
            const auto mean = static_cast<double>(total) / count;
            INFO(size << " items, " << count << " shards");
            CHECK(static_cast<double>(*std::ranges::max_element(loads)) <=
                  1.03 * mean + static_cast<double>(largest));
        }
    }
}

TEST_CASE("shards: equal costs are shared out to within one") {
    Random random;
    INFO("seed " << random.seed);
    auto items = random.items(45);
    for (auto& item : items) {
        item.cost = 50'000;
    }
    std::vector<int> sizes(4);
    for (const auto shard : assign_shards(items, 4)) {
        ++sizes[shard];
    }
    CHECK(*std::ranges::max_element(sizes) == 12);
}

TEST_CASE("shards: what is added or taken away moves few of many") {
    Random random;
    INFO("seed " << random.seed);
    for (const std::uint32_t count : {2, 4, 16}) {
        auto items = random.items(1'000);
        const auto before = by_id(items, count);
        const auto more = random.items(10);
        items.insert(items.end(), more.begin(), more.end());
        INFO(count << " shards");
        CHECK(moved(before, by_id(items, count)) < 0.08);
        items.erase(items.begin(), items.begin() + 10);
        CHECK(moved(before, by_id(items, count)) < 0.08);
    }
    // A machine that joins takes its part and leaves the rest about where it was.
    const auto items = random.items(1'000);
    CHECK(moved(by_id(items, 4), by_id(items, 5)) < 0.4);
}
