// A step against the all-plain path.
#pragma once

#include <cstdint>
#include <vector>

#include "decode.hpp"
#include "engine.hpp"

namespace engine {

// How far a step is from the all-plain path on the same input: the worst token.
//
// Both paths compute the same, up to the order in which products are added up. That moves the last bit of a
// logit in bf16 now and then, which of a logit between 4 and 8 is 3% of an expert's weight, and fp8
// quantising carries it on: hence the bounds. A kernel that is wrong is off by far more.
struct Deviation {
    // Of the result: the L2 norm of the difference over that of the plain one.
    double hidden = 0;
    // Of routing weights, absolutely.
    double weights = 0;
    // Of the choice of experts: how much better, by the plain path's logits, the best expert left out is than
    // the worst one chosen.
    double choice = 0;

    static constexpr double kHiddenBound = 0.1, kWeightsBound = 0.1, kChoiceBound = 0.1;
    [[nodiscard]] bool passed() const {
        return hidden < kHiddenBound && weights < kWeightsBound && choice < kChoiceBound;
    }
};

class Checker {
  public:
    explicit Checker(const Engine& engine);

    // Of the engine's last step, which made `result` of `hidden`.
    [[nodiscard]] Deviation compare(const std::vector<std::uint16_t>& hidden,
                                    const std::vector<std::uint16_t>& result) const;

  private:
    const Engine* engine_;
    Operators all_plain_;
    Activations arrays_;
};

}  // namespace engine
