#include "device/layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "device/gfx950/weights.h"
#include "runtime/formats/scale_layout.hpp"

using namespace kiln::device;

namespace {

// As the format is published, in shifts and masks.
unsigned long long l1(unsigned n, unsigned kb, unsigned row_bytes) {
    return (n >> 4) * 16ull * row_bytes + (kb >> 4) * 256ull + (n & 15) * 16 + (kb & 15);
}

}  // namespace

TEST_CASE("preshuffled weights: every byte has one place, the published one") {
    for (const unsigned row_bytes : {128u, 384u, 1024u}) {
        CAPTURE(row_bytes);
        const unsigned rows = 48;
        std::vector<int> taken(rows * row_bytes);
        for (unsigned n = 0; n < rows; ++n) {
            for (unsigned kb = 0; kb < row_bytes; ++kb) {
                const auto offset = PreshuffledWeights::offset(n, kb, row_bytes);
                REQUIRE(offset == l1(n, kb, row_bytes));
                REQUIRE(offset < taken.size());
                ++taken[offset];
            }
        }
        CHECK(std::count(taken.begin(), taken.end(), 1) == static_cast<long>(taken.size()));
    }
}

TEST_CASE("preshuffled scales: a row's part and a group's add up to the published offset") {
    const unsigned groups = 24;
    for (unsigned row = 0; row < 600; ++row) {
        for (unsigned group = 0; group < groups; ++group) {
            REQUIRE(PreshuffledScales::row_offset(row, groups) + PreshuffledScales::group_offset(group) ==
                    kiln::formats::l3_offset(row, group, groups));
        }
    }
    CHECK(PreshuffledScales::row_offset(1u << 28, 256) == kiln::formats::l3_offset(1u << 28, 0, 256));
}

TEST_CASE("preshuffled weights: offsets past 4 GiB do not wrap") {
    CHECK(PreshuffledWeights::offset(600'000, 8191, 8192) == l1(600'000, 8191, 8192));
}

TEST_CASE("preshuffled weights: 16 bytes a lane at lane * 16 are a chunk of an fp8 fragment") {
    const unsigned row_bytes = 512;
    for (unsigned tile = 0; tile < 3; ++tile) {
        for (unsigned k_block = 0; k_block < row_bytes / 128; ++k_block) {
            for (unsigned lane = 0; lane < 64; ++lane) {
                for (unsigned byte = 0; byte < 32; ++byte) {
                    const auto read = PreshuffledWeights::tile_offset(tile, row_bytes) +
                                      WeightChunks::chunk_offset(k_block, byte / 16) +
                                      WeightChunks::lane_offset(lane) + byte % 16;
                    const auto row =
                        16 * tile + static_cast<unsigned>(Fp8Fragment::row(static_cast<int>(lane)));
                    const auto k = 128 * k_block + static_cast<unsigned>(Fp8Fragment::k(
                                                       static_cast<int>(lane), static_cast<int>(byte)));
                    REQUIRE(read == l1(row, k, row_bytes));
                }
            }
        }
    }
}
