// A small problem with arrays of its own, quick to compile and to run, for stories about plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/kiln.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "tests/api/story.hpp"

namespace kiln::test {

inline constexpr std::int64_t kSmallK = 256;
inline constexpr std::uint64_t kSmallSeed = 90125;

inline kiln::Linear small_problem(std::int64_t n) {
    return {.n = n, .k = kSmallK};
}

// One row: M up to 4 and up to 16, each with a kernel of its own.
inline std::string small_row(std::int64_t n, int variant) {
    const auto bucket = [variant](int edge) {
        return R"({"max_m": )" + std::to_string(edge) + R"(, "template": "linear/small_m", "constants": )" +
               engine::constants(edge, variant) + "}";
    };
    return R"({"operator": "linear", "problem": {"n": )" + std::to_string(n) + R"(, "k": )" +
           std::to_string(kSmallK) + R"(}, "target": ")" + engine::target() +
           R"(", "provenance": {"kind": "untuned"}, "buckets": [)" + bucket(4) + ", " + bucket(16) + "]}";
}

inline std::string small_table(const std::vector<std::string>& rows) {
    std::string text;
    for (const std::string& row : rows) {
        text += (text.empty() ? "" : ",\n") + row;
    }
    return "{\"schema\": 1, \"rows\": [\n" + text + "\n]}\n";
}

// M rows of one problem on the current device, and what must come out.
class SmallCase {
  public:
    SmallCase(std::int64_t m, std::int64_t n)
        : host_(operators::make_linear_case(m, n, kSmallK, kSmallSeed)),
          reference_(operators::linear_reference(host_)),
          x_(host_.x),
          w_(host_.w),
          w_scale_(host_.w_scale),
          out_(std::vector<std::uint16_t>(static_cast<std::size_t>(m * n), 0xffff)) {}

    [[nodiscard]] kiln::Linear::Args args() const {
        return {.x = x_.get(), .ldx = host_.ldx, .w = w_.get(), .w_scale = w_scale_.get(), .out = out_.get()};
    }
    [[nodiscard]] std::int64_t m() const { return host_.m; }
    [[nodiscard]] std::vector<std::uint16_t> read() const { return out_.read(); }
    [[nodiscard]] bool is_right() const {
        return operators::compare_linear(read(), reference_, host_.m, host_.n).passed();
    }
    // NaN everywhere, on every stream's view. Not while a stream captures.
    void clear() const { engine::fill(out_.get(), 0xff, out_.bytes()); }

  private:
    operators::LinearArrays host_;
    std::vector<double> reference_;
    DeviceVector<std::uint16_t> x_;
    DeviceVector<std::uint8_t> w_;
    DeviceVector<float> w_scale_;
    DeviceVector<std::uint16_t> out_;
};

}  // namespace kiln::test
