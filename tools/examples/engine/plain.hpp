// The engine's own kernels (kernels/plain.hip), as calls. They compute what kiln's operators compute, on the
// same weights, for every M; slower. All of a Plain's work belongs on one stream: it has one set of scratch.
#pragma once

#include <cstdint>
#include <string>

#include "gpu.hpp"
#include "model.hpp"

namespace engine {

// Where moe_sort puts pairs grouped by expert: see kiln/moe_sort.h.
struct SortedPairs {
    static constexpr std::int64_t kBlockM = 16;
    Buffer ids, weights, expert_ids, num_valid;

    explicit SortedPairs(Gpu& gpu);
};

class Plain {
  public:
    // From the folder's file for the target's processor.
    Plain(Gpu& gpu, const std::string& folder, const std::string& target);

    // residual += update; normed = residual, each row brought to a root mean square of 1.
    void add_norm(Stream stream, std::int64_t m, const Buffer& residual, const Buffer& update,
                  const Buffer& normed);
    // kMixed columns of a projection's `columns`.
    void mix(Stream stream, std::int64_t m, const Buffer& projected, std::int64_t columns,
             const Buffer& mixed);

    void linear(Stream stream, std::int64_t m, const ProjectionWeights& weights, const Buffer& x,
                const Buffer& out);

    // The router in two steps: its logits, [M, kAllExperts], and then the choice and the weights of the
    // chosen. weigh() alone weighs what somebody else chose.
    void logits(Stream stream, std::int64_t m, const Layer& layer, const Buffer& x, const Buffer& logits);
    void choose(Stream stream, std::int64_t m, const Buffer& logits, const Buffer& ids);
    void weigh(Stream stream, std::int64_t m, const Buffer& logits, const Buffer& ids, const Buffer& weights);

    void sort(Stream stream, std::int64_t m, const Buffer& ids, const SortedPairs& sorted);
    // The experts over pairs that were sorted, by kiln or by sort().
    void experts(Stream stream, std::int64_t m, const ExpertWeights& weights, const Buffer& x,
                 const SortedPairs& sorted, const Buffer& routing_weights, const Buffer& out);

  private:
    Gpu* gpu_;
    struct Functions {
        Function add_norm, mix, quantise, linear, logits, choose, weigh, sort, gate_up, down, combine;
    } functions_;
    Buffer quantised_, scales_;      // of linear
    Buffer activations_, products_;  // of experts
};

}  // namespace engine
