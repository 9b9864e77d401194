// Runs the templates of moe_sort on the simulator, whether or not a row asks for them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device.hpp"
#include "runtime/operators/moe_sort_reference.hpp"
#include "shipped.hpp"

namespace kiln::kernels_test {

struct MoeSortRun {
    operators::MoeSortResult result;
    bool margins_untouched = true;   // before and behind every array of the result
    bool counters_zero = true;       // after the launch, in a workspace that needs them
    device::ExecutionCounts counts;  // of all kernels of the launch
};

class MoeSortDevice {
  public:
    static constexpr std::uint8_t kFiller = 0xa5;  // what the result holds before a launch

    MoeSortDevice() : device_(open_simulator()) {}

    // How launches are simulated from now on.
    void follow(const device::SimulationRules& rules);

    // Compiles "moe_sort/`name`" for the problem where that was not done before. The code of a template can
    // be changed on the way: every `change.first` in its text or its headers becomes `change.second`; scratch
    // is zero then, so that what reads it too early stays within the arrays.
    [[nodiscard]] MoeSortRun run(std::string_view name, const operators::MoeSortArrays& arrays,
                                 const std::pair<std::string, std::string>& change = {});

  private:
    struct Loaded {
        Built built;
        std::unique_ptr<device::Module> module;
    };
    const Loaded& load(std::string_view name, const operators::MoeSortProblem& problem,
                       const std::pair<std::string, std::string>& change);

    std::shared_ptr<device::Device> device_;
    std::map<std::string, Loaded> loaded_;
};

}  // namespace kiln::kernels_test
