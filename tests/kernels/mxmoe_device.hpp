// Runs pipelines of fused_moe/mxmoe on the simulator, stage by stage, with what the operator itself packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device.hpp"
#include "fused_moe_device.hpp"
#include "runtime/device/device.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "shipped.hpp"

namespace kiln::kernels_test {

// A bucket of fused_moe/mxmoe as if a row had asked for it.
operators::Pipeline mxmoe_pipeline(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                   const tables::Constants& constants);
[[nodiscard]] operators::MxmoeBucket mxmoe_bucket(const operators::Pipeline& pipeline);

// A pipeline whose stages are compiled and loaded.
struct LoadedPipeline {
    struct Stage {
        Built built;
        std::unique_ptr<device::Module> module;
    };
    operators::Pipeline pipeline;
    std::vector<std::shared_ptr<const Stage>> stages;

    // The place of a stage: "g1", "sort". The number of stages where there is none.
    [[nodiscard]] std::size_t find(std::string_view stage) const;
};

// The workspace of launches of one bucket, of up to `most_m` tokens.
class MxmoeMemory {
  public:
    enum class Layout {
        packed,  // as the operator lays it out, all bytes the filler
        // Every array by itself, exactly as long as most_m tokens need, and never written: the simulator ends
        // a launch that goes past an end, or takes what nobody wrote.
        apart
    };
    MxmoeMemory(device::Device& device, const operators::Pipeline& pipeline, std::int64_t most_m,
                Layout layout, std::uint8_t filler = 0xff);

    // A launch of m tokens.
    [[nodiscard]] operators::FusedMoeBlock pack(std::int64_t m, const kiln_fused_moe_args& args) const;
    // After it.
    [[nodiscard]] bool counters_zero() const;
    // Of a packed workspace, after its first launch, of m tokens: between the arrays, and behind the last.
    [[nodiscard]] bool gaps_untouched(std::int64_t m) const;

  private:
    // Of a launch of m tokens, in the scratch of a packed workspace.
    struct Array {
        std::int64_t begin;
        std::uint64_t bytes;
    };
    [[nodiscard]] std::vector<Array> arrays(std::int64_t m) const;

    const operators::FusedMoeProblem problem_;
    const operators::MxmoeBucket bucket_;
    const operators::WorkspaceNeed need_;
    const std::uint8_t filler_;
    DeviceMemory zeroed_;
    std::vector<std::unique_ptr<DeviceMemory>> scratch_;  // one, or one for each array
};

class MxmoeDevice {
  public:
    using Layout = MxmoeMemory::Layout;

    MxmoeDevice() : device_(open_simulator()) {}

    [[nodiscard]] device::Device& device() const { return *device_; }
    // How launches are simulated from now on.
    void follow(const device::SimulationRules& rules);

    // Each stage is compiled once, however many pipelines come to it, then or later.
    std::vector<LoadedPipeline> load(std::vector<operators::Pipeline> pipelines);
    LoadedPipeline load_one(operators::Pipeline pipeline);

    struct Run : MoeLaunchArrays::Outputs {
        bool counters_zero = true;  // as a launch must find them, and leave them
        bool gaps_untouched = true;
        std::vector<std::vector<device::ExecutionCounts>> counts;  // of each kernel, by stage
    };
    // The first m tokens of `arrays`, whose experts are among the weights.
    [[nodiscard]] Run run(const LoadedPipeline& loaded, const LoadedMoe& weights,
                          const operators::FusedMoeArrays& arrays, std::int64_t m,
                          Layout layout = Layout::apart) const;
    // In a workspace that may have served before.
    [[nodiscard]] Run run(const LoadedPipeline& loaded, const LoadedMoe& weights,
                          const operators::FusedMoeArrays& arrays, std::int64_t m,
                          const MxmoeMemory& memory) const;

  private:
    std::shared_ptr<device::Device> device_;
    std::map<std::string, std::shared_ptr<const LoadedPipeline::Stage>> stages_;  // by request
};

// For as long as the program runs: its cases share what is compiled. Whoever changes the rules sets them
// back.
MxmoeDevice& simulated_mxmoe();

}  // namespace kiln::kernels_test
