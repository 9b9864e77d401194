// The arrays of one launch of a trial: its inputs, and its outputs with what shows what the launch does to
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

class TrialArrays {
  public:
    // Exactly as large as M makes them, so that a checker of memory sees an access beyond.
    [[nodiscard]] static Result<TrialArrays> exact(const Plan& plan, const TrialCase& arrays, std::int64_t m);
    // Behind the inputs rows of NaN, as many as a kernel that pads up to `max_m` would read; the outputs
    // between canaries, as many as it would write.
    [[nodiscard]] static Result<TrialArrays> guarded(const Plan& plan, const TrialCase& arrays,
                                                     std::int64_t m, std::int64_t max_m);

    [[nodiscard]] std::vector<void*> inputs() const { return pointers_of(inputs_); }
    [[nodiscard]] std::vector<void*> outputs() const;

    // Fills the outputs with what TrialOutput::before says, in the null stream.
    [[nodiscard]] Result<void> poison(device::Device& device) const;
    // The outputs; a canary that does not live is a fault.
    [[nodiscard]] Result<std::vector<Bytes>> read(device::Device& device,
                                                  const std::function<void(std::string)>& fault) const;

  private:
    struct Output {
        DeviceArray memory;
        TrialOutput what;
        std::size_t margin = 0;  // bytes of canaries before and behind

        [[nodiscard]] std::byte* get() const { return static_cast<std::byte*>(memory.get()) + margin; }
    };

    std::vector<DeviceArray> inputs_;
    std::vector<Output> outputs_;
};

}  // namespace kiln::service
