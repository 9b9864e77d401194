// Random numbers for weights and inputs: uniform, the same for a seed everywhere, and quick to make by the
// million.
#pragma once

#include <cstdint>
#include <vector>

#include "bf16.hpp"

namespace engine {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) { next(1); }

    // Of mean 0 and that standard deviation.
    float next(float deviation) {
        constexpr float kSquareRootOf3 = 1.7320508F;
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31F * kSquareRootOf3 *
               deviation;
    }
    std::vector<std::uint16_t> make_bf16(std::int64_t count, float deviation) {
        std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
        for (std::uint16_t& value : values) {
            value = float_to_bf16(next(deviation));
        }
        return values;
    }

  private:
    std::uint64_t state_;
};

}  // namespace engine
