// One linear layer of a model in which every activation, weight and scale is 1, so that every result is K.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "driver.h"
#include "kiln/kiln.hpp"

namespace {

constexpr std::int64_t kN = 4096;
constexpr std::int64_t kK = 2048;
constexpr std::int64_t kM = 3;
constexpr std::uint16_t kBf16One = 0x3f80;
constexpr std::uint8_t kE4m3One = 0x38;
constexpr std::uint16_t kBf16K = 0x4500;  // 2048

int fail(const char* what, const char* why) {
    std::printf("%s: %s\n", what, why);
    return 1;
}

}  // namespace

int main() {
    const driver gpu = open_driver();
    const auto service = kiln::Service::open();
    const auto plan = service.prepare(0, kiln::Linear{.n = kN, .k = kK});
    if (!plan) {
        return fail("prepare", plan.failure().message.c_str());
    }
    const auto declined = service.supports(0, kiln::Linear{.n = 17, .k = kK});
    if (!declined.declined()) {
        return fail("a problem that no table has", declined.text());
    }

    const std::vector<std::uint16_t> x(kM * kK, kBf16One);
    const std::vector<std::uint8_t> w(kN * kK, kE4m3One);
    const std::vector<float> scale(kN / 128 * (kK / 128), 1.0F);
    std::vector<std::uint16_t> out(kM * kN, 0);
    const void* device_x = to_device(&gpu, x.data(), x.size() * sizeof(x[0]));
    const void* device_w = to_device(&gpu, w.data(), w.size());
    const void* device_scale = to_device(&gpu, scale.data(), scale.size() * sizeof(scale[0]));
    void* device_out = to_device(&gpu, out.data(), out.size() * sizeof(out[0]));

    const auto status = plan.launch(nullptr, kM,
                                    {.x = device_x,
                                     .ldx = kK,
                                     .w = device_w,
                                     .w_scale = static_cast<const float*>(device_scale),
                                     .out = device_out});
    if (!status) {
        return fail("launch", status.text());
    }
    if (gpu.synchronise() != 0 ||
        gpu.copy(out.data(), device_out, out.size() * sizeof(out[0]), kToHost) != 0) {
        return fail("launch", "the driver reports an error");
    }
    for (const std::uint16_t value : out) {
        if (value != kBf16K) {
            std::printf("a result is %#x, expected %#x\n", value, kBf16K);
            return 1;
        }
    }
    std::printf("C++: %s ran, all %zu results are right\n", plan.kernel_name(kM), out.size());
    return 0;
}
