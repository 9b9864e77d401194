// Matrix instructions as listings print them: operands, formats, scales and accumulators of either register
// file.
#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;

namespace {

u32 b(float x) {
    return as_bits(x);
}

// A 16 x 128 times 128 x 16 product of small integers in fp8 (A) and fp4 (B), laid out from the ISA's text.
struct Product {
    int x[16][128], y[128][16];
    WaveState state;  // A in v[8:15], B in v[16:19] (fp4) and v[24:31] (fp8), C in v[0:3]

    explicit Product(Random& random) {
        static const u32 fp8_codes[5] = {0xc0, 0xb8, 0x00, 0x38, 0x40};  // -2 -1 0 1 2
        static const u32 fp4_codes[5] = {0xc, 0xa, 0x0, 0x2, 0x4};
        Lanes a8[8] = {}, b4[4] = {}, b8[8] = {};
        for (unsigned row = 0; row < 16; ++row) {
            for (unsigned k = 0; k < 128; ++k) {
                const unsigned i = random.below(5);
                const unsigned j = random.below(5);
                x[row][k] = static_cast<int>(i) - 2;
                y[k][row] = static_cast<int>(j) - 2;
                const unsigned lane8 = k % 64 / 16 * 16 + row;
                const unsigned byte = k / 64 * 16 + k % 16;
                a8[byte / 4][lane8] |= fp8_codes[i] << (byte % 4 * 8);
                b8[byte / 4][lane8] |= fp8_codes[j] << (byte % 4 * 8);
                b4[k % 32 / 8][k / 32 * 16 + row] |= fp4_codes[j] << (k % 8 * 4);
            }
        }
        for (unsigned i = 0; i < 8; ++i) {
            state.set_v(8 + i, a8[i]);
            state.set_v(24 + i, b8[i]);
        }
        for (unsigned i = 0; i < 4; ++i) {
            state.set_v(16 + i, b4[i]);
            Lanes c{};
            for (unsigned lane = 0; lane < 64; ++lane)
                c[lane] = b(static_cast<float>(4 * i + lane));
            state.set_v(i, c);
            state.set_a(i, c);
        }
    }
    // Row, column: lane 16 * (row / 4) + column, register row % 4. Block sums are weighed by `weight(row,
    // column, block)`.
    template <class Weight>
    void check(const WaveState& after, bool accumulators, Weight weight, bool with_c = true) const {
        for (unsigned row = 0; row < 16; ++row) {
            for (unsigned column = 0; column < 16; ++column) {
                const unsigned lane = row / 4 * 16 + column;
                double expected = with_c ? 4 * (row % 4) + lane : 0;
                for (unsigned k = 0; k < 128; ++k)
                    expected += x[row][k] * y[k][column] * weight(row, column, k / 32);
                const u32 found = accumulators ? after.a(row % 4)[lane] : after.v(row % 4)[lane];
                CAPTURE(row);
                CAPTURE(column);
                REQUIRE(as_float(found) == static_cast<float>(expected));
            }
        }
    }
};

const auto kUnscaled = [](unsigned, unsigned, unsigned) { return 1.0; };

}  // namespace

TEST_CASE("isa: unscaled f8f6f4 products of fp8 and of fp8 with fp4") {
    Random random;
    CAPTURE(random.seed());
    const Product product(random);
    product.check(run("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[24:31], v[0:3]", product.state), false,
                  kUnscaled);
    product.check(run("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:19], v[0:3] blgp:4", product.state),
                  false, kUnscaled);
    product.check(run("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[24:31], 0", product.state), false,
                  kUnscaled, false);
    product.check(run("v_mfma_f32_16x16x128_f8f6f4 a[0:3], v[8:15], v[24:31], a[0:3]", product.state), true,
                  kUnscaled);
}

TEST_CASE("isa: EXEC does not mask a matrix instruction") {
    Random random;
    CAPTURE(random.seed());
    Product product(random);
    product.state.exec = 1;
    product.check(run("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[24:31], v[0:3]", product.state), false,
                  kUnscaled);
}

TEST_CASE("isa: scaled f8f6f4: every pair of scale bytes that op_sel can pick") {
    Random random;
    CAPTURE(random.seed());
    Product product(random);
    Lanes sa{}, sb{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned byte = 0; byte < 4; ++byte) {
            sa[lane] |= (125 + random.below(5)) << (8 * byte);
            sb[lane] |= (125 + random.below(5)) << (8 * byte);
        }
    }
    product.state.set_v(40, sa);
    product.state.set_v(41, sb);
    for (unsigned i = 0; i < 4; ++i) {
        for (unsigned j = 0; j < 4; ++j) {
            // op_sel holds the low bits of the two selections, op_sel_hi the high ones; an all-zero op_sel is
            // not printed.
            std::string text =
                "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:19], v[0:3], v40, v41";
            if (i % 2 != 0 || j % 2 != 0)
                text += " op_sel:[" + std::to_string(i % 2) + "," + std::to_string(j % 2) + ",0]";
            text += " op_sel_hi:[" + std::to_string(i / 2) + "," + std::to_string(j / 2) + ",0] blgp:4";
            CAPTURE(text);
            product.check(run(text, product.state), false,
                          [&](unsigned row, unsigned column, unsigned block) {
                              const unsigned exponent = (sa[16 * block + row] >> (8 * i) & 0xff) +
                                                        (sb[16 * block + column] >> (8 * j) & 0xff);
                              return std::pow(2.0, static_cast<int>(exponent) - 254);
                          });
        }
    }
}

TEST_CASE("isa: scaled fp4 by fp4 in both shapes: every pair of scale bytes that op_sel can pick") {
    static const u32 codes[5] = {0xc, 0xa, 0x0, 0x2, 0x4};  // -2 -1 0 1 2
    Random random;
    CAPTURE(random.seed());
    for (const unsigned rows : {16u, 32u}) {
        // A lane holds 32 k of a row of A, or of a column of B: k block lane / rows, which its scale is for.
        const unsigned registers = rows * rows / 64;
        int x[32][128], y[32][128];
        Lanes a[4] = {}, b4[4] = {}, sa{}, sb{};
        for (unsigned lane = 0; lane < 64; ++lane) {
            for (unsigned n = 0; n < 32; ++n) {
                const unsigned k = lane / rows * 32 + n, i = random.below(5), j = random.below(5);
                x[lane % rows][k] = static_cast<int>(i) - 2;
                y[lane % rows][k] = static_cast<int>(j) - 2;
                a[n / 8][lane] |= codes[i] << (n % 8 * 4);
                b4[n / 8][lane] |= codes[j] << (n % 8 * 4);
            }
            for (unsigned byte = 0; byte < 4; ++byte) {
                sa[lane] |= (125 + random.below(5)) << (8 * byte);
                sb[lane] |= (125 + random.below(5)) << (8 * byte);
            }
        }
        WaveState state;
        for (unsigned n = 0; n < 4; ++n) {
            state.set_v(16 + n, a[n]);
            state.set_v(20 + n, b4[n]);
        }
        state.set_v(40, sa);
        state.set_v(41, sb);
        for (unsigned pair = 0; pair < 16; ++pair) {
            const unsigned i = pair / 4, j = pair % 4;
            std::string text = "v_mfma_scale_f32_" + std::string(rows == 16 ? "16x16x128" : "32x32x64") +
                               "_f8f6f4 v[0:" + std::to_string(registers - 1) +
                               "], v[16:19], v[20:23], 0, v40, v41";
            if (i % 2 != 0 || j % 2 != 0)
                text += " op_sel:[" + std::to_string(i % 2) + "," + std::to_string(j % 2) + ",0]";
            text +=
                " op_sel_hi:[" + std::to_string(i / 2) + "," + std::to_string(j / 2) + ",0] cbsz:4 blgp:4";
            CAPTURE(text);
            const WaveState after = run(text, state);
            for (unsigned n = 0; n < registers; ++n) {
                for (unsigned lane = 0; lane < 64; ++lane) {
                    const unsigned column = lane % rows,
                                   row = rows == 16 ? lane / 16 * 4 + n : n / 4 * 8 + lane / 32 * 4 + n % 4;
                    double expected = 0;
                    for (unsigned k = 0; k < 2048 / rows; ++k) {
                        const unsigned at = k / 32 * rows;
                        const auto exponent = static_cast<int>((sa[at + row] >> (8 * i) & 0xff) +
                                                               (sb[at + column] >> (8 * j) & 0xff));
                        expected += x[row][k] * y[column][k] * std::pow(2.0, exponent - 254);
                    }
                    CAPTURE(n);
                    CAPTURE(lane);
                    REQUIRE(as_float(after.v(n)[lane]) == static_cast<float>(expected));
                }
            }
        }
    }
}

TEST_CASE("isa: scaled f8f6f4 takes scales from scalars and constants") {
    Random random;
    CAPTURE(random.seed());
    Product product(random);
    product.state.set_s(5, 0x00000080);  // 2^1 in every lane
    product.state.set_v(40, 0x7e7e7e7e);
    product.check(
        run("v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[24:31], v[0:3], s5, v40 op_sel_hi:[0,0,0]",
            product.state),
        false, kUnscaled);
}

TEST_CASE("isa: bf16 products, small and large") {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    int a[32][32], c[32][32];  // [row][k], [column][k]
    const auto code = [](int x) { return b(static_cast<float>(x)) >> 16; };
    Lanes a16[4] = {}, b16[4] = {}, a32[4] = {}, b32[4] = {};
    for (unsigned row = 0; row < 32; ++row) {
        for (unsigned k = 0; k < 32; ++k) {
            a[row][k] = static_cast<int>(random.below(17)) - 8;
            c[row][k] = static_cast<int>(random.below(17)) - 8;
            if (row < 16) {  // k = 8q .. 8q+7
                a16[k % 8 / 2][k / 8 * 16 + row] |= code(a[row][k]) << (k % 2 * 16);
                b16[k % 8 / 2][k / 8 * 16 + row] |= code(c[row][k]) << (k % 2 * 16);
            }
            if (k < 16) {  // k = 8h .. 8h+7
                a32[k % 8 / 2][k / 8 * 32 + row] |= code(a[row][k]) << (k % 2 * 16);
                b32[k % 8 / 2][k / 8 * 32 + row] |= code(c[row][k]) << (k % 2 * 16);
            }
        }
    }
    for (unsigned i = 0; i < 4; ++i) {
        state.set_v(16 + i, a16[i]);
        state.set_v(20 + i, b16[i]);
        state.set_v(24 + i, a32[i]);
        state.set_v(28 + i, b32[i]);
    }
    const WaveState small = run("v_mfma_f32_16x16x32_bf16 v[0:3], v[16:19], v[20:23], 0", state);
    const WaveState large = run("v_mfma_f32_32x32x16_bf16 a[0:15], v[24:27], v[28:31], 1.0", state);
    for (unsigned row = 0; row < 32; ++row) {
        for (unsigned column = 0; column < 32; ++column) {
            int sum16 = 0, sum32 = 0;
            for (unsigned k = 0; k < 32; ++k) {
                sum32 += a[row][k] * c[column][k];
                sum16 += k < 16 ? a[row][k] * c[column][k] : 0;
            }
            if (row < 16 && column < 16)
                REQUIRE(small.v(row % 4)[row / 4 * 16 + column] == b(static_cast<float>(sum32)));
            // Register r, lane l: row r/4*8 + 4*(l/32) + r%4.
            const unsigned reg = row / 8 * 4 + row % 4;
            const unsigned lane = row % 8 / 4 * 32 + column;
            REQUIRE(large.a(reg)[lane] == b(static_cast<float>(sum16 + 1)));
        }
    }
}

TEST_CASE("isa: a matrix instruction that is not known fails by name") {
    WaveState state;
    for (unsigned i = 0; i < 16; ++i)
        state.set_v(i, 0);
    CHECK(fails("v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7]", state));
    CHECK(fails("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[4:11], v[0:3] cbsz:5", state));
    CHECK(fails("v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:1", state));
}
