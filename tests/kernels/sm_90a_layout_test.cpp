#include <doctest/doctest.h>

#include <set>

#include "device/sm_90a/fragment.h"
#include "device/sm_90a/quantise.h"

using namespace kiln::device;

TEST_CASE("sm_90a: the lanes of a product cover it once") {
    std::set<unsigned> places;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        for (unsigned sum = 0; sum < MmaFragment::kSums; ++sum) {
            const unsigned row = MmaFragment::row(lane, sum);
            const unsigned column = MmaFragment::column(lane, sum);
            CHECK(row < MmaFragment::kRows);
            CHECK(column < MmaFragment::kColumns);
            places.insert(row * MmaFragment::kColumns + column);
        }
    }
    CHECK(places.size() == MmaFragment::kRows * MmaFragment::kColumns);
}

TEST_CASE("sm_90a: every byte of eight quantised tokens has one place") {
    std::set<unsigned> places;
    for (unsigned piece = 0; piece < QuantisedTokens::kPieces; ++piece) {
        for (unsigned token = 0; token < MmaFragment::kColumns; ++token) {
            const unsigned offset = QuantisedTokens::offset(piece, token);
            CHECK(offset % 16 == 0);
            CHECK(offset / QuantisedTokens::kPieceBytes == piece);
            places.insert(offset);
        }
    }
    CHECK(places.size() * 16 == QuantisedTokens::kBytes);
}

// Shared memory serves 16 lanes of 8 bytes, or 8 of 16, at once when no two of them meet in a bank.
TEST_CASE("sm_90a: lanes that write or read quantised tokens meet no bank twice") {
    constexpr unsigned kBankBytes = 128;  // 32 banks of 4 bytes
    for (unsigned first_lane : {0u, 16u}) {
        std::set<unsigned> banks;
        for (unsigned lane = first_lane; lane < first_lane + 16; ++lane) {
            const unsigned t = lane % 4;
            banks.insert((QuantisedTokens::offset(t / 2, lane / 4) + t % 2 * 8) % kBankBytes / 8);
        }
        CHECK(banks.size() == 16);
    }
    for (unsigned piece = 0; piece < QuantisedTokens::kPieces; ++piece) {
        std::set<unsigned> banks;
        for (unsigned token = 0; token < 8; ++token) {
            banks.insert(QuantisedTokens::offset(piece, token) % kBankBytes / 16);
        }
        CHECK(banks.size() == 8);
    }
}
