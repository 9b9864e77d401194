#include "device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/service/settings.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

namespace {

constexpr std::uint16_t kUntouched = 0x5aa5;

}  // namespace

std::shared_ptr<device::Device> open_simulator() {
    device::DriverConfig config;
    config.driver = device::Driver::sim;
    config.sim_library = KILN_SIM_LIBRARY;
    auto device = value_of(device::open_devices(config)).front();
    check(device->make_current());
    return device;
}

std::shared_ptr<device::Device> open_device() {
    const auto settings = value_of(service::read_settings({}, service::process_environment()));
    if (settings.driver.driver == device::Driver::automatic ||
        settings.driver.driver == device::Driver::sim) {
        return open_simulator();
    }
    auto devices = device::open_devices(settings.driver);
    if (!devices && devices.error().code == ErrorCode::environment) {
        MESSAGE("skipped: " << devices.error().message);
        return nullptr;
    }
    auto device = value_of(std::move(devices)).front();
    check(device->make_current());
    return device;
}

LoadedCase::LoadedCase(device::Device& device, const operators::LinearArrays& arrays)
    : device_(device),
      m_(arrays.m),
      n_(arrays.n),
      ldx_(arrays.ldx),
      x_(load(std::as_bytes(std::span(arrays.x)))),
      w_(load(std::as_bytes(std::span(arrays.w)))),
      w_scale_(load(std::as_bytes(std::span(arrays.w_scale)))),
      out_(load(Bytes(static_cast<std::size_t>(m_ * n_) * sizeof(std::uint16_t)))) {}

LoadedCase::~LoadedCase() {
    for (void* pointer : owned_) {
        (void)device_.free(pointer);
    }
}

void* LoadedCase::load(ByteView contents) {
    void* const pointer = value_of(device_.allocate(contents.size()));
    owned_.push_back(pointer);
    check(device_.copy_to_device(pointer, contents, nullptr));
    return pointer;
}

LoadedCase::Run LoadedCase::run(const Built& built, std::int64_t m) const {
    const operators::Specialisation& wanted = built.specialisation;
    const auto module = value_of(device_.load(built.result.code_object));
    const device::Function function = value_of(module->function(wanted.kernel_name));
    operators::LinearKernargs arguments{x_,
                                        w_,
                                        static_cast<const float*>(w_scale_),
                                        out_,
                                        static_cast<std::int32_t>(m),
                                        static_cast<std::int32_t>(ldx_)};

    std::vector<std::uint16_t> out(static_cast<std::size_t>(m_ * n_), kUntouched);
    check(device_.copy_to_device(out_, std::as_bytes(std::span(out)), nullptr));
    if (device_.info().simulated) {
        (void)value_of(device_.take_counts());
    }
    const int error =
        device_.launch(function, wanted.kernels.front().shape_for(m), nullptr, &arguments, sizeof(arguments));
    REQUIRE_MESSAGE(error == 0, device_.describe(error));
    check(device_.synchronize(nullptr));

    Run result;
    if (device_.info().simulated) {
        result.counts = value_of(device_.take_counts());
    }
    check(device_.copy_to_host(std::as_writable_bytes(std::span(out)), out_, nullptr));
    const auto end = out.begin() + m * n_;
    result.past_end_untouched =
        std::all_of(end, out.end(), [](std::uint16_t bits) { return bits == kUntouched; });
    result.out.assign(out.begin(), end);
    return result;
}

}  // namespace kiln::kernels_test
