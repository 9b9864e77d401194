#include "fused_moe_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "runtime/formats/bf16.hpp"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/operator.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

namespace {

constexpr std::uint16_t kUntouched = 0x5aa5;
constexpr std::size_t kMargin = 128;  // elements; keeps every alignment

const operators::Operator& op() {
    return operators::fused_moe();
}

template <class Array>
auto first(const Array& array, std::int64_t count) {
    return std::span(array).first(static_cast<std::size_t>(count));
}

}  // namespace

double relative_l2(const std::vector<std::uint16_t>& out, const std::vector<std::uint16_t>& reference) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double expected = formats::bf16_to_float(reference[i]);
        difference += std::pow(formats::bf16_to_float(out[i]) - expected, 2);
        norm += expected * expected;
    }
    return std::sqrt(difference / norm);
}

operators::Problem moe_problem(const operators::FusedMoeProblem& problem) {
    return value_of(operators::complete(
        op(), {{"hidden", problem.hidden},
               {"intermediate", problem.intermediate},
               {"experts", problem.experts},
               {"slots", problem.slots},
               {"weights", std::string(problem.fp8 ? "fp8" : "mxfp4")},
               {"gate_up", std::string(problem.interleaved ? "interleaved" : "separated")}}));
}

operators::Specialisation specialise_fused_moe(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                               const tables::Constants& constants) {
    return specialise_shape(op(), moe_problem(problem), {max_m, "fused_moe/small_m", constants});
}

std::vector<operators::Specialisation> derived_fused_moe(const operators::FusedMoeProblem& problem) {
    const operators::Problem asked = moe_problem(problem);
    std::vector<operators::Specialisation> all;
    for (const operators::Bucket& bucket :
         value_of(op().derive(asked, value_of(tables::parse_target("gfx950"))))) {
        if (bucket.template_id == "fused_moe/small_m") {
            all.push_back(specialise_shape(op(), asked, bucket));
        }
    }
    return all;
}

DeviceMemory::DeviceMemory(device::Device& device, std::size_t bytes)
    : device_(device), pointer_(value_of(device.allocate(bytes))) {}

DeviceMemory::~DeviceMemory() {
    (void)device_.free(pointer_);
}

LoadedMoe::LoadedMoe(device::Device& device, const operators::FusedMoeArrays& arrays) : device_(device) {
    const operators::FusedMoeBytes bytes = operators::fused_moe_bytes(arrays.problem);
    for (const auto& [array, size] : {std::pair{&w13_, bytes.w13},
                                      {&w13_scale_, bytes.w13_scale},
                                      {&w2_, bytes.w2},
                                      {&w2_scale_, bytes.w2_scale}}) {
        *array = value_of(device.allocate(size));
        owned_.push_back(*array);
    }
    for (const auto& [expert, weights] : arrays.experts) {
        const auto put = [&, number = static_cast<std::size_t>(expert)](
                             void* array, const std::vector<std::uint8_t>& part) {
            check(device_.copy_to_device(static_cast<std::byte*>(array) + number * part.size(),
                                         std::as_bytes(std::span(part)), nullptr));
        };
        put(w13_, weights.w13);
        put(w13_scale_, weights.w13_scale);
        put(w2_, weights.w2);
        put(w2_scale_, weights.w2_scale);
    }
}

LoadedMoe::~LoadedMoe() {
    for (void* pointer : owned_) {
        (void)device_.free(pointer);
    }
}

MoeLaunchArrays::MoeLaunchArrays(device::Device& device, const operators::FusedMoeArrays& arrays,
                                 std::int64_t m)
    : x(device, first(arrays.x, (m - 1) * arrays.ldx + arrays.problem.hidden)),
      ids(device, first(arrays.ids, m * arrays.problem.slots)),
      weights(device, first(arrays.weights, m * arrays.problem.slots)),
      outputs_(static_cast<std::size_t>(m * arrays.problem.hidden)),
      out_(device, std::span<const std::uint16_t>(
                       std::vector<std::uint16_t>(kMargin + outputs_ + kMargin, kUntouched))),
      out(static_cast<std::uint16_t*>(out_.get()) + kMargin),
      flag(device, std::span<const std::uint32_t>(std::vector<std::uint32_t>{0})) {}

MoeLaunchArrays::Outputs MoeLaunchArrays::read() const {
    const auto all = out_.read<std::uint16_t>(kMargin + outputs_ + kMargin);
    const std::span values(all);
    const auto untouched = [](std::span<const std::uint16_t> part) {
        return std::ranges::all_of(part, [](std::uint16_t bits) { return bits == kUntouched; });
    };
    const auto out_values = values.subspan(kMargin, outputs_);
    const std::uint32_t flags = flag.read<std::uint32_t>(1).front();
    CHECK(flags <= 1);
    return {{out_values.begin(), out_values.end()},
            untouched(values.first(kMargin)) && untouched(values.last(kMargin)),
            flags != 0};
}

void launch_counted(device::Device& device, device::Module& module,
                    const operators::Specialisation& specialisation, std::int64_t m, void* arguments,
                    std::size_t bytes, std::vector<device::ExecutionCounts>& counts) {
    for (const operators::KernelLaunch& kernel : specialisation.kernels) {
        const device::Function function = value_of(module.function(kernel.symbol));
        (void)value_of(device.take_counts());
        const int error = device.launch(function, kernel.shape_for(m), nullptr, arguments, bytes);
        REQUIRE_MESSAGE(error == 0, device.describe(error));
        check(device.synchronize(nullptr));
        counts.push_back(value_of(device.take_counts()));
    }
}

LoadedMoe::Run LoadedMoe::run(const Built& built, const operators::FusedMoeArrays& arrays, std::int64_t m,
                              std::uint8_t scratch) const {
    const MoeLaunchArrays launched(device_, arrays, m);
    const auto h_bytes = static_cast<std::size_t>(
        operators::fused_moe_h_bytes(arrays.problem.intermediate, arrays.problem.slots, m));
    const DeviceMemory h(device_, h_bytes);
    check(device_.fill(h.get(), static_cast<std::byte>(scratch), h_bytes, nullptr));
    operators::FusedMoeKernargs arguments{launched.x.get(),
                                          w13_,
                                          w13_scale_,
                                          w2_,
                                          w2_scale_,
                                          static_cast<const std::int32_t*>(launched.ids.get()),
                                          static_cast<const float*>(launched.weights.get()),
                                          launched.out,
                                          static_cast<std::int32_t*>(launched.flag.get()),
                                          h.get(),
                                          static_cast<std::int32_t>(m),
                                          static_cast<std::int32_t>(arrays.ldx)};
    const auto module = value_of(device_.load(built.result.code_object));
    std::vector<device::ExecutionCounts> counts;
    launch_counted(device_, *module, built.specialisation, m, &arguments, sizeof(arguments), counts);
    return {launched.read(), std::move(counts)};
}

void LoadedMoe::put_into(kiln_fused_moe_args& args) const {
    args.w13 = w13_;
    args.w13_scale = w13_scale_;
    args.w2 = w2_;
    args.w2_scale = w2_scale_;
}

}  // namespace kiln::kernels_test
