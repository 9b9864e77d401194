#include "runtime/formats/scale_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/formats/permute.hpp"

using namespace kiln::formats;
using kiln::test::permute;

namespace {

constexpr unsigned kSeed = 17;

using Matrix = std::vector<std::uint8_t>;

// No zero, so that it is not taken for what pads.
Matrix random_scales(std::size_t count) {
    std::mt19937 random(kSeed);
    Matrix bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(1 + random() % 255); });
    return bytes;
}

Matrix padded(const Matrix& row_major, std::size_t rows, std::size_t columns) {
    const std::size_t all_rows = (rows + 255) / 256 * 256;
    const std::size_t all_columns = (columns + 7) / 8 * 8;
    Matrix result(all_rows * all_columns);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            result[r * all_columns + c] = row_major[r * columns + c];
        }
    }
    return result;
}

// [R/32, 2, 16, C/8, 2, 4] -> axes (0, 3, 5, 2, 4, 1).
Matrix permute_l3(const Matrix& row_major, std::size_t rows, std::size_t columns) {
    const Matrix all = padded(row_major, rows, columns);
    const std::size_t all_columns = (columns + 7) / 8 * 8;
    return permute(all, {all.size() / all_columns / 32, 2, 16, all_columns / 8, 2, 4}, {0, 3, 5, 2, 4, 1});
}

}  // namespace

TEST_CASE("L3: equals the permutation of axes over padded rows and columns, and comes back") {
    INFO("seed ", kSeed);
    for (const auto& [rows, columns] :
         {std::pair<std::size_t, std::size_t>{256, 8}, {512, 24}, {1, 1}, {40, 13}, {300, 128}, {257, 9}}) {
        CAPTURE(rows);
        CAPTURE(columns);
        const Matrix row_major = random_scales(rows * columns);
        Matrix shuffled(l3_bytes(rows, columns), 0xee), back(row_major.size());
        shuffle_scales(row_major, rows, columns, RowOrder::plain(), shuffled);
        CHECK(shuffled == permute_l3(row_major, rows, columns));
        unshuffle_scales(shuffled, rows, columns, RowOrder::plain(), back);
        CHECK(back == row_major);
    }
}

TEST_CASE("L3: a dword holds two halves of columns and two of rows") {
    const std::size_t columns = 16;
    for (std::size_t r = 0; r < 64; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            const std::size_t offset = l3_offset(r, c, columns);
            CHECK(offset % 4 == c % 8 / 4 * 2 + r % 32 / 16);
            CHECK(offset / 4 * 4 == l3_offset(r % 16 + r / 32 * 32, c % 4 + c / 8 * 8, columns));
        }
    }
}

TEST_CASE("L4: gate and up alternate by tiles of 16 rows, then L3") {
    INFO("seed ", kSeed);
    struct Shape {
        std::size_t experts, intermediate, columns;
    };
    for (const Shape& shape : {Shape{1, 16, 8}, Shape{3, 48, 20}, Shape{2, 128, 128}}) {
        const auto& [experts, intermediate, columns] = shape;
        CAPTURE(experts);
        CAPTURE(intermediate);
        const std::size_t rows = experts * 2 * intermediate;
        const Matrix row_major = random_scales(rows * columns);
        const Matrix interleaved =
            permute(row_major, {experts, 2, intermediate / 16, 16 * columns}, {0, 2, 1, 3});
        Matrix shuffled(l3_bytes(rows, columns)), back(row_major.size());
        shuffle_scales(row_major, rows, columns, RowOrder::gate_up(intermediate), shuffled);
        CHECK(shuffled == permute_l3(interleaved, rows, columns));
        unshuffle_scales(shuffled, rows, columns, RowOrder::gate_up(intermediate), back);
        CHECK(back == row_major);
    }
}
