#include "plain.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace engine {

namespace {

constexpr unsigned kThreads = 64;
constexpr std::int64_t kQuantiserGroup = 128, kMostK = kHidden;
constexpr std::int64_t kMostPairs = kMostTokens * kSlots;
// Every expert that has a pair may fill a block up.
constexpr std::int64_t kMostRows = kMostPairs + kAllExperts * (SortedPairs::kBlockM - 1);

std::size_t bytes_of(std::int64_t count, std::size_t size) {
    return static_cast<std::size_t>(count) * size;
}

std::vector<char> read_code_object(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (bytes.empty()) {
        throw Error(path +
                    ": expected the engine's kernels, found nothing to read; README.md says how to "
                    "build them");
    }
    return bytes;
}

Grid over(std::int64_t columns, std::int64_t rows) {
    return {static_cast<unsigned>((columns + kThreads - 1) / kThreads), static_cast<unsigned>(rows)};
}

// Arguments of a kernel, in their own types.
template <class... Arguments>
void launch(Gpu& gpu, Function function, Grid grid, Stream stream, Arguments... arguments) {
    void* pointers[] = {&arguments...};
    gpu.launch(function, grid, kThreads, stream, pointers);
}

int narrow(std::int64_t value) {
    return static_cast<int>(value);
}

void* at(const Buffer& buffer) {
    return buffer.as<void>();
}

}  // namespace

SortedPairs::SortedPairs(Gpu& gpu)
    : ids(gpu, bytes_of(kMostRows, sizeof(std::int32_t))),
      weights(gpu, bytes_of(kMostRows, sizeof(float))),
      expert_ids(gpu, bytes_of(kMostRows / kBlockM + 1, sizeof(std::int32_t))),
      num_valid(gpu, 2 * sizeof(std::int32_t)) {}

Plain::Plain(Gpu& gpu, const std::string& folder, const std::string& target)
    : gpu_(&gpu),
      quantised_(gpu, bytes_of(kMostTokens * kMostK, sizeof(float))),
      scales_(gpu, bytes_of(kMostTokens * kMostK / kQuantiserGroup, sizeof(float))),
      activations_(gpu, bytes_of(kMostRows * kIntermediate, sizeof(std::uint16_t))),
      products_(gpu, bytes_of(kMostPairs * kHidden, sizeof(float))) {
    const std::vector<char> code_object =
        read_code_object(folder + "/plain." + target.substr(0, target.find(':')) + ".co");
    const auto load = [&](const char* kernel) { return gpu.load(code_object, kernel); };
    functions_ = {load("plain_add_norm"), load("plain_mix"),    load("plain_quantise"), load("plain_linear"),
                  load("plain_logits"),   load("plain_choose"), load("plain_weigh"),    load("plain_sort"),
                  load("plain_gate_up"),  load("plain_down"),   load("plain_combine")};
}

void Plain::add_norm(Stream stream, std::int64_t m, const Buffer& residual, const Buffer& update,
                     const Buffer& normed) {
    launch(*gpu_, functions_.add_norm, {static_cast<unsigned>(m)}, stream, at(residual), at(update),
           at(normed), narrow(kHidden));
}

void Plain::mix(Stream stream, std::int64_t m, const Buffer& projected, std::int64_t columns,
                const Buffer& mixed) {
    launch(*gpu_, functions_.mix, over(kMixed, m), stream, at(projected), at(mixed), narrow(columns),
           narrow(kMixed));
}

void Plain::linear(Stream stream, std::int64_t m, const ProjectionWeights& weights, const Buffer& x,
                   const Buffer& out) {
    const auto [n, k] = std::pair(weights.n, weights.k);
    launch(*gpu_, functions_.quantise, over(m * k / kQuantiserGroup, 1), stream, at(x), narrow(k),
           at(quantised_), at(scales_), narrow(m), narrow(k));
    launch(*gpu_, functions_.linear, over(n, m), stream, at(quantised_), at(scales_), at(weights.w),
           at(weights.w_scale), at(out), narrow(n), narrow(k));
}

void Plain::logits(Stream stream, std::int64_t m, const Layer& layer, const Buffer& x, const Buffer& logits) {
    launch(*gpu_, functions_.logits, over(kAllExperts, m), stream, at(x), at(layer.gate),
           at(layer.shared_gate), at(logits), narrow(kExperts), narrow(kHidden));
}

void Plain::choose(Stream stream, std::int64_t m, const Buffer& logits, const Buffer& ids) {
    launch(*gpu_, functions_.choose, over(m, 1), stream, at(logits), at(ids), narrow(m), narrow(kExperts),
           narrow(kTopK));
}

void Plain::weigh(Stream stream, std::int64_t m, const Buffer& logits, const Buffer& ids,
                  const Buffer& weights) {
    launch(*gpu_, functions_.weigh, over(m, 1), stream, at(logits), at(ids), at(weights), narrow(m),
           narrow(kExperts), narrow(kTopK));
}

void Plain::sort(Stream stream, std::int64_t m, const Buffer& ids, const SortedPairs& sorted) {
    launch(*gpu_, functions_.sort, Grid{}, stream, at(ids), at(sorted.ids), at(sorted.expert_ids),
           at(sorted.num_valid), narrow(m), narrow(kSlots), narrow(kAllExperts),
           narrow(SortedPairs::kBlockM));
}

void Plain::experts(Stream stream, std::int64_t m, const ExpertWeights& weights, const Buffer& x,
                    const SortedPairs& sorted, const Buffer& routing_weights, const Buffer& out) {
    // A graph is captured for every routing of m tokens: rows that this one has not end at once.
    const std::int64_t pairs = m * kSlots;
    const std::int64_t rows = std::min(kMostRows, pairs * SortedPairs::kBlockM);
    const auto by_row = [&](std::int64_t columns) {
        return Grid{static_cast<unsigned>(rows), over(columns, 1).x};
    };
    launch(*gpu_, functions_.gate_up, by_row(kIntermediate), stream, at(x), at(weights.w13),
           at(weights.w13_scale), at(sorted.ids), at(sorted.expert_ids), at(sorted.num_valid),
           at(activations_), narrow(SortedPairs::kBlockM), narrow(kHidden), narrow(kIntermediate));
    launch(*gpu_, functions_.down, by_row(kHidden), stream, at(activations_), at(weights.w2),
           at(weights.w2_scale), at(sorted.ids), at(sorted.expert_ids), at(sorted.num_valid), at(products_),
           narrow(SortedPairs::kBlockM), narrow(kSlots), narrow(kHidden), narrow(kIntermediate));
    launch(*gpu_, functions_.combine, over(kHidden, m), stream, at(products_), at(routing_weights), at(out),
           narrow(kSlots), narrow(kHidden));
}

}  // namespace engine
