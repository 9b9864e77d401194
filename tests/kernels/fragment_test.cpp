#include "device/gfx950/fragment.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "device/convert.h"

using namespace kiln::device;

namespace {

// The instruction set's own words: q = lane >> 4, r = lane & 15; registers 0 to 3 hold k = 16q .. 16q + 15,
// registers 4 to 7 k = 64 + 16q and on; four bytes a register, the lowest first.
int fp8_k(unsigned lane, unsigned reg, unsigned byte) {
    const unsigned q = lane >> 4;
    return static_cast<int>(reg < 4 ? 16 * q + 4 * reg + byte : 64 + 16 * q + 4 * (reg - 4) + byte);
}

template <int kLaneRows>
void check_slice() {
    using Slice = TokenSlice<kLaneRows>;
    CAPTURE(kLaneRows);
    std::set<std::pair<int, int>> seen;
    for (int lane = 0; lane < 64; ++lane) {
        for (int element = 0; element < Slice::kElements; ++element) {
            CHECK(seen.emplace(Slice::token(lane), Slice::k(lane, element)).second);
            CHECK(Slice::token(lane) < kLaneRows);
        }
        for (int load = 0; load < Slice::kLoads; ++load) {
            for (int element = 0; element < 8; ++element) {
                CHECK(Slice::k(lane, 8 * load + element) ==
                      Slice::k(lane, 0) + Slice::load_k(load) + element);
            }
        }
        // What the gather brings together: registers of share s come from s * kLaneRows lanes further on in
        // the quarter.
        if (lane % 16 < kLaneRows) {
            for (int byte = 0; byte < 32; ++byte) {
                const int share = byte / Slice::kElements;
                const int from = lane / 16 * 16 + (lane % 16 + share * kLaneRows) % 16;
                CHECK(Slice::token(from) == lane % 16);
                CHECK(Slice::k(from, byte % Slice::kElements) == fp8_k(lane, byte / 4, byte % 4));
            }
        }
    }
    CHECK(seen.size() == kLaneRows * 128u);
}

}  // namespace

TEST_CASE("fp8 fragment: each byte has the k of the instruction set, each element one place") {
    std::set<std::pair<int, int>> seen;
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(Fp8Fragment::row(static_cast<int>(lane)) == static_cast<int>(lane & 15));
        for (unsigned byte = 0; byte < 32; ++byte) {
            const int k = Fp8Fragment::k(static_cast<int>(lane), static_cast<int>(byte));
            CHECK(k == fp8_k(lane, byte / 4, byte % 4));
            seen.emplace(Fp8Fragment::row(static_cast<int>(lane)), k);
        }
    }
    CHECK(seen.size() == 16 * 128);
}

TEST_CASE("accumulator fragment: lane holds column r, rows 4q + i") {
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
            CHECK(AccumulatorFragment::row(static_cast<int>(lane), static_cast<int>(i)) ==
                  static_cast<int>(4 * (lane >> 4) + i));
        }
        CHECK(AccumulatorFragment::column(static_cast<int>(lane)) == static_cast<int>(lane & 15));
    }
}

TEST_CASE("token slice: lanes divide a 16 x 128 piece among them, and gathered make an fp8 fragment") {
    check_slice<16>();
    check_slice<8>();
    check_slice<4>();
}

TEST_CASE("quad fragment: the identity gives every lane its own elements") {
    // Four elements a lane, all different over the wave.
    const auto element = [](int lane, int k) { return static_cast<float>(4 * lane + k + 1); };
    for (int lane = 0; lane < 64; ++lane) {
        for (int row = 0; row < 4; ++row) {  // of the result: its register
            // Row `row` of A is held by the lane of the same block whose row() is that.
            const int holder = 4 * QuadFragment::block(lane) + row;
            REQUIRE(QuadFragment::block(holder) == QuadFragment::block(lane));
            REQUIRE(QuadFragment::row(holder) == row);
            const std::uint64_t a = QuadFragment::identity_row(holder);
            float sum = 0;
            for (int k = 0; k < 4; ++k) {
                sum += bf16_to_f32(static_cast<bf16_bits>(a >> (16 * k))) * element(lane, k);
            }
            CHECK(sum == element(lane, row));
        }
    }
}
