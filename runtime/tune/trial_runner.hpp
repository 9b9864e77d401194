// Tries candidates of one problem in processes: which one serves, and what its end means.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tune/record.hpp"
#include "runtime/tune/trial_process.hpp"

namespace kiln::tune {

struct TrialSettings {
    std::vector<std::string> command;  // starts a trial server
    Subject subject;                   // its m: the largest that will be tried
    std::uint64_t seed = 0;
    int ordinal = 0;
    double error_bound = 1;
    std::chrono::milliseconds timeout{};
    const std::atomic<bool>* stop = nullptr;
};

// Used by one thread. The process ends with the object.
class TrialRunner {
  public:
    explicit TrialRunner(TrialSettings settings) : settings_(std::move(settings)) {}

    // Nothing when it was stopped. An error when no candidate can be tried at all: the process does not
    // start, or can not make the problem's inputs.
    [[nodiscard]] Result<std::optional<Finding>> attempt(std::int64_t m, const tables::Bucket& bucket,
                                                         std::int64_t warmup, std::int64_t iters);

  private:
    using Reply = TrialProcess::Reply;

    // False when it was stopped.
    [[nodiscard]] Result<bool> begin();
    [[nodiscard]] Finding finding_of(const Reply& reply) const;

    const TrialSettings settings_;
    std::unique_ptr<TrialProcess> process_;  // null before the first, and after one that did not end well
};

}  // namespace kiln::tune
