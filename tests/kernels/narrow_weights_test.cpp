// Which element of a weight matrix a lane multiplies in which step, against the layout's own formula.
#include "device/gfx950/narrow_weights.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "device/layout.h"

using namespace kiln::device;

namespace {

template <int kBits>
void check_format() {
    using Weights = NarrowWeights<kBits>;
    constexpr u32 kRows = 48, kK = 512, kRowBytes = kK * kBits / 8;
    static_assert(Weights::row_bytes(kK) == kRowBytes);
    for (u32 first_row = 0; first_row < kRows; first_row += 16) {
        for (u32 block = 0; block < kK / kWeightBlock; ++block) {
            std::set<std::pair<u32, u32>> seen;  // (row, k)
            for (int lane = 0; lane < kWaveLanes; ++lane) {
                const u32 row = first_row + static_cast<u32>(Bf16Fragment::row(lane));
                for (int step = 0; step < Weights::kSteps; ++step) {
                    for (int element = 0; element < Weights::kStepElements; ++element) {
                        const u32 k =
                            block * kWeightBlock +
                            static_cast<u32>(Weights::lane_k(lane) + Weights::step_k(step) + element);
                        REQUIRE(seen.insert({row, k}).second);
                        // Elements in the order in which the lane's loads bring them.
                        const int number = step * Weights::kStepElements + element;
                        const int load = number / Weights::kLoadElements;
                        const u64 byte = Weights::lane_offset(row, lane, kK) + block * Weights::kBlockBytes +
                                         static_cast<u64>(load) * Weights::kLoadBytes +
                                         static_cast<u64>(number % Weights::kLoadElements) * kBits / 8;
                        REQUIRE(byte == PreshuffledWeights::offset(row, k * kBits / 8, kRowBytes));
                        // Of two e2m1 in a byte, the even k is the lower one: so is the even element.
                        REQUIRE((kBits == 8 || k % 2 == static_cast<u32>(element % 2)));
                    }
                }
            }
            REQUIRE(seen.size() == 16 * kWeightBlock);
        }
    }
}

}  // namespace

TEST_CASE(
    "narrow weights: every element of a tile is multiplied once, and lies where the layout has it (fp4)") {
    check_format<4>();
}

TEST_CASE(
    "narrow weights: every element of a tile is multiplied once, and lies where the layout has it (fp8)") {
    check_format<8>();
}
