// A decode step: every layer's operators, in their order, on one stream.
#pragma once

#include <cstdint>
#include <vector>

#include "model.hpp"
#include "operators.hpp"

namespace engine {

// The arrays of a step, for up to kMostTokens. A step reads `residual`, the tokens' hidden states, and a zero
// `update`; it leaves its result in `normed`, and in `routing` what each layer chose.
struct Activations {
    Buffer residual, update, normed, projected, mixed;  // bf16
    std::vector<Routing> routing;                       // of each layer

    Activations(Gpu& gpu, const Model& model);
    void set_input(const std::vector<std::uint16_t>& hidden) const;
};

// Enqueues a step of m tokens.
Served enqueue_step(const Operators& operators, const Model& model, Plain& plain, const Activations& arrays,
                    Stream stream, std::int64_t m);

// The same, all plain, but for the choice of experts, which is `followed`'s: where two logits are as good as
// equal, either choice is right, and another one would change everything behind it. routing has the logits
// that the choice can be judged by, and the weights of the followed choice.
void enqueue_followed_step(const Model& model, Plain& plain, const Operators& all_plain,
                           const Activations& arrays, const std::vector<Routing>& followed, Stream stream,
                           std::int64_t m);

}  // namespace engine
