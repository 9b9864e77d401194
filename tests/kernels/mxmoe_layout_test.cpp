// How the kernels of mxmoe lay out what they leave each other, and what they keep in LDS.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "device/layout.h"
#include "fused_moe/mxmoe_tile.h"
#include "fused_moe/mxmoe_workspace.h"

using namespace kiln::mxmoe;

namespace {

// Lanes of which each reads 16 bytes of LDS at once, without waiting for each other where all banks differ.
std::vector<std::vector<std::uint32_t>> read_phases() {
    std::vector<std::vector<std::uint32_t>> phases(4);
    for (std::uint32_t half = 0; half < 2; ++half) {
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
            const bool first = lane < 4 || (lane >= 12 && lane < 16) || (lane >= 20 && lane < 28);
            phases[2 * half + (first ? 0 : 1)].push_back(32 * half + lane);
        }
    }
    return phases;
}

}  // namespace

TEST_CASE("mxmoe: a tile in LDS has a place of its own for every piece, and operands in different banks") {
    std::set<std::uint32_t> places;
    for (std::uint32_t row = 0; row < 128; ++row) {
        for (std::uint32_t piece = 0; piece < TileLayout::kRowPieces; ++piece) {
            places.insert(TileLayout::offset(row, piece));
        }
    }
    CHECK(places.size() == 128 * TileLayout::kRowPieces);
    CHECK(*places.rbegin() == 128 * kStepBytes - TileLayout::kPieceBytes);

    for (std::uint32_t chunk = 0; chunk < kStepChunks; ++chunk) {
        for (const std::vector<std::uint32_t>& lanes : read_phases()) {
            REQUIRE(lanes.size() == 16);
            std::set<std::uint32_t> slots;
            for (const std::uint32_t lane : lanes) {
                // Sixteen bytes are four of 64 banks.
                slots.insert(TileLayout::operand_offset(lane, chunk) / 16 % 16);
            }
            CHECK(slots.size() == 16);
        }
    }
    // A tile of 16 rows further on, the same lanes read the same pieces.
    for (std::uint32_t row = 0; row < 16; ++row) {
        CHECK(TileLayout::offset(16 + row, 3) == TileLayout::kOperandTileBytes + TileLayout::offset(row, 3));
    }
}

TEST_CASE("mxmoe: scales of the intermediate lie as L3 where a word is for 32 rows, and apart for 16") {
    constexpr std::uint32_t kGroups = 24, kRows = 96;
    for (std::uint32_t row = 0; row < kRows; ++row) {
        for (std::uint32_t group = 0; group < kGroups; ++group) {
            using Layout = RowScales<32>;
            CHECK(Layout::tile_offset(row, kGroups) + Layout::group_offset(group) + Layout::row_offset(row) ==
                  kiln::device::PreshuffledScales::row_offset(row, kGroups) +
                      kiln::device::PreshuffledScales::group_offset(group));
        }
    }
    std::set<std::uint64_t> places;
    for (std::uint32_t row = 0; row < kRows; ++row) {
        for (std::uint32_t group = 0; group < kGroups; ++group) {
            using Layout = RowScales<16>;
            const std::uint64_t place =
                Layout::tile_offset(row, kGroups) + Layout::group_offset(group) + Layout::row_offset(row);
            places.insert(place);
            // What a lane of a wave reads of a step: both chunks of its row.
            const std::uint32_t lane = group % 4 * 16 + row % 16;
            CHECK(place == row / 16 * 16 * kGroups + group / 8 * Layout::kTileBytes +
                               lane * Layout::kLaneBytes + group % 8 / 4);
        }
    }
    CHECK(places.size() == kRows * kGroups);
    CHECK(*places.rbegin() == kRows * kGroups - 1);
}

TEST_CASE("mxmoe: a token's scales lie side by side, both of a lane in a step as one word") {
    constexpr std::uint32_t kGroups = 16;
    std::set<std::uint64_t> places;
    for (std::uint32_t group = 0; group < kGroups; ++group) {
        const std::uint64_t place = TokenScales::offset(3, group, kGroups);
        places.insert(place);
        CHECK(place / 8 == 3 * kGroups / 8 + group / 8);
        if (group % 8 < 4) {
            CHECK(place % 2 == 0);
            CHECK(TokenScales::offset(3, group + 4, kGroups) == place + 1);
        }
    }
    CHECK(places.size() == kGroups);
}

TEST_CASE("mxmoe: no way to hand out pairs makes more blocks than there is room for, and one makes as many") {
    for (const std::uint32_t experts : {1U, 2U, 3U, 5U}) {
        for (const std::uint32_t block_m : {16U, 32U}) {
            for (std::uint32_t pairs = 0; pairs <= 100; ++pairs) {
                // The most blocks of e experts with p pairs, expert by expert.
                std::vector<std::uint32_t> most(pairs + 1, 0);
                for (std::uint32_t p = 0; p <= pairs; ++p) {
                    most[p] = (p + block_m - 1) / block_m;
                }
                for (std::uint32_t e = 1; e < experts; ++e) {
                    std::vector<std::uint32_t> next(pairs + 1, 0);
                    for (std::uint32_t p = 0; p <= pairs; ++p) {
                        for (std::uint32_t own = 0; own <= p; ++own) {
                            next[p] = std::max(next[p], most[p - own] + (own + block_m - 1) / block_m);
                        }
                    }
                    most = std::move(next);
                }
                CHECK(most_blocks(pairs, experts, block_m) == most[pairs]);
            }
        }
    }
}
