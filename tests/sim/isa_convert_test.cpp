// Conversions as listings print them: which byte or half each op_sel entry picks, and what of the destination
// is kept.
#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;

namespace {

u32 b(float x) {
    return as_bits(x);
}

// v0 before is `old`; v1, v2 and v3 are the operands.
WaveState after(const std::string& text, u32 x, u32 y = 0, u32 z = 0, u32 old = 0x11223344) {
    WaveState state;
    state.set_v(0, old);
    state.set_v(1, x);
    state.set_v(2, y);
    state.set_v(3, z);
    return run(text, state);
}
u32 one(const std::string& text, u32 x, u32 y = 0, u32 z = 0, u32 old = 0x11223344) {
    return after(text, x, y, z, old).v(0)[37];
}

constexpr u32 kOne = 0x3f800000;
constexpr u32 kTwo = 0x40000000;
// 1.9 as a scale is 1: only the exponent field counts, and not the sign.
constexpr u32 kOneWithMantissa = 0xbff33333;

}  // namespace

TEST_CASE("isa: f32 to fp8 pairs") {
    CHECK(one("v_cvt_pk_fp8_f32 v0, v1, v2", kOne, b(-448.0f)) == 0x1122fe38);
    CHECK(one("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", kOne, b(-448.0f)) == 0xfe383344);
    CHECK(one("v_cvt_pk_bf8_f32 v0, v1, v2", kOne, b(-2.0f)) == 0x1122c03c);
    CHECK(one("v_cvt_pk_bf8_f32 v0, v1, v2 op_sel:[0,0,1]", kOne, b(-2.0f)) == 0xc03c3344);
    CHECK(one("v_cvt_pk_fp8_f32 v0, v1, v2", b(464.0f), b(464.5f)) == 0x11227f7e);
    CHECK(one("v_cvt_pk_fp8_f32 v0, v1, v2", 0x7f800000, 0x7fc00000) == 0x11227f7f);
    CHECK(one("v_cvt_pk_fp8_f32 v0, -v1, |v2|", kOne, b(-2.0f)) == 0x112240b8);
}

TEST_CASE("isa: fp8 to f32, by byte and half") {
    const u32 source = 0xb8384034;  // bytes 0.75, 2, 1, -1
    const float values[4] = {0.75f, 2.0f, 1.0f, -1.0f};
    CHECK(one("v_cvt_f32_fp8_e32 v0, v1", source) == b(values[0]));
    for (int byte = 0; byte < 4; ++byte)
        CHECK(one("v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_" + std::to_string(byte), source) ==
              b(values[byte]));
    CHECK(one("v_cvt_f32_bf8_sdwa v0, v1 src0_sel:BYTE_3", 0xbc000000) == b(-1.0f));
    const WaveState low = after("v_cvt_pk_f32_fp8_e32 v[4:5], v1", source);
    CHECK(low.v(4)[0] == b(0.75f));
    CHECK(low.v(5)[0] == b(2.0f));
    const WaveState high = after("v_cvt_pk_f32_fp8_sdwa v[4:5], v1 src0_sel:WORD_1", source);
    CHECK(high.v(4)[63] == b(1.0f));
    CHECK(high.v(5)[63] == b(-1.0f));
}

TEST_CASE("isa: every fp8 and fp4 code through the conversions that kernels use") {
    for (unsigned code = 0; code < 256; ++code) {
        const float value = static_cast<float>(kE4m3.value(code));
        const float found = as_float(one("v_cvt_f32_fp8_e32 v0, v1", code));
        if (std::isnan(value))
            CHECK(std::isnan(found));
        else
            CHECK(b(found) == b(value));
    }
    for (unsigned code = 0; code < 16; ++code)
        CHECK(one("v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2", code | code << 4, kOne) ==
              (b(static_cast<float>(kE2m1.value(code))) >> 16) * 0x10001u);
}

TEST_CASE("isa: scaled fp4 up, by byte") {
    // Bytes (low nibble first): (1, 2), (3, -0.5), (-6, 0), (1.5, 4).
    const u32 source = 0x63'0f'95'42;
    const float values[4][2] = {{1, 2}, {3, -0.5f}, {-6, 0}, {1.5f, 4}};
    const char* select[4] = {"", " op_sel:[1,0,0]", " op_sel:[0,1,0]", " op_sel:[1,1,0]"};
    for (int byte = 0; byte < 4; ++byte) {
        const u32 low = b(values[byte][0] * 8) >> 16;
        const u32 high = b(values[byte][1] * 8) >> 16;
        CHECK(one(std::string("v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2") + select[byte], source, b(8.0f)) ==
              (low | high << 16));
        const WaveState wide = after(std::string("v_cvt_scalef32_pk_f32_fp4 v[4:5], v1, v2") + select[byte],
                                     source, kOneWithMantissa);
        CHECK(wide.v(4)[1] == b(values[byte][0]));
        CHECK(wide.v(5)[1] == b(values[byte][1]));
    }
    CHECK(one("v_cvt_scalef32_pk_f16_fp4 v0, v1, v2 op_sel:[1,1,0]", source, kOne) == 0x44003e00);
    // Scale bytes of 0 mean 2^-127, 255 NaN.
    CHECK(one("v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2", 0x42, 0) == 0x00800040);
    CHECK(std::isnan(as_float(one("v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2", 0x42, 0x7f800000) << 16)));
}

TEST_CASE("isa: scaled fp8 up, by half and byte") {
    const u32 source = 0xb8384034;  // 0.75, 2, 1, -1
    CHECK(one("v_cvt_scalef32_pk_bf16_fp8 v0, v1, v2", source, kTwo) ==
          (b(1.5f) >> 16 | (b(4.0f) & 0xffff0000)));
    CHECK(one("v_cvt_scalef32_pk_bf16_fp8 v0, v1, v2 op_sel:[1,0,0]", source, kTwo) ==
          (b(2.0f) >> 16 | (b(-2.0f) & 0xffff0000)));
    const WaveState wide =
        after("v_cvt_scalef32_pk_f32_fp8 v[4:5], v1, v2 op_sel:[1,0,0]", source, kOneWithMantissa);
    CHECK(wide.v(4)[0] == b(1.0f));
    CHECK(wide.v(5)[0] == b(-1.0f));
    CHECK(one("v_cvt_scalef32_f32_fp8 v0, v1, v2", source, kTwo) == b(1.5f));
    CHECK(one("v_cvt_scalef32_f32_fp8 v0, v1, v2 op_sel:[1,0,0]", source, kTwo) == b(4.0f));
    CHECK(one("v_cvt_scalef32_f32_fp8 v0, v1, v2 op_sel:[0,1,0]", source, kTwo) == b(2.0f));
    CHECK(one("v_cvt_scalef32_f32_fp8 v0, v1, v2 op_sel:[1,1,0]", source, kTwo) == b(-2.0f));
    CHECK(one("v_cvt_scalef32_f16_fp8 v0, v1, v2 op_sel:[1,0,0]", source, kOne) == 0x11224000);
    CHECK(one("v_cvt_scalef32_f16_fp8 v0, v1, v2 op_sel:[0,1,1]", source, kOne) == 0x3c003344);
    CHECK(one("v_cvt_scalef32_pk_f16_fp8 v0, v1, v2 op_sel:[1,0,0]", source, kOne) == 0xbc003c00);
}

TEST_CASE("isa: scaled down to fp4, by destination byte") {
    const char* select[4] = {"", " op_sel:[0,0,1,0]", " op_sel:[0,0,0,1]", " op_sel:[0,0,1,1]"};
    for (unsigned byte = 0; byte < 4; ++byte) {
        const u32 kept = 0x11223344u & ~(0xffu << (8 * byte));
        // 12 / 4 = 3 (code 5), -2 / 4 = -0.5 (code 9)
        CHECK(one(std::string("v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3") + select[byte], b(12.0f), b(-2.0f),
                  b(7.0f)) == (kept | 0x95u << (8 * byte)));
        CHECK(one(std::string("v_cvt_scalef32_pk_fp4_bf16 v0, v1, v2") + select[byte], 0xc0004140, b(4.0f)) ==
              (kept | 0x95u << (8 * byte)));
        CHECK(one(std::string("v_cvt_scalef32_pk_fp4_f16 v0, v1, v2") + select[byte], 0xc0004a00, b(4.0f)) ==
              (kept | 0x95u << (8 * byte)));
    }
    // Ties to even, saturation with sign, and the scale's mantissa left out.
    CHECK(one("v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3", b(2.5f), b(5.0f), kOneWithMantissa, 0) == 0x64);
    CHECK(one("v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3", b(-100.0f), 0x7f800000, kOne, 0) == 0x7f);
}

TEST_CASE("isa: NaN on the way to fp4 is an error that names the instruction") {
    for (const u32 scale : {kOne, 0x7f800000u}) {
        WaveState state;
        state.set_v(0, 0);
        state.set_v(1, scale == kOne ? 0x7fc00000 : kOne);
        state.set_v(2, kOne);
        state.set_v(3, scale);
        const auto result = run_wave("v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3", state);
        REQUIRE_FALSE(result);
        CHECK(result.error().message.find("v_cvt_scalef32_pk_fp4_f32") != std::string::npos);
    }
}

TEST_CASE("isa: scaled down to fp8, by destination half") {
    CHECK(one("v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3", kTwo, b(-4.0f), kTwo) == 0x1122c038);
    CHECK(one("v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]", kTwo, b(-4.0f), kTwo) ==
          0xc0383344);
    CHECK(one("v_cvt_scalef32_pk_fp8_bf16 v0, v1, v2", 0xc0804000, kTwo) == 0x1122c038);
    CHECK(one("v_cvt_scalef32_pk_fp8_bf16 v0, v1, v2 op_sel:[0,0,1]", 0xc0804000, kTwo) == 0xc0383344);
    CHECK(one("v_cvt_scalef32_pk_bf8_f16 v0, v1, v2 op_sel:[0,0,1]", 0xc4004000, kTwo) == 0xc03c3344);
}

TEST_CASE("isa: the bf8 forms differ in the format only") {
    const u32 source = 0xbc'40'c0'3c;  // 1, -2, 2, -1
    CHECK(after("v_cvt_pk_f32_bf8_e32 v[4:5], v1", source).v(5)[0] == b(-2.0f));
    CHECK(one("v_cvt_scalef32_f32_bf8 v0, v1, v2 op_sel:[1,1,0]", source, kTwo) == b(-2.0f));
    CHECK(one("v_cvt_scalef32_f16_bf8 v0, v1, v2 op_sel:[0,1,1]", source, kOne) == 0x40003344);
    CHECK(one("v_cvt_scalef32_pk_bf16_bf8 v0, v1, v2 op_sel:[1,0,0]", source, kOne) == 0xbf804000);
    CHECK(one("v_cvt_scalef32_pk_f16_bf8 v0, v1, v2", source, kOne) == 0xc0003c00);
    CHECK(after("v_cvt_scalef32_pk_f32_bf8 v[4:5], v1, v2 op_sel:[1,0,0]", source, kTwo).v(4)[0] == b(4.0f));
    CHECK(one("v_cvt_scalef32_pk_bf8_f32 v0, v1, v2, v3 op_sel:[0,0,0,1]", kTwo, b(-4.0f), kTwo) ==
          0xc03c3344);
    CHECK(one("v_cvt_scalef32_pk_bf8_bf16 v0, v1, v2", 0xc0804000, kTwo) == 0x1122c03c);
    CHECK(one("v_cvt_scalef32_pk_fp8_f16 v0, v1, v2", 0xc4004000, kTwo) == 0x1122c038);
}

TEST_CASE("isa: bf16 and f16") {
    CHECK(one("v_cvt_pk_bf16_f32 v0, v1, v2", 0x3f808000, 0x3f818000) == 0x3f823f80);  // ties to even
    CHECK(one("v_cvt_pk_bf16_f32 v0, v1, v2", 0x7f800001, 0xff7fffff) == 0xff807fc0);
    CHECK(one("v_cvt_f16_f32_e32 v0, v1", b(1.5f)) == 0x3e00);
    CHECK(one("v_cvt_f16_f32_e32 v0, v1", b(65520.0f)) == 0x7c00);
    CHECK(one("v_cvt_f32_f16_e32 v0, v1", 0xabcd3e00) == b(1.5f));
    CHECK(one("v_cvt_f32_f16_e32 v0, v1", 0x0001) == b(0x1p-24f));
    CHECK(one("v_cvt_f32_f16_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", 0x3e000000) ==
          b(1.5f));
    CHECK(one("v_cvt_pkrtz_f16_f32 v0, v1, v2", b(65519.0f), b(-1.0f)) == 0xbc007bff);
}

TEST_CASE("isa: floats to integers truncate and saturate") {
    const struct {
        float x;
        std::uint32_t i32, u32;
    } cases[] = {{1.9f, 1, 1},
                 {-1.9f, 0xffffffff, 0},
                 {0.9f, 0, 0},
                 {2147483520.0f, 0x7fffff80, 0x7fffff80},
                 {2147483648.0f, 0x7fffffff, 0x80000000},
                 {-2147483648.0f, 0x80000000, 0},
                 {-3e9f, 0x80000000, 0},
                 {4294967040.0f, 0x7fffffff, 0xffffff00},
                 {5e9f, 0x7fffffff, 0xffffffff},
                 {std::numeric_limits<float>::infinity(), 0x7fffffff, 0xffffffff},
                 {-std::numeric_limits<float>::infinity(), 0x80000000, 0},
                 {std::numeric_limits<float>::quiet_NaN(), 0, 0}};
    for (const auto& c : cases) {
        CAPTURE(c.x);
        CHECK(one("v_cvt_i32_f32_e32 v0, v1", b(c.x)) == c.i32);
        CHECK(one("v_cvt_u32_f32_e32 v0, v1", b(c.x)) == c.u32);
    }
}

TEST_CASE("isa: integers and floats") {
    // f64 in v[2:3].
    CHECK(one("v_cvt_i32_f64_e32 v0, v[2:3]", 0, 0, 0xc1dfffff) == 0x80000400);  // 2^10 above the lowest
    CHECK(one("v_cvt_u32_f64_e32 v0, v[2:3]", 0, 0, 0xc1dfffff) == 0);
    CHECK(one("v_cvt_u32_f64_e32 v0, v[2:3]", 0, 0, 0x7ff00000) == 0xffffffff);
    CHECK(one("v_cvt_i32_f64_e32 v0, v[2:3]", 0, 0, 0x7ff80000) == 0);
    CHECK(one("v_cvt_i32_f32_e32 v0, v1", b(-1.9f)) == 0xffffffff);
    CHECK(one("v_cvt_u32_f32_e32 v0, v1", b(-1.9f)) == 0);
    CHECK(one("v_cvt_u32_f32_e32 v0, v1", b(5e9f)) == 0xffffffff);
    CHECK(one("v_cvt_i32_f32_e32 v0, v1", 0x7fc00000) == 0);
    CHECK(one("v_cvt_f32_i32_e32 v0, v1", 0xfffffffe) == b(-2.0f));
    CHECK(one("v_cvt_f32_u32_e32 v0, v1", 0xfffffffe) == b(4294967296.0f));
    CHECK(one("v_cvt_f32_u32_e32 v0, v1", 16777217) == b(16777216.0f));
    CHECK(one("v_cvt_f32_u32_e32 v0, v1", 16777219) == b(16777220.0f));
    for (unsigned byte = 0; byte < 4; ++byte)
        CHECK(one("v_cvt_f32_ubyte" + std::to_string(byte) + "_e32 v0, v1", 0x40302010) ==
              b(16.0f * static_cast<float>(byte + 1)));
}
