#include "runtime/formats/weight_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace kiln::formats;

namespace {

// The layout as a reshape and a permutation of axes, the way engines write it:
// [N/16, 16, KB/32, 2, 16] -> axes (0, 2, 3, 1, 4), where the two axes of k are chunks of 32 and halves
// of 16.
std::vector<std::uint8_t> permute(const std::vector<std::uint8_t>& row_major, std::size_t rows,
                                  std::size_t row_bytes) {
    const std::size_t shape[5] = {rows / 16, 16, row_bytes / 32, 2, 16};
    const std::size_t order[5] = {0, 2, 3, 1, 4};
    std::size_t stride[5];
    stride[4] = 1;
    for (int axis = 3; axis >= 0; --axis) {
        stride[axis] = stride[axis + 1] * shape[axis + 1];
    }
    std::vector<std::uint8_t> result;
    std::size_t i[5];
    for (i[0] = 0; i[0] < shape[order[0]]; ++i[0]) {
        for (i[1] = 0; i[1] < shape[order[1]]; ++i[1]) {
            for (i[2] = 0; i[2] < shape[order[2]]; ++i[2]) {
                for (i[3] = 0; i[3] < shape[order[3]]; ++i[3]) {
                    for (i[4] = 0; i[4] < shape[order[4]]; ++i[4]) {
                        std::size_t offset = 0;
                        for (int axis = 0; axis < 5; ++axis) {
                            offset += i[axis] * stride[order[axis]];
                        }
                        result.push_back(row_major[offset]);
                    }
                }
            }
        }
    }
    return result;
}

}  // namespace

TEST_CASE("L1: equals the permutation of axes, and comes back") {
    const unsigned seed = 3;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    for (const auto& [rows, row_bytes] :
         {std::pair<std::size_t, std::size_t>{16, 32}, {48, 128}, {32, 416}, {160, 256}}) {
        CAPTURE(rows);
        CAPTURE(row_bytes);
        std::vector<std::uint8_t> row_major(rows * row_bytes);
        std::generate(row_major.begin(), row_major.end(),
                      [&] { return static_cast<std::uint8_t>(random()); });
        const std::vector<std::uint8_t> shuffled = shuffle_l1(row_major, rows, row_bytes);
        CHECK(shuffled == permute(row_major, rows, row_bytes));
        CHECK(unshuffle_l1(shuffled, rows, row_bytes) == row_major);
        for (std::size_t n = 0; n < rows; n += 7) {
            for (std::size_t kb = 0; kb < row_bytes; kb += 5) {
                REQUIRE(shuffled[l1_offset(n, kb, row_bytes)] == row_major[n * row_bytes + kb]);
            }
        }
    }
}

TEST_CASE("L1: a lane that reads 16 bytes at 1024 c + 16 l gets row l % 16 and k from 64 c + 16 (l / 16)") {
    const std::size_t row_bytes = 512;
    for (std::size_t c = 0; c < row_bytes / 64; ++c) {
        for (std::size_t lane = 0; lane < 64; ++lane) {
            CHECK(l1_offset(lane & 15, 64 * c + 16 * (lane >> 4), row_bytes) == 1024 * c + 16 * lane);
        }
    }
}
