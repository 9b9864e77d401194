#include "fused_moe_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
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
        if (bucket.template_id == "fused_moe/small_m") {
            all.push_back(specialise_shape(op(), asked, bucket));
        }
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

template <class Array>
auto first(const Array& array, std::int64_t count) {
    return std::span(array).first(static_cast<std::size_t>(count));
}

// What a launch reads and writes besides weights and workspace. Arrays are exactly as long as m tokens need.
class LoadedMoe::Launch {
  public:
    Launch(device::Device& device, const operators::FusedMoeArrays& arrays, std::int64_t m)
        : x(device, first(arrays.x, (m - 1) * arrays.ldx + arrays.problem.hidden)),
          ids(device, first(arrays.ids, m * arrays.problem.slots)),
          weights(device, first(arrays.weights, m * arrays.problem.slots)),
          outputs_(static_cast<std::size_t>(m * arrays.problem.hidden)),
          out(device,
              std::span<const std::uint16_t>(std::vector<std::uint16_t>(outputs_ + kPastEnd, kUntouched))),
          flag(device, std::span<const std::uint32_t>(std::vector<std::uint32_t>{0})) {}

    void read(Run& result) const {
        result.out = out.read<std::uint16_t>(outputs_ + kPastEnd);
        const auto end = result.out.end() - kPastEnd;
        result.past_end_untouched =
            std::all_of(end, result.out.end(), [](std::uint16_t bits) { return bits == kUntouched; });
        result.out.erase(end, result.out.end());
        const std::uint32_t flags = flag.read<std::uint32_t>(1).front();
        CHECK(flags <= 1);
        result.flagged = flags != 0;
    }

    const Memory x, ids, weights;

  private:
    const std::size_t outputs_;

  public:
    const Memory out, flag;
};

void LoadedMoe::launch(device::Module& module, const operators::Specialisation& wanted, std::int64_t m,
                       void* arguments, std::size_t bytes, Run& result) const {
    for (const operators::KernelLaunch& kernel : wanted.kernels) {
        const device::Function function = value_of(module.function(kernel.symbol));
        (void)value_of(device_.take_counts());
        const int error = device_.launch(function, kernel.shape_for(m), nullptr, arguments, bytes);
        REQUIRE_MESSAGE(error == 0, device_.describe(error));
        check(device_.synchronize(nullptr));
        result.counts.push_back(value_of(device_.take_counts()));
    }
}

LoadedMoe::Run LoadedMoe::run(const Built& built, const operators::FusedMoeArrays& arrays, std::int64_t m,
                              std::uint8_t scratch) const {
    const Launch launched(device_, arrays, m);
    const auto h_bytes = static_cast<std::size_t>(
        operators::fused_moe_h_bytes(arrays.problem.intermediate, arrays.problem.slots, m));
    const Memory h(device_, h_bytes);
    check(device_.fill(h.get(), static_cast<std::byte>(scratch), h_bytes, nullptr));
    operators::FusedMoeKernargs arguments{launched.x.get(),
                                          w13_,
                                          w13_scale_,
                                          w2_,
                                          w2_scale_,
                                          static_cast<const std::int32_t*>(launched.ids.get()),
                                          static_cast<const float*>(launched.weights.get()),
                                          launched.out.get(),
                                          static_cast<std::int32_t*>(launched.flag.get()),
                                          h.get(),
                                          static_cast<std::int32_t>(m),
                                          static_cast<std::int32_t>(arrays.ldx)};
    const auto module = value_of(device_.load(built.result.code_object));
    Run result;
    launch(*module, built.specialisation, m, &arguments, sizeof(arguments), result);
    launched.read(result);
    return result;
}

LoadedMoe::Run LoadedMoe::run(const LoadedPipeline& loaded, const operators::FusedMoeArrays& arrays,
                              std::int64_t m, std::uint8_t scratch) const {
    const operators::Pipeline& pipeline = loaded.pipeline;
    const Launch launched(device_, arrays, m);
    const operators::WorkspaceNeed need = pipeline.workspace(m);
    const Memory zeroed(device_, static_cast<std::size_t>(need.zeroed));
    const Memory rest(device_, static_cast<std::size_t>(need.scratch));
    check(device_.fill(zeroed.get(), std::byte{0}, static_cast<std::size_t>(need.zeroed), nullptr));
    check(device_.fill(rest.get(), static_cast<std::byte>(scratch), static_cast<std::size_t>(need.scratch),
                       nullptr));
    kiln_fused_moe_args args{};
    args.x = launched.x.get();
    args.ldx = arrays.ldx;
    args.w13 = w13_;
    args.w13_scale = w13_scale_;
    args.w2 = w2_;
    args.w2_scale = w2_scale_;
    args.ids = static_cast<const std::int32_t*>(launched.ids.get());
    args.weights = static_cast<const float*>(launched.weights.get());
    args.out = launched.out.get();
    args.invalid_id = static_cast<std::int32_t*>(launched.flag.get());
    REQUIRE(check_launch(arrays.problem, m, args) == KILN_OK);
    auto block = pack(arrays.problem, m, args, {zeroed.get(), rest.get()},
                      pipeline.source_template->typed(pipeline.problem, pipeline.bucket));
    Run result;
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        const auto& [specialisation, offset] = pipeline.stages[i];
        launch(*loaded.modules[i], specialisation, m, reinterpret_cast<std::byte*>(&block) + offset,
               specialisation.source_template->kernargs().bytes, result);
    }
    launched.read(result);
    const auto counters = zeroed.read<std::uint8_t>(static_cast<std::size_t>(need.zeroed));
    result.counters_zero = std::ranges::all_of(counters, [](std::uint8_t byte) { return byte == 0; });
    return result;
}

operators::Pipeline mxmoe_pipeline(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                   const tables::Constants& constants) {
    return pipeline_for(op(), complete(problem), {max_m, "fused_moe/mxmoe", constants});
}

std::vector<LoadedPipeline> load_pipelines(device::Device& device,
                                           std::vector<operators::Pipeline> pipelines) {
    struct Stage {
        compile::CompileResult result;
        std::shared_ptr<device::Module> module;
    };
    std::map<std::string, Stage> stages;
    std::vector<operators::Specialisation> wanted;
    for (const operators::Pipeline& pipeline : pipelines) {
        for (const operators::SpecialisedStage& stage : pipeline.stages) {
            if (stages.try_emplace(stage.specialisation.request_document).second) {
                wanted.push_back(stage.specialisation);
            }
        }
    }
    for (Built& built : build(std::move(wanted))) {
        Stage& stage = stages[built.specialisation.request_document];
        stage.module = value_of(device.load(built.result.code_object));
        stage.result = std::move(built.result);
    }
    std::vector<LoadedPipeline> all;
    for (operators::Pipeline& pipeline : pipelines) {
        LoadedPipeline loaded{std::move(pipeline), {}, {}};
        for (const operators::SpecialisedStage& stage : loaded.pipeline.stages) {
            const Stage& made = stages[stage.specialisation.request_document];
            loaded.results.push_back(made.result);
            loaded.modules.push_back(made.module);
        }
        all.push_back(std::move(loaded));
    }
    return all;
}

}  // namespace kiln::kernels_test
