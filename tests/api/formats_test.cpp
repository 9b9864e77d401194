// kiln/formats.h and formats.hpp: what an engine prepares weights with. The layouts and quantisers themselves
// are checked in tests/formats; here, that the public functions reach them, and what they refuse.
#include "kiln/formats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/formats/mx.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kSeed = 41;

Bytes random_bytes(std::size_t count) {
    std::mt19937 random(kSeed);
    Bytes bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return bytes;
}

// The call fails with a message that mentions `part`, and `untouched` keeps its bytes.
template <class Call>
void check_refused(const Call& call, const std::string& part, const Bytes& untouched) {
    CAPTURE(part);
    kiln::Failure why;
    CHECK(call(&why).error_code() == KILN_ERROR_INVALID_ARGUMENT);
    CHECK(call(nullptr).error_code() == KILN_ERROR_INVALID_ARGUMENT);
    CHECK_MESSAGE(why.message.find(part) != std::string::npos, why.message);
    CHECK(std::ranges::count(untouched, 0xee) == static_cast<std::ptrdiff_t>(untouched.size()));
}

}  // namespace

TEST_CASE("formats: weights go to the layout and back") {
    INFO("seed ", kSeed);
    const kiln::ByteMatrix size{.experts = 3, .rows = 64, .columns = 128};
    const Bytes w = random_bytes(3 * 64 * 128);
    for (const auto order : {kiln::RowOrder::as_they_are, kiln::RowOrder::gate_up_interleaved}) {
        const bool plain = order == kiln::RowOrder::as_they_are;
        Bytes shuffled(w.size()), back(w.size());
        REQUIRE(kiln::shuffle_weights(w.data(), size, order, shuffled.data()));
        REQUIRE(kiln::unshuffle_weights(shuffled.data(), size, order, back.data()));
        CHECK(back == w);
        for (std::size_t e = 0; e < 3; ++e) {
            for (std::size_t n = 0; n < 64; ++n) {
                // The formula of the header, for one byte of each row.
                const std::size_t kb = (37 * n + e) % 128;
                const std::size_t row = plain ? n : n % 32 / 16 * 32 + n / 32 * 16 + n % 16;
                REQUIRE(
                    shuffled[e * 64 * 128 + row / 16 * 16 * 128 + kb / 16 * 256 + row % 16 * 16 + kb % 16] ==
                    w[(e * 64 + n) * 128 + kb]);
            }
        }
    }
}

TEST_CASE("formats: scales go to the layout and back") {
    INFO("seed ", kSeed);
    const kiln::ByteMatrix size{.experts = 5, .rows = 96, .columns = 20};
    const Bytes scales = random_bytes(5 * 96 * 20);
    REQUIRE(kiln::shuffled_scales_bytes(size) == 512 * 24);
    for (const auto order : {kiln::RowOrder::as_they_are, kiln::RowOrder::gate_up_interleaved}) {
        Bytes shuffled(512 * 24, 0xee), expected(512 * 24), back(scales.size());
        REQUIRE(kiln::shuffle_scales(scales.data(), size, order, shuffled.data()));
        kiln::formats::shuffle_scales(scales, 5 * 96, 20,
                                      order == kiln::RowOrder::as_they_are
                                          ? kiln::formats::RowOrder::plain()
                                          : kiln::formats::RowOrder::gate_up(48),
                                      expected);
        CHECK(shuffled == expected);
        REQUIRE(kiln::unshuffle_scales(shuffled.data(), size, order, back.data()));
        CHECK(back == scales);
    }
}

TEST_CASE("formats: the quantisers take rows with a stride") {
    INFO("seed ", kSeed);
    constexpr std::size_t kRows = 3, kK = 256, kLdx = 264;
    std::mt19937 random(kSeed);
    std::vector<std::uint16_t> x(kRows * kLdx);
    std::ranges::generate(x, [&] { return static_cast<std::uint16_t>(random() % 0x7f80); });
    const kiln::Bf16Matrix matrix{.x = x.data(), .rows = kRows, .k = kK, .ldx = kLdx};
    const auto row = [&](std::size_t m) { return std::span(x).subspan(m * kLdx, kK); };

    Bytes q(kRows * kK);
    std::vector<float> scales(kRows * 2);
    REQUIRE(kiln::quantise_1x128(matrix, q.data(), scales.data()));
    for (std::size_t m = 0; m < kRows; ++m) {
        Bytes codes(kK);
        std::vector<float> expected(2);
        kiln::formats::quantise_1x128(row(m), codes, expected);
        CHECK(std::equal(codes.begin(), codes.end(), &q[m * kK]));
        CHECK(std::equal(expected.begin(), expected.end(), &scales[m * 2]));
    }

    using kiln::formats::MxType;
    for (const auto type : {kiln::Dtype::e2m1, kiln::Dtype::e4m3fn}) {
        const MxType mx = type == kiln::Dtype::e2m1 ? MxType::e2m1 : MxType::e4m3fn;
        const std::size_t bytes = kiln::formats::mx_bytes(mx, kK);
        for (const auto floor : {kiln::AmaxFloor::at_1e_10, kiln::AmaxFloor::none}) {
            const auto mx_floor = floor == kiln::AmaxFloor::none ? kiln::formats::AmaxFloor::none
                                                                 : kiln::formats::AmaxFloor::at_1e_10;
            Bytes mx_q(kRows * bytes), mx_scales(kRows * 8);
            REQUIRE(kiln::quantise_1x32(matrix, type, floor, mx_q.data(), mx_scales.data()));
            for (std::size_t m = 0; m < kRows; ++m) {
                Bytes codes(bytes), expected(8);
                kiln::formats::quantise_1x32(row(m), mx, mx_floor, codes, expected);
                CHECK(std::equal(codes.begin(), codes.end(), &mx_q[m * bytes]));
                CHECK(std::equal(expected.begin(), expected.end(), &mx_scales[m * 8]));
            }
        }
    }
}

TEST_CASE("formats: what is refused, before anything is written") {
    using kiln::RowOrder;
    constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 4 / 64 * 64;
    const Bytes in = random_bytes(64 * 1024);
    Bytes out(64 * 1024, 0xee);
    const auto weights = [&](kiln::ByteMatrix size, RowOrder order = RowOrder::as_they_are) {
        return [&, size, order](kiln::Failure* why) {
            const kiln::Status back = kiln::unshuffle_weights(in.data(), size, order, out.data());
            const kiln::Status there = kiln::shuffle_weights(in.data(), size, order, out.data(), why);
            CHECK(back == there);
            return there;
        };
    };
    check_refused(weights({1, 24, 32}), "rows a multiple of 16 at or above 0, found 24", out);
    check_refused(weights({1, 16, 48}), "row_bytes a multiple of 32 at or above 0, found 48", out);
    check_refused(weights({-1, 16, 32}), "experts at or above 0, found -1", out);
    check_refused(weights({1, 48, 64}, RowOrder::gate_up_interleaved), "rows a multiple of 32", out);
    check_refused(weights({1, 32, 32}, RowOrder::gate_up_interleaved), "row_bytes a multiple of 64", out);
    check_refused(weights({1, 16, 32}, static_cast<RowOrder>(2)), "kiln_row_order, found 2", out);
    check_refused(weights({16, kHuge, 32}), "below 2^63", out);

    const auto scales = [&](kiln::ByteMatrix size, RowOrder order = RowOrder::as_they_are) {
        return [&, size, order](kiln::Failure* why) {
            const kiln::Status back = kiln::unshuffle_scales(in.data(), size, order, out.data());
            const kiln::Status there = kiln::shuffle_scales(in.data(), size, order, out.data(), why);
            CHECK(back == there);
            return there;
        };
    };
    check_refused(scales({1, -5, 32}), "rows at or above 0, found -5", out);
    check_refused(scales({1, 5, -32}), "columns at or above 0, found -32", out);
    check_refused(scales({1, 16, 8}, RowOrder::gate_up_interleaved), "rows a multiple of 32", out);
    check_refused(scales({8, kHuge, 8}), "below 2^63", out);
    check_refused(scales({1, 1, std::numeric_limits<std::int64_t>::max()}), "below 2^63", out);
    CHECK(kiln::shuffled_scales_bytes({1, 0, 8}) == 0);
    CHECK(kiln::shuffled_scales_bytes({1, kHuge, kHuge}) == 0);

    const std::vector<std::uint16_t> x(4 * 264);
    const auto fp8 = [&](kiln::Bf16Matrix matrix, std::size_t q, std::size_t to) {
        return [&, matrix, q, to](kiln::Failure* why) {
            return kiln::quantise_1x128(matrix, &out[q], reinterpret_cast<float*>(&out[to]), why);
        };
    };
    check_refused(fp8({x.data(), 4, 192, 264}, 0, 8192), "k a multiple of 128", out);
    check_refused(fp8({x.data(), 4, 256, 255}, 0, 8192), "ldx at or above k = 256, found 255", out);
    check_refused(fp8({x.data(), -4, 256, 256}, 0, 8192), "rows at or above 0", out);
    check_refused(fp8({nullptr, 4, 256, 264}, 0, 8192), "an array for x, found NULL", out);
    check_refused(fp8({x.data(), 4, 256, 264}, 0, 8193), "scales aligned to 4 bytes", out);
    check_refused(fp8({x.data(), 4, 256, 264}, 0, 1020), "q and scales apart", out);
    check_refused(fp8({x.data(), kHuge, 256, 264}, 0, 8192), "below 2^63", out);
    const auto mx = [&](kiln::Bf16Matrix matrix, kiln::Dtype type, kiln::AmaxFloor floor) {
        return [&, matrix, type, floor](kiln::Failure* why) {
            return kiln::quantise_1x32(matrix, type, floor, out.data(), &out[8192], why);
        };
    };
    check_refused(mx({x.data(), 4, 48, 264}, kiln::Dtype::e2m1, kiln::AmaxFloor::none), "k a multiple of 32",
                  out);
    check_refused(mx({x.data(), 4, 256, 264}, kiln::Dtype::bf16, kiln::AmaxFloor::none), "KILN_DTYPE_E2M1",
                  out);
    check_refused(mx({x.data(), 4, 256, 264}, kiln::Dtype::e2m1, static_cast<kiln::AmaxFloor>(7)),
                  "kiln_amax_floor, found 7", out);

    // Arrays: absent, or in each other's way.
    const kiln::ByteMatrix size{1, 16, 32};
    const auto order = RowOrder::as_they_are;
    check_refused(
        [&](kiln::Failure* why) { return kiln::shuffle_weights(nullptr, size, order, out.data(), why); },
        "an array for row_major, found NULL", out);
    check_refused(
        [&](kiln::Failure* why) { return kiln::unshuffle_scales(in.data(), size, order, nullptr, why); },
        "an array for row_major, found NULL", out);
    check_refused(
        [&](kiln::Failure* why) { return kiln::shuffle_weights(out.data(), size, order, &out[511], why); },
        "row_major and shuffled apart", out);
    CHECK(kiln::shuffle_weights(in.data(), size, order, out.data()));
    CHECK(kiln::shuffle_weights(nullptr, {0, 16, 32}, order, nullptr));
    CHECK(kiln::shuffle_scales(nullptr, {1, 16, 0}, order, nullptr));
    CHECK(kiln::quantise_1x128({nullptr, 0, 128, 128}, nullptr, nullptr));
    CHECK(
        kiln::quantise_1x32({nullptr, 3, 0, 0}, kiln::Dtype::e2m1, kiln::AmaxFloor::none, nullptr, nullptr));
}
