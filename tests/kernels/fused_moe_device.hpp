// Runs compiled buckets of fused_moe on the simulator, kernel by kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device.hpp"
#include "runtime/device/device.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "shipped.hpp"

namespace kiln::kernels_test {

// Over all outputs of a run, which may be fewer than the reference's.
double relative_l2(const std::vector<std::uint16_t>& out, const std::vector<std::uint16_t>& reference);
inline constexpr double kMoeBound = 5e-4;
// Of a token. One that has few outputs, or one large h in its heaviest slot, may lie above the bound of the
// whole by a single rounding: this says that it is no other token's, and has all of its slots.
inline constexpr double kMoeTokenBound = 2e-3;

// A bucket of fused_moe as if a row had asked for it.
operators::Specialisation specialise_fused_moe(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                               const tables::Constants& constants);
// The buckets of fused_moe/small_m that the operator's rule makes for a problem.
std::vector<operators::Specialisation> derived_fused_moe(const operators::FusedMoeProblem& problem);

// A bucket of fused_moe/mxmoe as if a row had asked for it.
operators::Pipeline mxmoe_pipeline(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                   const tables::Constants& constants);

// A pipeline whose stages are compiled and loaded.
struct LoadedPipeline {
    operators::Pipeline pipeline;
    std::vector<compile::CompileResult> results;           // by stage
    std::vector<std::shared_ptr<device::Module>> modules;  // by stage
};
// Each stage once, however many pipelines come to it.
std::vector<LoadedPipeline> load_pipelines(device::Device& device,
                                           std::vector<operators::Pipeline> pipelines);

// The weights of a case in device memory, for as long as this lives: of the experts that the case has. The
// rest of the arrays is never written.
class LoadedMoe {
  public:
    LoadedMoe(device::Device& device, const operators::FusedMoeArrays& arrays);
    ~LoadedMoe();
    LoadedMoe(const LoadedMoe&) = delete;
    LoadedMoe& operator=(const LoadedMoe&) = delete;

    struct Run {
        std::vector<std::uint16_t> out;  // bf16 bits, [m, hidden]
        bool past_end_untouched = true;  // what lies behind the last row of `out`
        bool flagged = false;
        bool counters_zero = true;                    // what a launch must find so, and leave so
        std::vector<device::ExecutionCounts> counts;  // of each kernel
    };
    // The first m tokens of `arrays`: the case's own, or one of the same experts. Arrays are exactly as long
    // as m tokens need, so that the simulator sees who reads on. `scratch` is what each byte of h begins
    // with.
    [[nodiscard]] Run run(const Built& built, const operators::FusedMoeArrays& arrays, std::int64_t m,
                          std::uint8_t scratch = 0xff) const;
    // The same by a pipeline, with what the operator itself packs.
    [[nodiscard]] Run run(const LoadedPipeline& loaded, const operators::FusedMoeArrays& arrays,
                          std::int64_t m, std::uint8_t scratch = 0xff) const;

  private:
    class Launch;
    void launch(device::Module& module, const operators::Specialisation& wanted, std::int64_t m,
                void* arguments, std::size_t bytes, Run& result) const;

    device::Device& device_;
    std::vector<void*> owned_;
    void* w13_;
    void* w13_scale_;
    void* w2_;
    void* w2_scale_;
};

}  // namespace kiln::kernels_test
