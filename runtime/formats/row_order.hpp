// In which order a preshuffled layout takes the rows of [E, N]: as they are (L1, L3), or with gate and up of
// each expert interleaved by tiles of 16 (L2, L4).
#pragma once

#include <cassert>
#include <cstddef>

namespace kiln::formats {

class RowOrder {
  public:
    static constexpr RowOrder plain() { return RowOrder(0); }
    // Rows [E, 2 * intermediate], gate rows first. Requires a multiple of 16.
    static constexpr RowOrder gate_up(std::size_t intermediate) {
        assert(intermediate != 0 && intermediate % 16 == 0);
        return RowOrder(intermediate);
    }

    // Where a row goes, rows of all experts counted on: row g*I + m of an expert (g = 0 gate, 1 up) becomes
    // its row (m>>4)*32 + g*16 + (m&15).
    [[nodiscard]] constexpr std::size_t place(std::size_t row) const {
        if (intermediate_ == 0) {
            return row;
        }
        const std::size_t inner = row % (2 * intermediate_);
        const std::size_t half = inner / intermediate_;
        const std::size_t m = inner % intermediate_;
        return row - inner + (m >> 4) * 32 + half * 16 + (m & 15);
    }

    // Rows come in whole experts.
    [[nodiscard]] constexpr bool fits(std::size_t rows) const {
        return intermediate_ == 0 || rows % (2 * intermediate_) == 0;
    }

  private:
    explicit constexpr RowOrder(std::size_t intermediate) : intermediate_(intermediate) {}

    std::size_t intermediate_;  // 0: as they are
};

}  // namespace kiln::formats
