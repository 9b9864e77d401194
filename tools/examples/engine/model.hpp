// The model: decoder layers of Qwen3.5-397B, one rank's part at tensor parallel 4, every dimension an eighth
// of the real one but for top_k, and for the experts' intermediate size, of which 64 is the least
// that mxfp4 allows. Three layers of gated delta networks, then one of attention, as the model repeats them.
//
// Weights are random. Only the operators that kiln has are the model's; what stands for attention is a gate
// (plain_mix), and nothing is kept from one step to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu.hpp"

namespace engine {

inline constexpr std::int64_t kHidden = 512;
inline constexpr std::int64_t kGatedDeltaColumns = 640, kAttentionColumns = 576;  // of the first projection
inline constexpr std::int64_t kMixed = 256;                                       // what the second one takes
inline constexpr std::int64_t kExperts = 64, kTopK = 10, kIntermediate = 64;
inline constexpr std::int64_t kAllExperts = kExperts + 1, kSlots = kTopK + 1;  // with the shared expert
inline constexpr std::int64_t kMostTokens = 32;                                // in a step

// fp8 weights of a projection, n x k, and their scales, as kiln/linear.h wants them.
struct ProjectionWeights {
    std::int64_t n, k;
    Buffer w, w_scale;
};

// mxfp4 weights of the experts, as kiln/fused_moe.h wants them.
struct ExpertWeights {
    Buffer w13, w13_scale, w2, w2_scale;
};

struct Layer {
    ProjectionWeights in, out;
    Buffer gate, shared_gate;  // bf16
    ExpertWeights experts;
};

struct Model {
    std::vector<Layer> layers;
};

// The same weights for the same seed.
Model make_model(Gpu& gpu, unsigned seed);

}  // namespace engine
