#include "mxmoe_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "fused_moe/mxmoe_workspace.h"
#include "moe_sort/general_workspace.h"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/operator.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

operators::Pipeline mxmoe_pipeline(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                   const tables::Constants& constants) {
    return pipeline_for(operators::fused_moe(), moe_problem(problem), {max_m, "fused_moe/mxmoe", constants});
}

operators::MxmoeBucket mxmoe_bucket(const operators::Pipeline& pipeline) {
    return std::get<operators::MxmoeBucket>(
        pipeline.source_template->typed(pipeline.problem, pipeline.bucket));
}

std::size_t LoadedPipeline::find(std::string_view stage) const {
    const auto found = std::ranges::find_if(pipeline.stages, [&](const operators::SpecialisedStage& each) {
        const std::string_view id = each.specialisation.source_template->id();
        return stage == "sort" ? id.starts_with("moe_sort/")
                               : id.starts_with("fused_moe/mxmoe_") && id.ends_with(stage);
    });
    return static_cast<std::size_t>(found - pipeline.stages.begin());
}

MxmoeMemory::MxmoeMemory(device::Device& device, const operators::Pipeline& pipeline, std::int64_t most_m,
                         Layout layout, std::uint8_t filler)
    : problem_(std::get<operators::FusedMoeProblem>(operators::fused_moe().typed(pipeline.problem))),
      bucket_(mxmoe_bucket(pipeline)),
      need_(pipeline.workspace(most_m)),
      filler_(filler),
      zeroed_(device, static_cast<std::size_t>(need_.zeroed)) {
    check(device.fill(zeroed_.get(), std::byte{0}, static_cast<std::size_t>(need_.zeroed), nullptr));
    if (layout == Layout::apart) {
        for (const Array& array : arrays(most_m)) {
            scratch_.push_back(
                std::make_unique<DeviceMemory>(device, std::max<std::uint64_t>(array.bytes, 1)));
        }
        return;
    }
    const auto bytes = static_cast<std::size_t>(need_.scratch);
    scratch_.push_back(std::make_unique<DeviceMemory>(device, bytes));
    check(device.fill(scratch_.front()->get(), static_cast<std::byte>(filler), bytes, nullptr));
}

std::vector<MxmoeMemory::Array> MxmoeMemory::arrays(std::int64_t m) const {
    const auto tokens = static_cast<std::uint64_t>(m);
    const auto experts = static_cast<std::uint32_t>(problem_.experts);
    const auto slots = static_cast<std::uint32_t>(problem_.slots);
    const kiln::mxmoe::Workspace sizes{static_cast<std::uint32_t>(problem_.hidden),
                                       static_cast<std::uint32_t>(problem_.intermediate), experts, slots,
                                       bucket_.block_m};
    const kiln::moe_sort::GeneralWorkspace sort{experts, static_cast<std::uint32_t>(m) * slots};
    const operators::MxmoeWorkspace at = operators::mxmoe_workspace(
        bucket_, problem_.hidden, problem_.intermediate, problem_.experts, problem_.slots, m);
    const bool has_copy = !bucket_.f16in, has_v = bucket_.sum != operators::MxmoeSum::atomic;
    const std::uint64_t rows = sizes.rows(tokens);
    return {{at.sort, sort.bytes(false)},
            {at.sorted_ids, rows * 4},
            {at.sorted_weights, rows * 4},
            {at.sorted_expert_ids, rows / bucket_.block_m * 4},
            {at.num_valid, 8},
            {at.x_q, has_copy ? sizes.x_q(tokens) : 0},
            {at.x_scale, has_copy ? sizes.x_scale(tokens) : 0},
            {at.h_q, sizes.h_q(tokens)},
            {at.h_scale, sizes.h_scale(tokens)},
            {at.v, has_v ? sizes.v(tokens) : 0}};
}

operators::FusedMoeBlock MxmoeMemory::pack(std::int64_t m, const kiln_fused_moe_args& args) const {
    operators::FusedMoeBlock block =
        operators::pack(problem_, m, args, {zeroed_.get(), scratch_.front()->get()}, bucket_);
    if (scratch_.size() == 1) {
        return block;
    }
    const auto at = [this](std::size_t array) { return scratch_[array]->get(); };
    const auto ints = [&at](std::size_t array) { return static_cast<std::int32_t*>(at(array)); };
    block.sort.scratch = at(0);
    block.mxmoe.sorted_ids = block.sort.sorted_ids = ints(1);
    block.mxmoe.sorted_weights = block.sort.sorted_weights = static_cast<float*>(at(2));
    block.mxmoe.sorted_expert_ids = block.sort.sorted_expert_ids = ints(3);
    block.mxmoe.num_valid = block.sort.num_valid = ints(4);
    void** const own[] = {&block.mxmoe.x_q, &block.mxmoe.x_scale, &block.mxmoe.h_q, &block.mxmoe.h_scale,
                          &block.mxmoe.v};
    for (std::size_t i = 0; i < std::size(own); ++i) {
        if (*own[i] != nullptr) {
            *own[i] = at(5 + i);
        }
    }
    return block;
}

bool MxmoeMemory::counters_zero() const {
    return std::ranges::all_of(zeroed_.read<std::uint8_t>(static_cast<std::size_t>(need_.zeroed)),
                               [](std::uint8_t byte) { return byte == 0; });
}

bool MxmoeMemory::gaps_untouched(std::int64_t m) const {
    if (scratch_.size() > 1) {
        return true;  // there are none
    }
    const auto bytes = scratch_.front()->read<std::uint8_t>(static_cast<std::size_t>(need_.scratch));
    std::size_t end = 0;  // of the array before
    const auto untouched_to = [&](std::size_t begin) {
        return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(end),
                           bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                           [this](std::uint8_t byte) { return byte == filler_; });
    };
    for (const Array& array : arrays(m)) {
        const auto begin = static_cast<std::size_t>(array.begin);
        if (!untouched_to(begin)) {
            return false;
        }
        end = begin + array.bytes;
    }
    return untouched_to(bytes.size());
}

void MxmoeDevice::follow(const device::SimulationRules& rules) {
    check(device_->set_rules(rules));
}

std::vector<LoadedPipeline> MxmoeDevice::load(std::vector<operators::Pipeline> pipelines) {
    std::vector<operators::Specialisation> wanted;
    for (const operators::Pipeline& pipeline : pipelines) {
        for (const operators::SpecialisedStage& stage : pipeline.stages) {
            if (stages_.try_emplace(stage.specialisation.request_document).second) {
                wanted.push_back(stage.specialisation);
            }
        }
    }
    for (Built& built : build(std::move(wanted))) {
        auto module = value_of(device_->load(built.result.code_object));
        std::string request = built.specialisation.request_document;
        stages_[std::move(request)] = std::make_shared<const LoadedPipeline::Stage>(
            LoadedPipeline::Stage{std::move(built), std::move(module)});
    }
    std::vector<LoadedPipeline> all;
    for (operators::Pipeline& pipeline : pipelines) {
        LoadedPipeline loaded{std::move(pipeline), {}};
        for (const operators::SpecialisedStage& stage : loaded.pipeline.stages) {
            loaded.stages.push_back(stages_.at(stage.specialisation.request_document));
        }
        all.push_back(std::move(loaded));
    }
    return all;
}

LoadedPipeline MxmoeDevice::load_one(operators::Pipeline pipeline) {
    std::vector<operators::Pipeline> one;
    one.push_back(std::move(pipeline));
    return std::move(load(std::move(one)).front());
}

MxmoeDevice::Run MxmoeDevice::run(const LoadedPipeline& loaded, const LoadedMoe& weights,
                                  const operators::FusedMoeArrays& arrays, std::int64_t m,
                                  Layout layout) const {
    return run(loaded, weights, arrays, m, MxmoeMemory(*device_, loaded.pipeline, m, layout));
}

MxmoeDevice::Run MxmoeDevice::run(const LoadedPipeline& loaded, const LoadedMoe& weights,
                                  const operators::FusedMoeArrays& arrays, std::int64_t m,
                                  const MxmoeMemory& memory) const {
    const MoeLaunchArrays launched(*device_, arrays, m);
    kiln_fused_moe_args args{};
    args.x = launched.x.get();
    args.ldx = arrays.ldx;
    weights.put_into(args);
    args.ids = static_cast<const std::int32_t*>(launched.ids.get());
    args.weights = static_cast<const float*>(launched.weights.get());
    args.out = launched.out;
    args.invalid_id = static_cast<std::int32_t*>(launched.flag.get());
    REQUIRE(check_launch(arrays.problem, m, args) == KILN_OK);
    operators::FusedMoeBlock block = memory.pack(m, args);

    Run result;
    for (std::size_t i = 0; i < loaded.stages.size(); ++i) {
        const operators::SpecialisedStage& stage = loaded.pipeline.stages[i];
        launch_counted(*device_, *loaded.stages[i]->module, stage.specialisation, m,
                       reinterpret_cast<std::byte*>(&block) + stage.kernarg_offset,
                       stage.specialisation.source_template->kernargs().bytes, result.counts.emplace_back());
    }
    static_cast<MoeLaunchArrays::Outputs&>(result) = launched.read();
    result.counters_zero = memory.counters_zero();
    result.gaps_untouched = memory.gaps_untouched(m);
    return result;
}

MxmoeDevice& simulated_mxmoe() {
    static MxmoeDevice& device = *new MxmoeDevice;
    return device;
}

}  // namespace kiln::kernels_test
