// What clang makes of the builtins that kernels use, run on the simulator: the whole way from HIP source
// through hipRTC, the code object and its listing to numbers, each compared with an expectation from the
// ISA's text.
#include <array>
#include <cstring>
#include <memory>

#include "runtime/compile/compiler.hpp"
#include "runtime/sim/machine.hpp"
#include "tests/sim/isa_compile_kernels.hpp"
#include "tests/sim/numeric_support.hpp"

using namespace kiln;
using namespace kiln::sim::test;
using u32 = std::uint32_t;

namespace {

u32 b(float x) {
    return as_bits(x);
}
float f(u32 x) {
    return as_float(x);
}

// Compiled once for all cases.
const sim::Program& program() {
    static const std::shared_ptr<const sim::Program> loaded = [] {
        auto compiler = compile::Compiler::create({});
        REQUIRE_MESSAGE(compiler.has_value(), (compiler ? "" : compiler.error().message));
        auto compiled = (*compiler)->compile({.name = "instructions.hip",
                                              .source = kInstructionKernels,
                                              .headers = {},
                                              .target = "gfx950",
                                              .options = {"-O3", "-std=c++20"}});
        REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message));
        auto made = sim::Program::load(compiled->code_object, compiled->listing);
        REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
        return *made;
    }();
    return *loaded;
}

// One launch: buffers on the simulated device and the kernel's arguments, in order.
class Launch {
  public:
    Launch() : memory_(std::size_t{1} << 26) {
        const ByteView image = program().image();
        memory_.admit(image.data(), image.size());
    }
    template <class T>
    T* buffer(std::size_t count, const T* from = nullptr) {
        auto allocated = memory_.allocate(count * sizeof(T));
        REQUIRE(allocated.has_value());
        T* pointer = static_cast<T*>(*allocated);
        if (from != nullptr)
            std::memcpy(pointer, from, count * sizeof(T));
        else
            std::memset(static_cast<void*>(pointer), 0, count * sizeof(T));
        add(pointer);
        return pointer;
    }
    template <class T>
    T* buffer(const std::vector<T>& from) {
        return buffer(from.size(), from.data());
    }
    void value(int x) { add(x); }
    void run(const char* kernel, u32 groups, u32 threads) {
        const sim::Kernel* found = program().find(kernel);
        REQUIRE(found != nullptr);
        sim::Dispatch dispatch;
        dispatch.kernel = found;
        dispatch.grid = {groups, 1, 1};
        dispatch.block = {threads, 1, 1};
        dispatch.kernargs = kernargs_;
        const auto counts = sim::run(dispatch, memory_);
        REQUIRE_MESSAGE(counts.has_value(), (counts ? "" : counts.error().message));
    }

  private:
    template <class T>
    void add(T x) {
        const std::size_t at = (kernargs_.size() + sizeof x - 1) / sizeof x * sizeof x;
        kernargs_.resize(at + sizeof x);
        std::memcpy(kernargs_.data() + at, &x, sizeof x);
    }
    sim::Memory memory_;
    Bytes kernargs_;
};

std::vector<float> random_floats(Random& random, std::size_t count, double low, double high) {
    std::vector<float> numbers(count);
    for (float& x : numbers)
        x = static_cast<float>(random.uniform(low, high));
    return numbers;
}

u32 bf16_bits(double x) {  // of numbers that bf16 holds, or NaN
    return std::isnan(x) ? 0x7fc0 : b(static_cast<float>(x)) >> 16;
}
bool same_bf16(u32 found, double expected) {
    return std::isnan(expected) ? std::isnan(f(found << 16)) : found == bf16_bits(expected);
}

// Nearest fp4 code of a magnitude, ties to even, saturating; and the sign.
u32 fp4_code(double x) {
    u32 best = 0;
    for (u32 code = 1; code < 8; ++code) {
        const double now = std::fabs(kE2m1.value(code) - std::fabs(x));
        const double then = std::fabs(kE2m1.value(best) - std::fabs(x));
        if (now < then || (now == then && code % 2 == 0))
            best = code;
    }
    return best | (std::signbit(x) ? 8 : 0);
}

}  // namespace

TEST_CASE("compiled: fp4 to bf16, every code in every byte") {
    Random random;
    CAPTURE(random.seed());
    std::vector<u32> codes(256);
    std::vector<float> scales(256);
    for (u32 i = 0; i < 256; ++i) {
        codes[i] = i * 0x01010101u + 0x00102030u * i;
        scales[i] = f((random.bits() & 0x807fffff) | (100 + random.below(55)) << 23);
    }
    Launch launch;
    launch.buffer(codes);
    launch.buffer(scales);
    const u32* out = launch.buffer<u32>(4 * 256);
    launch.run("fp4_up", 4, 64);
    for (u32 i = 0; i < 256; ++i) {
        const double scale = std::pow(2.0, static_cast<int>(b(scales[i]) >> 23 & 0xff) - 127);
        for (u32 byte = 0; byte < 4; ++byte) {
            for (u32 nibble = 0; nibble < 2; ++nibble) {
                const u32 code = codes[i] >> (8 * byte + 4 * nibble) & 0xf;
                CHECK(same_bf16(out[4 * i + byte] >> (16 * nibble) & 0xffff, kE2m1.value(code) * scale));
            }
        }
    }
}

TEST_CASE("compiled: fp8 to bf16, every code in both halves") {
    std::vector<u32> codes(256);
    std::vector<float> scales(256);
    for (u32 i = 0; i < 256; ++i) {
        codes[i] = i | (255 - i) << 8 | (i ^ 0x55) << 16 | (i ^ 0xaa) << 24;
        scales[i] = std::ldexp(1.5f, static_cast<int>(i % 60) - 30);  // the mantissa is ignored
    }
    Launch launch;
    launch.buffer(codes);
    launch.buffer(scales);
    const u32* out = launch.buffer<u32>(2 * 256);
    launch.run("fp8_up", 4, 64);
    for (u32 i = 0; i < 256; ++i) {
        for (u32 byte = 0; byte < 4; ++byte) {
            const double expected =
                kE4m3.value(codes[i] >> (8 * byte) & 0xff) * std::pow(2.0, static_cast<int>(i % 60) - 30);
            CHECK(same_bf16(out[2 * i + byte / 2] >> (16 * (byte % 2)) & 0xffff, expected));
        }
    }
}

TEST_CASE("compiled: to fp4 from f32 and from bf16") {
    Random random;
    CAPTURE(random.seed());
    std::vector<float> in(64 * 8), scales(64);
    for (u32 t = 0; t < 64; ++t) {
        const int exponent = static_cast<int>(random.below(40)) - 20;
        scales[t] = std::ldexp(1.99f, exponent);
        for (u32 i = 0; i < 8; ++i)  // eighths: ties, and beyond 6
            in[8 * t + i] =
                std::ldexp(static_cast<float>(static_cast<int>(random.below(129)) - 64) / 8, exponent);
    }
    Launch launch;
    launch.buffer(in);
    launch.buffer(scales);
    const u32* out = launch.buffer<u32>(2 * 64);
    launch.run("fp4_down", 1, 64);
    for (u32 t = 0; t < 64; ++t) {
        u32 expected = 0;
        for (u32 i = 0; i < 8; ++i) {
            const int exponent = static_cast<int>(b(scales[t]) >> 23) - 127;
            expected |= fp4_code(std::ldexp(double{in[8 * t + i]}, -exponent)) << (4 * i);
        }
        CHECK(out[2 * t] == expected);
        CHECK(out[2 * t + 1] == expected);  // eighths up to 8 are bf16 numbers
    }
}

TEST_CASE("compiled: to fp8, every code, every tie, beyond the largest") {
    std::vector<float> in;
    std::vector<u32> expected;
    for (u32 code = 0; code < 0x7f; ++code) {
        in.push_back(static_cast<float>(kE4m3.value(code)));
        expected.push_back(code);
        in.push_back(static_cast<float>(-kE4m3.value(code)));
        expected.push_back(code | 0x80);
        if (code < 0x7e) {
            in.push_back(static_cast<float>((kE4m3.value(code) + kE4m3.value(code + 1)) / 2));
            expected.push_back(code % 2 == 0 ? code : code + 1);
        }
    }
    const float extremes[] = {464.0f, 464.03f, 1e30f, std::numeric_limits<float>::infinity(), std::nanf("")};
    const u32 codes[] = {0x7e, 0x7f, 0x7f, 0x7f, 0x7f};
    in.insert(in.end(), std::begin(extremes), std::end(extremes));
    expected.insert(expected.end(), std::begin(codes), std::end(codes));
    in.resize(4 * 128, 1.0f);
    expected.resize(4 * 128, 0x38);
    Launch launch;
    launch.buffer(in);
    const u32* out = launch.buffer<u32>(128);
    launch.run("fp8_down", 2, 64);
    for (u32 i = 0; i < in.size(); ++i) {
        CAPTURE(in[i]);
        CHECK((out[i / 4] >> (8 * (i % 4)) & 0xff) == expected[i]);
    }
}

TEST_CASE(
    "compiled: division, reciprocal and square root are correctly rounded, a product and a sum are fused") {
    Random random;
    CAPTURE(random.seed());
    const u32 count = 4096;
    std::vector<float> x(count), y(count);
    for (u32 i = 0; i < count; ++i) {
        x[i] = f(random.bits() & 0x7fffffff);
        y[i] = f(random.bits());
    }
    const u32 edges[] = {0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7e800001};
    for (u32 i = 0; i < 64; ++i) {
        x[i] = f(edges[i / 8]);
        y[i] = f(edges[i % 8]);
    }
    Launch launch;
    launch.buffer(x);
    launch.buffer(y);
    const u32* out = launch.buffer<u32>(4 * count);
    launch.run("arithmetic", count / 64, 64);
    for (u32 i = 0; i < count; ++i) {
        const float expected[4] = {x[i] / y[i], 1.0f / y[i], std::sqrt(x[i]), std::fma(x[i], y[i], 1.0f)};
        for (u32 n = 0; n < 4; ++n) {
            CAPTURE(x[i]);
            CAPTURE(y[i]);
            CAPTURE(n);
            if (std::isnan(expected[n]))
                CHECK(std::isnan(f(out[4 * i + n])));
            else
                CHECK(out[4 * i + n] == b(expected[n]));
        }
    }
}

TEST_CASE("compiled: expf of the device library is good to 2 ULP") {
    Random random;
    CAPTURE(random.seed());
    std::vector<float> x = random_floats(random, 1024, -80, 80);
    Launch launch;
    launch.buffer(x);
    const float* out = launch.buffer<float>(1024);
    launch.run("exponential", 16, 64);
    for (u32 i = 0; i < 1024; ++i) {
        const double exact = std::exp(double{x[i]});
        CAPTURE(x[i]);
        CHECK(std::fabs(out[i] - exact) <= 2 * exact * 0x1p-23);
    }
}

TEST_CASE("compiled: f32 to bf16 rounds to nearest even") {
    Random random;
    CAPTURE(random.seed());
    std::vector<float> x(2 * 256);
    for (u32 i = 0; i < x.size(); ++i)
        x[i] = f((random.bits() & 0xbfffffff & (i % 2 == 0 ? 0xffff0000 : 0xffffffff)) |
                 (i % 2 == 0 ? 0x8000 : 0));
    Launch launch;
    launch.buffer(x);
    const u32* out = launch.buffer<u32>(256);
    launch.run("bf16_round", 4, 64);
    for (u32 i = 0; i < x.size(); ++i) {
        const u32 bits = b(x[i]);
        const u32 lower = bits & 0xffff;
        const u32 up = lower > 0x8000 || (lower == 0x8000 && (bits >> 16) % 2 == 1) ? 1 : 0;
        CHECK((out[i / 2] >> (16 * (i % 2)) & 0xffff) == (bits >> 16) + up);
    }
}

TEST_CASE("compiled: bf16 dot product") {
    Random random;
    CAPTURE(random.seed());
    std::vector<u32> x(64), y(64);
    std::vector<float> z(64);
    std::array<double, 64> expected{};
    for (u32 t = 0; t < 64; ++t) {
        z[t] = static_cast<float>(random.below(100));
        expected[t] = z[t];
        for (u32 half = 0; half < 2; ++half) {
            const int p = static_cast<int>(random.below(100)) - 50;
            const int q = static_cast<int>(random.below(100)) - 50;
            x[t] |= bf16_bits(p) << (16 * half);
            y[t] |= bf16_bits(q) << (16 * half);
            expected[t] += p * q;
        }
    }
    Launch launch;
    launch.buffer(x);
    launch.buffer(y);
    launch.buffer(z);
    const float* out = launch.buffer<float>(64);
    launch.run("dot2", 1, 64);
    for (u32 t = 0; t < 64; ++t)
        CHECK(out[t] == expected[t]);
}

TEST_CASE("compiled: numbers move between lanes") {
    Launch launch;
    const int* out = launch.buffer<int>(11 * 64);
    launch.run("move_lanes", 1, 64);
    for (int t = 0; t < 64; ++t) {
        CAPTURE(t);
        CHECK(out[0 * 64 + t] == (t % 16 == 0 ? -1 : t - 1));
        CHECK(out[1 * 64 + t] == (t % 16 == 15 ? 0 : t + 1));
        CHECK(out[2 * 64 + t] == (t ^ 2));
        CHECK(out[3 * 64 + t] == (t ^ 15));
        CHECK(out[4 * 64 + t] == (t / 16 % 2 == 1 ? t / 16 * 16 - 1 : -1));
        CHECK(out[5 * 64 + t] == (t >= 32 ? 31 : -1));
        CHECK(out[6 * 64 + t] == 63 - t);
        CHECK(out[7 * 64 + t] == 51);
        CHECK(out[8 * 64 + t] == (t < 32 ? t : 100 + t - 32));
        CHECK(out[9 * 64 + t] == (t < 32 ? t + 32 : 100 + t));
        CHECK(out[10 * 64 + t] == (t ^ 16));
    }
}

TEST_CASE("compiled: packed bf16 atomics add") {
    Launch launch;
    const u32* out = launch.buffer<u32>(4);
    launch.run("atomic_add", 2, 64);
    for (u32 i = 0; i < 4; ++i)  // 32 lanes a sum
        CHECK(out[i] == (bf16_bits(32) | bf16_bits(64) << 16));
}

TEST_CASE("compiled: a buffer load beyond the range gives zero, dword by dword") {
    std::vector<u32> in(64 * 4);
    for (u32 i = 0; i < in.size(); ++i)
        in[i] = 1000 + i;
    Launch launch;
    launch.buffer(in);
    const int bytes = 16 * 40 + 8;
    launch.value(bytes);
    const u32* out = launch.buffer<u32>(64 * 4);
    launch.run("buffer_load", 1, 64);
    for (u32 i = 0; i < in.size(); ++i)
        CHECK(out[i] == (4 * i < static_cast<u32>(bytes) ? 1000 + i : 0));
}

TEST_CASE("compiled: bf16 matrix product") {
    Random random;
    CAPTURE(random.seed());
    int a[16][32], c[16][32];
    std::vector<u32> a_words(64 * 4), b_words(64 * 4);
    for (u32 row = 0; row < 16; ++row) {
        for (u32 k = 0; k < 32; ++k) {
            a[row][k] = static_cast<int>(random.below(33)) - 16;
            c[row][k] = static_cast<int>(random.below(33)) - 16;
            const u32 word = (k / 8 * 16 + row) * 4 + k % 8 / 2;
            a_words[word] |= bf16_bits(a[row][k]) << (16 * (k % 2));
            b_words[word] |= bf16_bits(c[row][k]) << (16 * (k % 2));
        }
    }
    const std::vector<float> addend(256);
    Launch launch;
    launch.buffer(a_words);
    launch.buffer(b_words);
    launch.buffer(addend);
    const float* out = launch.buffer<float>(256);
    launch.run("multiply_bf16", 1, 64);
    for (u32 row = 0; row < 16; ++row) {
        for (u32 column = 0; column < 16; ++column) {
            int expected = 0;
            for (u32 k = 0; k < 32; ++k)
                expected += a[row][k] * c[column][k];
            CHECK(out[(row / 4 * 16 + column) * 4 + row % 4] == static_cast<float>(expected));
        }
    }
}

TEST_CASE("compiled: scaled matrix products of fp8 with fp4, unscaled ones, and fp8 with itself") {
    Random random;
    CAPTURE(random.seed());
    const u32 fp8_codes[5] = {0xc0, 0xb8, 0x00, 0x38, 0x40};  // -2 -1 0 1 2
    const u32 fp4_codes[5] = {0xc, 0xa, 0x0, 0x2, 0x4};
    int x[16][128], y[16][128];
    std::vector<u32> a(64 * 8), bb(64 * 8), scale_a(64), scale_b(64);
    for (u32 row = 0; row < 16; ++row) {
        for (u32 k = 0; k < 128; ++k) {
            const u32 i = random.below(5), j = random.below(5);
            x[row][k] = static_cast<int>(i) - 2;
            y[row][k] = static_cast<int>(j) - 2;
            const u32 byte = k / 64 * 16 + k % 16;
            a[(k % 64 / 16 * 16 + row) * 8 + byte / 4] |= fp8_codes[i] << (byte % 4 * 8);
            bb[(k / 32 * 16 + row) * 8 + k % 32 / 8] |= fp4_codes[j] << (k % 8 * 4);
        }
    }
    for (u32 lane = 0; lane < 64; ++lane) {
        for (u32 byte = 0; byte < 4; ++byte) {
            scale_a[lane] |= (124 + random.below(7)) << (8 * byte);
            scale_b[lane] |= (124 + random.below(7)) << (8 * byte);
        }
    }
    std::vector<float> c(256);
    for (float& element : c)
        element = static_cast<float>(random.below(100));
    Launch launch;
    launch.buffer(a);
    launch.buffer(bb);
    launch.buffer(c);
    launch.buffer(scale_a);
    launch.buffer(scale_b);
    const float* out = launch.buffer<float>(3 * 256);
    launch.run("multiply_scaled", 1, 64);
    const auto factor = [](u32 word, u32 byte) {
        return std::pow(2.0, static_cast<int>(word >> (8 * byte) & 0xff) - 127);
    };
    for (u32 row = 0; row < 16; ++row) {
        for (u32 column = 0; column < 16; ++column) {
            const u32 at = (row / 4 * 16 + column) * 4 + row % 4;
            double scaled = c[at], plain = c[at], itself = c[at];
            for (u32 k = 0; k < 128; ++k) {
                const u32 lane = k / 32 * 16;
                scaled += x[row][k] * y[column][k] * factor(scale_a[lane + row], 1) *
                          factor(scale_b[lane + column], 2);
                plain += x[row][k] * y[column][k];
                itself += x[row][k] * x[column][k] * factor(scale_a[lane + row], 3);
            }
            CHECK(out[at] == static_cast<float>(scaled));
            CHECK(out[256 + at] == static_cast<float>(plain));
            CHECK(out[512 + at] == static_cast<float>(itself));
        }
    }
}

TEST_CASE("compiled: work-groups share LDS across a barrier") {
    std::vector<u32> in(3 * 256);
    Random random;
    CAPTURE(random.seed());
    for (u32& x : in)
        x = random.bits();
    Launch launch;
    launch.buffer(in);
    const u32* out = launch.buffer<u32>(in.size());
    launch.run("share", 3, 256);
    for (u32 i = 0; i < in.size(); ++i) {
        const u32 group = i / 256 * 256;
        CHECK(out[i] == in[group + 255 - i % 256] + in[group + (i % 256 + 64) % 256]);
    }
}
