// Matrix instructions: which lane, register and bits hold which element, what a sum is, and that every build
// of the inner loops gives the same bits. The maps are written out here a second time, from the ISA's text.
#include "runtime/sim/numeric/matrix.hpp"

#include <cstring>

#include "runtime/sim/numeric/matrix_engine.hpp"
#include "tests/sim/numeric_support.hpp"

using namespace kiln::sim::numeric;
using namespace kiln::sim::test;

namespace {

struct Instruction {
    const char* mnemonic;
    unsigned cbsz, blgp;
    unsigned rows, depth, blocks;
};

const Instruction kInstructions[] = {
    {"v_mfma_f32_16x16x32_bf16", 0, 0, 16, 32, 1},     {"v_mfma_f32_32x32x16_bf16", 0, 0, 32, 16, 1},
    {"v_mfma_f32_16x16x16_bf16", 0, 0, 16, 16, 1},     {"v_mfma_f32_32x32x8_bf16", 0, 0, 32, 8, 1},
    {"v_mfma_f32_4x4x4_16b_bf16", 0, 0, 4, 4, 16},     {"v_mfma_f32_16x16x32_f16", 0, 0, 16, 32, 1},
    {"v_mfma_f32_32x32x16_f16", 0, 0, 32, 16, 1},      {"v_mfma_f32_16x16x16_f16", 0, 0, 16, 16, 1},
    {"v_mfma_f32_32x32x8_f16", 0, 0, 32, 8, 1},        {"v_mfma_f32_4x4x4_16b_f16", 0, 0, 4, 4, 16},
    {"v_mfma_f32_16x16x4_f32", 0, 0, 16, 4, 1},        {"v_mfma_f32_32x32x2_f32", 0, 0, 32, 2, 1},
    {"v_mfma_f32_4x4x1_16b_f32", 0, 0, 4, 1, 16},      {"v_mfma_f32_16x16x32_fp8_fp8", 0, 0, 16, 32, 1},
    {"v_mfma_f32_16x16x32_bf8_fp8", 0, 0, 16, 32, 1},  {"v_mfma_f32_16x16x32_fp8_bf8", 0, 0, 16, 32, 1},
    {"v_mfma_f32_32x32x16_fp8_fp8", 0, 0, 32, 16, 1},  {"v_mfma_f32_32x32x16_bf8_bf8", 0, 0, 32, 16, 1},
    {"v_mfma_f32_16x16x128_f8f6f4", 0, 0, 16, 128, 1}, {"v_mfma_f32_16x16x128_f8f6f4", 4, 4, 16, 128, 1},
    {"v_mfma_f32_16x16x128_f8f6f4", 0, 4, 16, 128, 1}, {"v_mfma_f32_16x16x128_f8f6f4", 4, 1, 16, 128, 1},
    {"v_mfma_f32_16x16x128_f8f6f4", 2, 3, 16, 128, 1}, {"v_mfma_f32_16x16x128_f8f6f4", 3, 0, 16, 128, 1},
    {"v_mfma_f32_32x32x64_f8f6f4", 0, 0, 32, 64, 1},   {"v_mfma_f32_32x32x64_f8f6f4", 4, 4, 32, 64, 1},
    {"v_mfma_f32_32x32x64_f8f6f4", 1, 2, 32, 64, 1},   {"v_mfma_f32_32x32x64_f8f6f4", 3, 4, 32, 64, 1},
};

const Definition& definition_of(Format format) {
    switch (format) {
        case Format::e4m3:
            return kE4m3;
        case Format::e5m2:
            return kE5m2;
        case Format::e2m3:
            return kE2m3;
        case Format::e3m2:
            return kE3m2;
        case Format::e2m1:
            return kE2m1;
        case Format::f16:
            return kF16;
        default:
            return kBf16;
    }
}
unsigned bits_of(Format format) {
    return format == Format::f32 ? 32
                                 : 1 + static_cast<unsigned>(definition_of(format).exponent_bits +
                                                             definition_of(format).mantissa_bits);
}

// Where element (row, k) of A lies, or (column, k) of B: the lane, and the first of its bits among the lane's
// registers.
struct Place {
    unsigned lane, bit;
};
Place place_of(const Instruction& in, Format format, unsigned row, unsigned k, unsigned block) {
    const unsigned bits = bits_of(format);
    if (in.blocks > 1)
        return {block * in.rows + row, k * bits};
    const unsigned q_count = 64 / in.rows;
    if (in.depth == 128 && bits == 8)  // registers 0-3: k = 16q..+15, registers 4-7: k = 64+16q..+15
        return {(k % 64) / 16 * 16 + row, (k / 64) * 128 + k % 16 * 8};
    if (in.depth == 128)  // k = 32q..+31
        return {k / 32 * 16 + row, k % 32 * bits};
    if (in.depth == 64 && bits == 8)  // registers 0-3: k = 16h..+15, registers 4-7: k = 32+16h..+15
        return {(k % 32) / 16 * 32 + row, (k / 32) * 128 + k % 16 * 8};
    if (in.depth == 64)  // k = 32h..+31
        return {k / 32 * 32 + row, k % 32 * bits};
    const unsigned run = in.depth / q_count;  // consecutive k in each lane
    return {k / run * in.rows + row, k % run * bits};
}
// Where element (row, column) of C and D lies.
struct Cell {
    unsigned reg, lane;
};
Cell cell_of(const Instruction& in, unsigned row, unsigned column, unsigned block) {
    if (in.blocks > 1)
        return {row, block * in.rows + column};
    if (in.rows == 16)
        return {row % 4, row / 4 * 16 + column};
    return {row / 8 * 4 + row % 4, row % 8 / 4 * 32 + column};
}

struct Operand {
    alignas(64) Register registers[8] = {};
    void put(const Place& place, unsigned bits, std::uint32_t code) {
        for (unsigned i = 0; i < bits; ++i) {
            const unsigned bit = place.bit + i;
            std::uint32_t& word = registers[bit / 32][place.lane];
            word = (word & ~(1u << bit % 32)) | (code >> i & 1) << bit % 32;
        }
    }
};
struct Tile {
    alignas(64) Register registers[16] = {};
    float at(const Cell& cell) const { return as_float(registers[cell.reg][cell.lane]); }
    void set(const Cell& cell, float x) { registers[cell.reg][cell.lane] = as_bits(x); }
};

MatrixOp find(const Instruction& in) {
    const auto op = find_matrix_op(in.mnemonic, in.cbsz, in.blgp);
    REQUIRE(op.has_value());
    REQUIRE(op->rows == in.rows);
    REQUIRE(op->depth == in.depth);
    REQUIRE(op->blocks == in.blocks);
    return *op;
}

std::uint32_t code_of_one(Format format) {
    switch (format) {
        case Format::e4m3:
            return 0x38;
        case Format::e5m2:
            return 0x3c;
        case Format::e2m3:
            return 0x08;
        case Format::e3m2:
            return 0x0c;
        case Format::e2m1:
            return 0x2;
        case Format::bf16:
            return 0x3f80;
        case Format::f16:
            return 0x3c00;
        case Format::f32:
            return 0x3f800000;
    }
    return 0;
}

// A code of any finite value whose products and sums stay far from overflow, and what it is worth.
struct Number {
    std::uint32_t code;
    double value;
};
Number random_number(Random& random, Format format) {
    if (format == Format::f32) {
        const auto x = static_cast<float>(random.uniform(-4, 4));
        return {as_bits(x), x};
    }
    if (format == Format::bf16) {
        const std::uint32_t code = (random.bits() & 0x807f) | (120 + random.below(12)) << 7;
        return {code, kBf16.value(code)};
    }
    const Definition& definition = definition_of(format);
    const std::uint32_t code = random.below(definition.codes());
    const double value = definition.value(code);
    if (!std::isfinite(value))
        return random_number(random, format);
    return {code, value};
}

}  // namespace

TEST_CASE("matrix: register counts follow from the shape") {
    CHECK(find_matrix_op("v_mfma_f32_16x16x128_f8f6f4", 0, 4)->a_registers() == 8);
    CHECK(find_matrix_op("v_mfma_f32_16x16x128_f8f6f4", 0, 4)->b_registers() == 4);
    CHECK(find_matrix_op("v_mfma_scale_f32_16x16x128_f8f6f4", 2, 3)->a_registers() == 6);
    CHECK(find_matrix_op("v_mfma_scale_f32_32x32x64_f8f6f4", 1, 3)->cd_registers() == 16);
    CHECK(find_matrix_op("v_mfma_f32_16x16x32_bf16")->a_registers() == 4);
    CHECK(find_matrix_op("v_mfma_f32_16x16x16_f16")->a_registers() == 2);
    CHECK(find_matrix_op("v_mfma_f32_16x16x32_fp8_fp8")->a_registers() == 2);
    CHECK(find_matrix_op("v_mfma_f32_4x4x4_16b_bf16")->cd_registers() == 4);
    CHECK(find_matrix_op("v_mfma_f32_32x32x2_f32")->a_registers() == 1);
}

TEST_CASE("matrix: what is not known is not guessed") {
    CHECK_FALSE(find_matrix_op("v_mfma_f32_16x16x32_bf16", 1, 0));
    CHECK_FALSE(find_matrix_op("v_mfma_f32_16x16x128_f8f6f4", 5, 0));
    CHECK_FALSE(find_matrix_op("v_mfma_f32_16x16x128_f8f6f4", 0, 5));
    CHECK_FALSE(find_matrix_op("v_mfma_f64_16x16x4_f64"));
}

TEST_CASE("matrix: one-hot A and B meet in every row, column and k, and nowhere else") {
    for (const Instruction& in : kInstructions) {
        CAPTURE(in.mnemonic);
        CAPTURE(in.cbsz);
        CAPTURE(in.blgp);
        const MatrixOp op = find(in);
        for (unsigned block = 0; block < in.blocks; ++block) {
            for (unsigned k = 0; k < in.depth; ++k) {
                for (unsigned row = 0; row < in.rows; ++row) {
                    CAPTURE(k);
                    CAPTURE(row);
                    // One element of A at (row, k); B has its k-th row all ones: row `row` of D is ones.
                    Operand a, b;
                    a.put(place_of(in, op.a, row, k, block), bits_of(op.a), code_of_one(op.a));
                    for (unsigned column = 0; column < in.rows; ++column)
                        b.put(place_of(in, op.b, column, k, block), bits_of(op.b), code_of_one(op.b));
                    Tile by_a, by_b, expected_a, expected_b;
                    multiply(op, a.registers, b.registers, nullptr, by_a.registers, nullptr,
                             Order::ascending);
                    // The same data with A and B exchanged, where the formats allow it: column `row` of D is
                    // ones.
                    for (unsigned column = 0; column < in.rows; ++column) {
                        expected_a.set(cell_of(in, row, column, block), 1.0f);
                        expected_b.set(cell_of(in, column, row, block), 1.0f);
                    }
                    REQUIRE(std::memcmp(by_a.registers, expected_a.registers,
                                        op.cd_registers() * sizeof(Register)) == 0);
                    if (op.a != op.b)
                        continue;
                    multiply(op, b.registers, a.registers, nullptr, by_b.registers, nullptr,
                             Order::interleaved);
                    REQUIRE(std::memcmp(by_b.registers, expected_b.registers,
                                        op.cd_registers() * sizeof(Register)) == 0);
                }
            }
        }
    }
}

TEST_CASE("matrix: one-hot A against one-hot B pairs logical k, not registers") {
    // fp8 and fp4 hold the same k in different lanes and registers.
    const Instruction in{"v_mfma_f32_16x16x128_f8f6f4", 0, 4, 16, 128, 1};
    const MatrixOp op = find(in);
    for (unsigned ka = 0; ka < 128; ++ka) {
        for (unsigned kb = 0; kb < 128; ++kb) {
            Operand a, b;
            a.put(place_of(in, op.a, 5, ka, 0), 8, code_of_one(op.a));
            b.put(place_of(in, op.b, 9, kb, 0), 4, code_of_one(op.b));
            Tile d;
            multiply(op, a.registers, b.registers, nullptr, d.registers, nullptr, Order::ascending);
            REQUIRE(d.at(cell_of(in, 5, 9, 0)) == (ka == kb ? 1.0f : 0.0f));
        }
    }
}

TEST_CASE("matrix: every code of every format is multiplied at its value") {
    for (unsigned format = 0; format <= 4; ++format) {
        const Instruction in{"v_mfma_f32_16x16x128_f8f6f4", format, 0, 16, 128, 1};
        const MatrixOp op = find(in);
        const Definition& definition = definition_of(op.a);
        for (unsigned code = 0; code < definition.codes(); ++code) {
            CAPTURE(definition.name);
            CAPTURE(code);
            Operand a, b;
            a.put(place_of(in, op.a, 3, 77, 0), bits_of(op.a), code);
            b.put(place_of(in, op.b, 11, 77, 0), 8, code_of_one(op.b));
            Tile d;
            multiply(op, a.registers, b.registers, nullptr, d.registers, nullptr, Order::ascending);
            const float found = d.at(cell_of(in, 3, 11, 0));
            const double expected = definition.value(code);
            if (std::isnan(expected))
                REQUIRE(std::isnan(found));
            else
                REQUIRE(found == expected);
        }
    }
}

TEST_CASE("matrix: random products agree with float64 under both orders, and D may lie on C, A or B") {
    Random random;
    CAPTURE(random.seed());
    for (const Instruction& in : kInstructions) {
        CAPTURE(in.mnemonic);
        CAPTURE(in.cbsz);
        CAPTURE(in.blgp);
        const MatrixOp op = find(in);
        const unsigned width = in.rows;
        std::vector<double> a_values(width * in.depth * in.blocks), b_values(a_values.size());
        Operand a, b;
        Tile c;
        for (unsigned block = 0; block < in.blocks; ++block) {
            for (unsigned i = 0; i < width; ++i) {
                for (unsigned k = 0; k < in.depth; ++k) {
                    const Number x = random_number(random, op.a);
                    const Number y = random_number(random, op.b);
                    a.put(place_of(in, op.a, i, k, block), bits_of(op.a), x.code);
                    b.put(place_of(in, op.b, i, k, block), bits_of(op.b), y.code);
                    a_values[(block * width + i) * in.depth + k] = x.value;
                    b_values[(block * width + i) * in.depth + k] = y.value;
                }
                for (unsigned j = 0; j < width; ++j)
                    c.set(cell_of(in, i, j, block), static_cast<float>(random.uniform(-100, 100)));
            }
        }
        Tile up, interleaved, in_place = c;
        multiply(op, a.registers, b.registers, c.registers, up.registers, nullptr, Order::ascending);
        multiply(op, a.registers, b.registers, c.registers, interleaved.registers, nullptr,
                 Order::interleaved);
        multiply(op, a.registers, b.registers, in_place.registers, in_place.registers, nullptr,
                 Order::ascending);
        REQUIRE(std::memcmp(up.registers, in_place.registers, op.cd_registers() * sizeof(Register)) == 0);
        for (unsigned block = 0; block < in.blocks; ++block) {
            for (unsigned i = 0; i < width; ++i) {
                for (unsigned j = 0; j < width; ++j) {
                    const Cell cell = cell_of(in, i, j, block);
                    double exact = c.at(cell);
                    double magnitude = std::fabs(exact);
                    for (unsigned k = 0; k < in.depth; ++k) {
                        const double product = a_values[(block * width + i) * in.depth + k] *
                                               b_values[(block * width + j) * in.depth + k];
                        exact += product;
                        magnitude += std::fabs(product);
                    }
                    // Each of at most depth + 5 additions, and each product, rounds by half a unit of the
                    // whole.
                    const double bound = magnitude * (in.depth + 6) * 0x1p-24;
                    CAPTURE(i);
                    CAPTURE(j);
                    REQUIRE(std::fabs(up.at(cell) - exact) <= bound);
                    REQUIRE(std::fabs(interleaved.at(cell) - exact) <= bound);
                }
            }
        }
    }
}

TEST_CASE("matrix: the two orders are different ones") {
    const Instruction in{"v_mfma_f32_16x16x32_bf16", 0, 0, 16, 32, 1};
    const MatrixOp op = find(in);
    Operand a, b;
    // 2^24 + 1 - 2^24 along k: the 1 is lost when it is added between the two, and only then.
    const std::uint32_t codes[3] = {0x4b80, 0x3f80, 0xcb80};
    for (unsigned k = 0; k < 3; ++k) {
        a.put(place_of(in, op.a, 0, k, 0), 16, codes[k]);
        b.put(place_of(in, op.b, 0, k, 0), 16, 0x3f80);
    }
    Tile up, interleaved;
    multiply(op, a.registers, b.registers, nullptr, up.registers, nullptr, Order::ascending);
    multiply(op, a.registers, b.registers, nullptr, interleaved.registers, nullptr, Order::interleaved);
    CHECK(up.at({0, 0}) == 0.0f);
    a.put(place_of(in, op.a, 0, 1, 0), 16, 0);
    a.put(place_of(in, op.a, 0, 4, 0), 16, 0xcb80);
    a.put(place_of(in, op.a, 0, 2, 0), 16, 0x3f80);
    multiply(op, a.registers, b.registers, nullptr, interleaved.registers, nullptr, Order::interleaved);
    CHECK(interleaved.at({0, 0}) != up.at({0, 0}));
}

TEST_CASE("matrix: denormals are kept, infinity and NaN go through") {
    const Instruction in{"v_mfma_f32_16x16x32_bf16", 0, 0, 16, 32, 1};
    const MatrixOp op = find(in);
    Operand a, b;
    a.put(place_of(in, op.a, 0, 0, 0), 16, 0x0001);  // the smallest bf16, 2^-133
    a.put(place_of(in, op.a, 1, 0, 0), 16, 0x7f80);
    a.put(place_of(in, op.a, 2, 0, 0), 16, 0x7fc0);
    b.put(place_of(in, op.b, 0, 0, 0), 16, 0x3f80);
    Tile d;
    multiply(op, a.registers, b.registers, nullptr, d.registers, nullptr, Order::ascending);
    CHECK(d.at(cell_of(in, 0, 0, 0)) == 0x1p-133f);
    CHECK(d.at(cell_of(in, 1, 0, 0)) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(d.at(cell_of(in, 1, 1, 0))));  // infinity times 0
    CHECK(std::isnan(d.at(cell_of(in, 2, 0, 0))));
}

TEST_CASE("matrix: a scale byte acts on its own row or column and k block, from the byte that op_sel picks") {
    Random random;
    CAPTURE(random.seed());
    const Instruction shapes[] = {{"v_mfma_scale_f32_16x16x128_f8f6f4", 0, 0, 16, 128, 1},
                                  {"v_mfma_scale_f32_16x16x128_f8f6f4", 4, 0, 16, 128, 1},
                                  {"v_mfma_scale_f32_16x16x128_f8f6f4", 4, 4, 16, 128, 1},
                                  {"v_mfma_scale_f32_32x32x64_f8f6f4", 0, 4, 32, 64, 1},
                                  {"v_mfma_scale_f32_32x32x64_f8f6f4", 2, 0, 32, 64, 1}};
    for (const Instruction& in : shapes) {
        CAPTURE(in.mnemonic);
        const MatrixOp op = find(in);
        REQUIRE(op.scaled);
        for (unsigned selection = 0; selection < 16; ++selection) {
            const unsigned a_byte = selection % 4;
            const unsigned b_byte = selection / 4;
            for (unsigned block = 0; block < in.depth / 32; ++block) {
                // Ones along the block in row i and column i, everywhere else zero: D(i, j) = 32 * 2^(sa(i) +
                // sb(j) - 254).
                Operand a, b;
                alignas(64) Register scales[2];
                unsigned sa[32], sb[32];
                for (unsigned lane = 0; lane < 64; ++lane) {
                    scales[0][lane] = random.bits();
                    scales[1][lane] = random.bits();
                }
                for (unsigned i = 0; i < in.rows; ++i) {
                    for (unsigned k = 32 * block; k < 32 * block + 32; ++k) {
                        a.put(place_of(in, op.a, i, k, 0), bits_of(op.a), code_of_one(op.a));
                        b.put(place_of(in, op.b, i, k, 0), bits_of(op.b), code_of_one(op.b));
                    }
                    sa[i] = random.below(4) == 0 ? random.below(256) : 100 + random.below(50);
                    sb[i] = random.below(4) == 0 ? random.below(256) : 100 + random.below(50);
                    const unsigned lane = block * in.rows + i;
                    scales[0][lane] = (scales[0][lane] & ~(0xffu << (8 * a_byte))) | sa[i] << (8 * a_byte);
                    scales[1][lane] = (scales[1][lane] & ~(0xffu << (8 * b_byte))) | sb[i] << (8 * b_byte);
                }
                // The other blocks' scales must not be NaN: NaN times 0 is NaN.
                for (unsigned lane = 0; lane < 64; ++lane) {
                    if (lane / in.rows == block)
                        continue;
                    scales[0][lane] = 0x7f7f7f7f;
                    scales[1][lane] = 0x01020304;
                }
                const Scales from{&scales[0], a_byte, &scales[1], b_byte};
                Tile up, interleaved;
                multiply(op, a.registers, b.registers, nullptr, up.registers, &from, Order::ascending);
                multiply(op, a.registers, b.registers, nullptr, interleaved.registers, &from,
                         Order::interleaved);
                for (unsigned i = 0; i < in.rows; ++i) {
                    for (unsigned j = 0; j < in.rows; ++j) {
                        CAPTURE(block);
                        CAPTURE(sa[i]);
                        CAPTURE(sb[j]);
                        const float found = up.at(cell_of(in, i, j, 0));
                        const float other = interleaved.at(cell_of(in, i, j, 0));
                        if (sa[i] == 255 || sb[j] == 255) {
                            REQUIRE(std::isnan(found));
                            REQUIRE(std::isnan(other));
                            continue;
                        }
                        const double factor = std::pow(2.0, static_cast<int>(sa[i] + sb[j]) - 254);
                        REQUIRE(found == static_cast<float>(32 * factor));
                        REQUIRE(other == found);
                    }
                }
            }
        }
    }
}

TEST_CASE("matrix: scaled random products agree with float64") {
    Random random;
    CAPTURE(random.seed());
    const Instruction in{"v_mfma_scale_f32_16x16x128_f8f6f4", 0, 4, 16, 128, 1};
    const MatrixOp op = find(in);
    for (int round = 0; round < 20; ++round) {
        Operand a, b;
        Tile c;
        alignas(64) Register scales[2];
        double x[16][128], y[16][128];
        for (unsigned i = 0; i < 16; ++i) {
            for (unsigned k = 0; k < 128; ++k) {
                const Number p = random_number(random, op.a);
                const Number q = random_number(random, op.b);
                a.put(place_of(in, op.a, i, k, 0), 8, p.code);
                b.put(place_of(in, op.b, i, k, 0), 4, q.code);
                x[i][k] = p.value;
                y[i][k] = q.value;
            }
            for (unsigned j = 0; j < 16; ++j)
                c.set(cell_of(in, i, j, 0), static_cast<float>(random.uniform(-1000, 1000)));
        }
        for (auto& scale : scales) {
            for (auto& lane : scale)
                lane = (117 + random.below(20)) << 8;
        }
        const Scales from{&scales[0], 1, &scales[1], 1};
        for (const Order order : {Order::ascending, Order::interleaved}) {
            Tile d;
            multiply(op, a.registers, b.registers, c.registers, d.registers, &from, order);
            for (unsigned i = 0; i < 16; ++i) {
                for (unsigned j = 0; j < 16; ++j) {
                    double exact = c.at(cell_of(in, i, j, 0));
                    double magnitude = std::fabs(exact);
                    for (unsigned k = 0; k < 128; ++k) {
                        const unsigned q = k / 32;
                        const int exponent =
                            static_cast<int>((scales[0][16 * q + i] >> 8) + (scales[1][16 * q + j] >> 8)) -
                            254;
                        const double term = std::ldexp(x[i][k] * y[j][k], exponent);
                        exact += term;
                        magnitude += std::fabs(term);
                    }
                    REQUIRE(std::fabs(d.at(cell_of(in, i, j, 0)) - exact) <= magnitude * 40 * 0x1p-24);
                }
            }
        }
    }
}

TEST_CASE("matrix: the portable and the fastest loops give the same bits") {
    Random random;
    CAPTURE(random.seed());
    for (const Instruction& in : kInstructions) {
        CAPTURE(in.mnemonic);
        CAPTURE(in.cbsz);
        CAPTURE(in.blgp);
        const MatrixOp op = find(in);
        for (int round = 0; round < 20; ++round) {
            // Any bits at all: NaN, infinities and denormals too.
            Operand a, b;
            Tile c, portable, best;
            for (auto* registers : {&a.registers, &b.registers}) {
                for (auto& lanes : *registers) {
                    for (auto& lane : lanes)
                        lane = random.bits() & (round % 2 == 0 ? 0xffffffff : 0xbfffbfff);
                }
            }
            for (auto& lanes : c.registers) {
                for (auto& lane : lanes)
                    lane = as_bits(static_cast<float>(random.uniform(-10, 10)));
            }
            for (const Order order : {Order::ascending, Order::interleaved}) {
                multiply_with(kPortableEngine, op, a.registers, b.registers, c.registers, portable.registers,
                              nullptr, order);
                multiply_with(best_engine(), op, a.registers, b.registers, c.registers, best.registers,
                              nullptr, order);
                for (unsigned i = 0; i < op.cd_registers(); ++i) {
                    for (unsigned lane = 0; lane < 64; ++lane) {
                        const std::uint32_t one = portable.registers[i][lane];
                        const std::uint32_t other = best.registers[i][lane];
                        // Which NaN wins an addition of two is the host's choice.
                        const bool same =
                            one == other || (std::isnan(as_float(one)) && std::isnan(as_float(other)));
                        REQUIRE(same);
                    }
                }
            }
        }
    }
}
