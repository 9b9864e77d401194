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
constexpr std::int64_t kPastEnd = 64;  // elements

const operators::Operator& op() {
    return operators::fused_moe();
}

operators::Problem complete(const operators::FusedMoeProblem& problem) {
    return value_of(operators::complete(
        op(), {{"hidden", problem.hidden},
               {"intermediate", problem.intermediate},
               {"experts", problem.experts},
               {"slots", problem.slots},
               {"weights", std::string(problem.fp8 ? "fp8" : "mxfp4")},
               {"gate_up", std::string(problem.interleaved ? "interleaved" : "separated")}}));
}

// Device memory that goes at the end of a run.
class Memory {
  public:
    Memory(device::Device& device, std::size_t bytes)
        : device_(device), pointer_(value_of(device.allocate(bytes))) {}
    template <class T>
    Memory(device::Device& device, std::span<const T> contents) : Memory(device, contents.size_bytes()) {
        check(device_.copy_to_device(pointer_, std::as_bytes(contents), nullptr));
    }
    ~Memory() { (void)device_.free(pointer_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    [[nodiscard]] void* get() const { return pointer_; }
    template <class T>
    [[nodiscard]] std::vector<T> read(std::size_t count) const {
        std::vector<T> result(count);
        check(device_.copy_to_host(std::as_writable_bytes(std::span(result)), pointer_, nullptr));
        return result;
    }

  private:
    device::Device& device_;
    void* pointer_;
};

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

operators::Specialisation specialise_fused_moe(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                               const tables::Constants& constants) {
    return specialise_shape(op(), complete(problem), {max_m, "fused_moe/small_m", constants});
}

std::vector<operators::Specialisation> derived_fused_moe(const operators::FusedMoeProblem& problem) {
    const operators::Problem asked = complete(problem);
    std::vector<operators::Specialisation> all;
    for (const operators::Bucket& bucket :
         value_of(op().derive(asked, value_of(tables::parse_target("gfx950"))))) {
        all.push_back(specialise_shape(op(), asked, bucket));
    }
    return all;
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

LoadedMoe::Run LoadedMoe::run(const Built& built, const operators::FusedMoeArrays& arrays, std::int64_t m,
                              std::uint8_t scratch) const {
    const auto hidden = arrays.problem.hidden, intermediate = arrays.problem.intermediate,
               slots = arrays.problem.slots;
    const auto first = [](const auto& array, std::int64_t count) {
        return std::span(array).first(static_cast<std::size_t>(count));
    };
    const Memory x(device_, first(arrays.x, (m - 1) * arrays.ldx + hidden));
    const Memory ids(device_, first(arrays.ids, m * slots));
    const Memory weights(device_, first(arrays.weights, m * slots));
    const std::vector<std::uint16_t> untouched(static_cast<std::size_t>(m * hidden + kPastEnd), kUntouched);
    const Memory out(device_, std::span(untouched));
    const Memory flag(device_, std::span<const std::uint32_t>(std::vector<std::uint32_t>{0}));
    const Memory h(device_, static_cast<std::size_t>(m * slots * intermediate) * sizeof(std::uint16_t));
    check(device_.fill(h.get(), static_cast<std::byte>(scratch),
                       static_cast<std::size_t>(m * slots * intermediate) * sizeof(std::uint16_t), nullptr));
    operators::FusedMoeKernargs arguments{x.get(),
                                          w13_,
                                          w13_scale_,
                                          w2_,
                                          w2_scale_,
                                          static_cast<const std::int32_t*>(ids.get()),
                                          static_cast<const float*>(weights.get()),
                                          out.get(),
                                          static_cast<std::int32_t*>(flag.get()),
                                          h.get(),
                                          static_cast<std::int32_t>(m),
                                          static_cast<std::int32_t>(arrays.ldx)};

    const operators::Specialisation& wanted = built.specialisation;
    const auto module = value_of(device_.load(built.result.code_object));
    Run result;
    for (const operators::KernelLaunch& kernel :
         wanted.source_template->kernels(wanted.problem, wanted.bucket)) {
        const device::Function function = value_of(module->function(kernel.symbol));
        (void)value_of(device_.take_counts());
        const int error =
            device_.launch(function, kernel.shape_for(m), nullptr, &arguments, sizeof(arguments));
        REQUIRE_MESSAGE(error == 0, device_.describe(error));
        check(device_.synchronize(nullptr));
        result.counts.push_back(value_of(device_.take_counts()));
    }
    result.out = out.read<std::uint16_t>(untouched.size());
    const auto end = result.out.end() - kPastEnd;
    result.past_end_untouched =
        std::all_of(end, result.out.end(), [](std::uint16_t bits) { return bits == kUntouched; });
    result.out.erase(end, result.out.end());
    const std::uint32_t flags = flag.read<std::uint32_t>(1).front();
    CHECK(flags <= 1);
    result.flagged = flags != 0;
    return result;
}

}  // namespace kiln::kernels_test
