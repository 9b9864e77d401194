// Opening a bundle of a thousand entries, and getting one out of it: what a machine that was handed a bundle
// pays before it loads anything. Also of ten thousand, which should cost the same.

#include <benchmark/benchmark.h>

#include <random>

#include <fmt/format.h>

#include "cache/bundle_file.hpp"
#include "tools/bench/scratch_folder.hpp"

namespace {

namespace cache = kiln::cache;

// More than a shipped kernel of `linear` has.
constexpr std::size_t kCodeBytes = 24 * 1024;
constexpr std::size_t kListingBytes = 60 * 1024;

cache::Key key_of(std::int64_t number) {
    return *cache::Key::make(fmt::format(R"({{"schema":1,"constants":{{"n":{}}}}})", number),
                             R"({"components":[{"build_id":"00ff","name":"libamd_comgr.so.3"}]})");
}

// Code compresses by half or so, text by much.
cache::Entry entry_of(std::int64_t number) {
    std::minstd_rand random(static_cast<unsigned>(number + 1));
    cache::Entry entry;
    for (std::size_t i = 0; i < kCodeBytes; ++i) {
        entry.code_object.push_back(i % 2 == 0 ? static_cast<std::byte>(random() >> 8) : std::byte{0x7e});
    }
    while (entry.listing.size() < kListingBytes) {
        entry.listing += fmt::format("v_add_u32 v{}, v{}, v1\n", random() % 256, random() % 256);
    }
    return entry;
}

std::filesystem::path bundle_of(std::int64_t entries) {
    static const kiln::bench::ScratchFolder scratch;
    auto path = scratch.path() / fmt::format("{}.kiln", entries);
    if (!std::filesystem::exists(path)) {
        cache::BundleWriter writer;
        for (std::int64_t i = 0; i < entries; ++i) {
            if (!writer.add(*cache::serialise(key_of(i), entry_of(i)))) {
                std::exit(3);
            }
        }
        if (!cache::publish_bundle(path, *writer.write("{}"))) {
            std::exit(3);
        }
    }
    return path;
}

void Open(benchmark::State& state) {
    const auto path = bundle_of(state.range(0));
    for (auto _ : state) {
        if (!cache::open_bundle_layer(path, cache::TrustedKeys())) {
            std::exit(3);
        }
    }
}
BENCHMARK(Open)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

void GiveOne(benchmark::State& state) {
    const auto layer = *cache::open_bundle_layer(bundle_of(state.range(0)), cache::TrustedKeys());
    std::int64_t number = 0;
    for (auto _ : state) {
        const auto found = layer->find(key_of(number++ % state.range(0)));
        if (!found || !*found || !(*found)->code_object()) {
            std::exit(3);
        }
    }
}
BENCHMARK(GiveOne)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

void GiveOneByRequest(benchmark::State& state) {
    const auto layer = *cache::open_bundle_layer(bundle_of(state.range(0)), cache::TrustedKeys());
    std::int64_t number = 0;
    for (auto _ : state) {
        const auto found = layer->find_by_request(key_of(number++ % state.range(0)).request_digest());
        if (!found || !*found || !(*found)->code_object()) {
            std::exit(3);
        }
    }
}
BENCHMARK(GiveOneByRequest)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
