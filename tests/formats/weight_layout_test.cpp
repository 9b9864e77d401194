#include "runtime/formats/weight_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/formats/permute.hpp"

using namespace kiln::formats;
using kiln::test::permute;

namespace {

constexpr unsigned kSeed = 3;

using Matrix = std::vector<std::uint8_t>;

Matrix random_bytes(std::size_t count) {
    std::mt19937 random(kSeed);
    Matrix bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return bytes;
}

// [N/16, 16, KB/32, 2, 16] -> axes (0, 2, 3, 1, 4), where the two axes of k are chunks of 32 and halves of
// 16.
Matrix permute_l1(const Matrix& row_major, std::size_t rows, std::size_t row_bytes) {
    return permute(row_major, {rows / 16, 16, row_bytes / 32, 2, 16}, {0, 2, 3, 1, 4});
}

}  // namespace

TEST_CASE("L1: equals the permutation of axes, and comes back") {
    INFO("seed ", kSeed);
    for (const auto& [rows, row_bytes] :
         {std::pair<std::size_t, std::size_t>{16, 32}, {48, 128}, {32, 416}, {160, 256}}) {
        CAPTURE(rows);
        CAPTURE(row_bytes);
        const Matrix row_major = random_bytes(rows * row_bytes);
        Matrix shuffled(row_major.size()), back(row_major.size());
        shuffle_weights(row_major, rows, row_bytes, RowOrder::plain(), shuffled);
        CHECK(shuffled == permute_l1(row_major, rows, row_bytes));
        unshuffle_weights(shuffled, rows, row_bytes, RowOrder::plain(), back);
        CHECK(back == row_major);
        for (std::size_t n = 0; n < rows; n += 7) {
            for (std::size_t kb = 0; kb < row_bytes; kb += 5) {
                REQUIRE(shuffled[l1_offset(n, kb, row_bytes)] == row_major[n * row_bytes + kb]);
            }
        }
    }
}

TEST_CASE("L1: experts lie one after the other") {
    const std::size_t experts = 3, rows = 32, row_bytes = 64;
    const Matrix row_major = random_bytes(experts * rows * row_bytes);
    Matrix shuffled(row_major.size());
    shuffle_weights(row_major, experts * rows, row_bytes, RowOrder::plain(), shuffled);
    for (std::size_t e = 0; e < experts; ++e) {
        const auto first = static_cast<std::ptrdiff_t>(e * rows * row_bytes);
        const auto last = first + static_cast<std::ptrdiff_t>(rows * row_bytes);
        const Matrix one(row_major.begin() + first, row_major.begin() + last);
        Matrix alone(one.size());
        shuffle_weights(one, rows, row_bytes, RowOrder::plain(), alone);
        CHECK(std::equal(alone.begin(), alone.end(), shuffled.begin() + first));
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

TEST_CASE("L2: equals the permutation of axes, and comes back") {
    INFO("seed ", kSeed);
    struct Shape {
        std::size_t experts, intermediate, row_bytes;
    };
    for (const Shape& shape : {Shape{1, 16, 64}, Shape{3, 48, 128}, Shape{2, 128, 64}}) {
        const auto& [experts, intermediate, row_bytes] = shape;
        CAPTURE(experts);
        CAPTURE(intermediate);
        const std::size_t rows = experts * 2 * intermediate;
        const Matrix row_major = random_bytes(rows * row_bytes);
        // [E, 2, I/16, 16 * KB] -> (0, 2, 1, 3): tiles of gate and up alternate.
        const Matrix interleaved =
            permute(row_major, {experts, 2, intermediate / 16, 16 * row_bytes}, {0, 2, 1, 3});
        Matrix shuffled(row_major.size()), back(row_major.size());
        shuffle_weights(row_major, rows, row_bytes, RowOrder::gate_up(intermediate), shuffled);
        CHECK(shuffled == permute_l1(interleaved, rows, row_bytes));
        unshuffle_weights(shuffled, rows, row_bytes, RowOrder::gate_up(intermediate), back);
        CHECK(back == row_major);
    }
}
