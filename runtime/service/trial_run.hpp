// One case of a trial while it runs: its launches one after the other, and whatever is wrong with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/trial.hpp"
#include "runtime/service/trial_arrays.hpp"

namespace kiln::service {

class TrialRun {
  public:
    TrialRun(const Plan& plan, const TrialCase& arrays, std::span<void* const> weights, std::int64_t m,
             std::span<const device::SimulationRules> rules);

    // Every launch of the case, in the order of trial.hpp, and the verdict. Once.
    [[nodiscard]] Result<TrialResult> finish();

  private:
    void fault(std::string_view what);
    // Every launch of a case computes the same bits; where the bucket is not deterministic, right ones.
    void note_difference(const std::vector<Bytes>& found, std::string_view what);

    [[nodiscard]] Result<void> make_workspace();
    [[nodiscard]] Result<void> poison_scratch() const;
    [[nodiscard]] Result<void> launch(const TrialArrays& arrays, device::Stream stream) const;
    [[nodiscard]] Result<void> launch_and_wait(const TrialArrays& arrays) const;
    [[nodiscard]] Result<std::vector<Bytes>> read(const TrialArrays& arrays);
    [[nodiscard]] Result<void> check_counters();

    // 1., 2., 3. and 4. of trial.hpp.
    [[nodiscard]] Result<void> run_exact();
    [[nodiscard]] Result<void> run_timed(const TrialArrays& arrays);
    // Microseconds of the quickest of a few launches, between events.
    [[nodiscard]] Result<double> time(const TrialArrays& arrays) const;
    [[nodiscard]] Result<void> run_replayed();
    [[nodiscard]] Result<void> run_under_rules();
    [[nodiscard]] Result<void> run_under(const device::SimulationRules& rules, const TrialArrays& arrays);

    [[nodiscard]] device::Device& device() const { return plan_.device(); }

    const Plan& plan_;
    const TrialCase& case_;
    const std::span<void* const> weights_;
    const std::int64_t m_;
    const std::span<const device::SimulationRules> rules_;
    std::optional<DeviceArray> workspace_;
    std::int64_t workspace_bytes_ = 0;
    std::vector<Bytes> first_;  // outputs of 1.
    TrialResult result_;
};

}  // namespace kiln::service
