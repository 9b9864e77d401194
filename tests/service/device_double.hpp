// A device whose driver does nothing, says what a test tells it to say, and counts.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.hpp"

namespace kiln::test {

class ModuleDouble final : public device::Module {
  public:
    explicit ModuleDouble(std::shared_ptr<const std::atomic<int>> resets)
        : resets_(std::move(resets)), made_after_(*resets_) {}
    Result<device::Function> function(const std::string&) override {
        if (*resets_ != made_after_) {
            return fail(ErrorCode::load_failed, Stage::load, "the module went with a reset");
        }
        return static_cast<void*>(this);
    }

  private:
    const std::shared_ptr<const std::atomic<int>> resets_;
    const int made_after_;
};

class DeviceDouble final : public device::Device {
  public:
    explicit DeviceDouble(std::string target = "gfx950:sramecc+:xnack-", int ordinal = 0,
                          int compute_units = 256) {
        info_.name = "double";
        info_.num_compute_units = compute_units;
        info_.target = std::move(target);
        info_.ordinal = ordinal;
    }

    // What the driver answers, and what was asked of it.
    int launch_error = 0;
    int refused_launch = 0;  // the one of this number is, counted from 1
    bool earlier_failure = false;
    int current = 0;
    mutable std::atomic<int> launches{0};
    mutable std::atomic<std::uint32_t> last_grid{0};
    bool keep_shapes = false;  // of launches, in order, with their arguments; for one thread
    mutable std::vector<device::LaunchShape> shapes;
    mutable std::vector<std::vector<std::byte>> arguments;
    const void* filled_at = nullptr;
    std::size_t filled = 0;
    std::atomic<int> loads{0};
    std::atomic<bool> capturing{false};
    std::optional<Error> load_error;
    // Of the device by the program: no module of before gives a function any more.
    const std::shared_ptr<std::atomic<int>> resets = std::make_shared<std::atomic<int>>(0);

    const device::DeviceInfo& info() const override { return info_; }
    Result<std::unique_ptr<device::Module>> load(ByteView) override {
        ++loads;
        if (load_error) {
            return tl::unexpected(*load_error);
        }
        return std::make_unique<ModuleDouble>(resets);
    }
    int launch(device::Function, const device::LaunchShape& shape, device::Stream, void* kernargs,
               std::size_t bytes) const noexcept override {
        ++launches;
        last_grid = shape.grid.x;
        if (keep_shapes) {
            shapes.push_back(shape);
            const auto* first = static_cast<const std::byte*>(kernargs);
            arguments.emplace_back(first, first + bytes);
        }
        return launches == refused_launch ? 701 : launch_error;
    }
    std::string describe(int driver_error) const override { return "error " + std::to_string(driver_error); }
    bool is_earlier_failure(int) const noexcept override { return earlier_failure; }
    int current_ordinal() const noexcept override { return current; }

    // The rest is no part of what the double is for.
    Result<void> make_current() override { return none(); }
    Result<void*> allocate(std::size_t) override { return none(); }
    Result<void> free(void*) override { return none(); }
    Result<void> copy_to_device(void*, ByteView, device::Stream) override { return none(); }
    Result<void> copy_to_host(std::span<std::byte>, const void*, device::Stream) override { return none(); }
    Result<void> fill(void* at, std::byte value, std::size_t bytes, device::Stream) override {
        if (value != std::byte{0}) {
            return none();
        }
        filled_at = at;
        filled = bytes;
        return {};
    }
    Result<device::Stream> create_stream() override { return none(); }
    Result<void> destroy_stream(device::Stream) override { return none(); }
    Result<void> synchronize(device::Stream) override { return none(); }
    Result<device::Event> create_event() override { return none(); }
    Result<void> destroy_event(device::Event) override { return none(); }
    Result<void> record(device::Event, device::Stream) override { return none(); }
    Result<float> elapsed_milliseconds(device::Event, device::Event) override { return none(); }
    Result<void> begin_capture(device::Stream) override { return none(); }
    Result<bool> is_capturing(device::Stream) const override { return capturing.load(); }
    Result<Graph> end_capture(device::Stream) override { return none(); }
    Result<void> replay(Graph, device::Stream) override { return none(); }
    Result<void> destroy_graph(Graph) override { return none(); }
    Result<device::ExecutionCounts> take_counts() override { return none(); }
    Result<void> set_rules(const device::SimulationRules&) override { return none(); }

  private:
    static tl::unexpected<Error> none() { return fail(ErrorCode::not_found, Stage::device, "a double"); }
    device::DeviceInfo info_;
};

}  // namespace kiln::test
