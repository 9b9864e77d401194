#include "runtime/service/trial_arrays.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace kiln::service {

namespace {

constexpr std::byte kCanary{0xa5};
constexpr std::size_t kLeastMargin = 4096;  // bytes, a multiple of what any array must be aligned to
constexpr std::int64_t kMostPadding = 64;   // tokens

// Twice a NaN of bf16, one NaN of float32, and an integer that is no index of anything.
constexpr std::array kPadding{std::byte{0xc1}, std::byte{0x7f}, std::byte{0xc1}, std::byte{0x7f}};

}  // namespace

Result<TrialArrays> TrialArrays::exact(const Plan& plan, const TrialCase& arrays, std::int64_t m) {
    TrialArrays result;
    for (const TrialInput& input : arrays.inputs(m)) {
        Result<DeviceArray> memory = DeviceArray::upload(plan.shared_device(), input.bytes);
        if (!memory) {
            return fail(memory);
        }
        result.inputs_.push_back(*std::move(memory));
    }
    for (const TrialOutput& output : arrays.outputs(m)) {
        Result<DeviceArray> memory = DeviceArray::create(plan.shared_device(), output.bytes);
        if (!memory) {
            return fail(memory);
        }
        result.outputs_.push_back({*std::move(memory), output});
    }
    return result;
}

Result<TrialArrays> TrialArrays::guarded(const Plan& plan, const TrialCase& arrays, std::int64_t m,
                                         std::int64_t max_m) {
    // As many tokens as a kernel that pads would read, or write.
    const std::int64_t padding = std::min(max_m - m, kMostPadding);
    TrialArrays result;
    for (const TrialInput& input : arrays.inputs(m)) {
        Bytes padded(input.bytes.begin(), input.bytes.end());
        const std::size_t whole = padded.size() + static_cast<std::size_t>(padding) * input.token_bytes;
        while (padded.size() < whole) {
            padded.push_back(kPadding[padded.size() % kPadding.size()]);
        }
        Result<DeviceArray> memory = DeviceArray::upload(plan.shared_device(), padded);
        if (!memory) {
            return fail(memory);
        }
        result.inputs_.push_back(*std::move(memory));
    }
    const std::vector<TrialOutput> outputs = arrays.outputs(m);
    const std::vector<TrialOutput> larger = arrays.outputs(m + padding);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t growth = larger[i].bytes - std::min(larger[i].bytes, outputs[i].bytes);
        const std::size_t margin = kLeastMargin + (growth + kLeastMargin - 1) / kLeastMargin * kLeastMargin;
        const Bytes canaries(2 * margin + outputs[i].bytes, kCanary);
        Result<DeviceArray> memory = DeviceArray::upload(plan.shared_device(), canaries);
        if (!memory) {
            return fail(memory);
        }
        result.outputs_.push_back({*std::move(memory), outputs[i], margin});
    }
    return result;
}

std::vector<void*> TrialArrays::outputs() const {
    std::vector<void*> pointers(outputs_.size());
    std::ranges::transform(outputs_, pointers.begin(), &Output::get);
    return pointers;
}

Result<void> TrialArrays::poison(device::Device& device) const {
    for (const Output& output : outputs_) {
        if (Result<void> filled = device.fill(output.get(), output.what.before, output.what.bytes, nullptr);
            !filled) {
            return filled;
        }
    }
    return {};
}

Result<std::vector<Bytes>> TrialArrays::read(device::Device& device,
                                             const std::function<void(std::string)>& fault) const {
    std::vector<Bytes> results;
    for (const Output& output : outputs_) {
        Bytes all(2 * output.margin + output.what.bytes);
        if (Result<void> copied = device.copy_to_host(all, output.memory.get(), nullptr); !copied) {
            return fail(copied);
        }
        const auto is_canary = [](std::byte value) { return value == kCanary; };
        const std::span<const std::byte> bytes(all);
        if (!std::ranges::all_of(bytes.first(output.margin), is_canary)) {
            fault(fmt::format("the launch writes before {}", output.what.name));
        }
        if (!std::ranges::all_of(bytes.last(output.margin), is_canary)) {
            fault(fmt::format("the launch writes behind {}", output.what.name));
        }
        const std::span<const std::byte> inner = bytes.subspan(output.margin, output.what.bytes);
        results.emplace_back(inner.begin(), inner.end());
    }
    return results;
}

}  // namespace kiln::service
