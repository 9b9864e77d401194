#include "runtime/tune/launch_arrays.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/operators/decline.hpp"
#include "runtime/service/trial.hpp"

namespace kiln::tune {

using service::DeviceArray;

Result<Weights> load_weights(const std::shared_ptr<device::Device>& device,
                             const service::TrialCase& arrays) {
    Weights loaded;
    for (const service::TrialInput& input : arrays.weights()) {
        Result<DeviceArray> memory = service::load_weights(device, input);
        if (!memory) {
            return fail(memory);
        }
        loaded.push_back(*std::move(memory));
    }
    return loaded;
}

Result<LaunchArrays> LaunchArrays::create(std::shared_ptr<const service::TrialCase> arrays,
                                          const service::Plan& plan, std::int64_t m) {
    Result<service::TrialArrays> exact = service::TrialArrays::exact(plan, *arrays, m);
    if (!exact) {
        return fail(exact);
    }
    LaunchArrays made(std::move(arrays), m, *std::move(exact));
    if (const std::int64_t bytes = plan.workspace_bytes(m); bytes > 0) {
        Result<DeviceArray> memory =
            DeviceArray::create(plan.shared_device(), static_cast<std::size_t>(bytes));
        if (!memory) {
            return fail(memory);
        }
        made.workspace_.emplace(*std::move(memory));
        if (auto ready = plan.init_workspace(nullptr, made.workspace_->get(), bytes); !ready) {
            return tl::unexpected(std::move(ready.error().error));
        }
    }
    return made;
}

Result<void> LaunchArrays::enqueue(const service::Plan& plan, device::Stream stream,
                                   const Weights& weights) const {
    const std::vector<void*> at = service::pointers_of(weights), inputs = arrays_.inputs(),
                             outputs = arrays_.outputs();
    const kiln_status status =
        case_->launch(plan, stream, m_, {at, inputs, outputs, workspace_ ? workspace_->get() : nullptr});
    if (status == KILN_OK) {
        return {};
    }
    const bool is_decline = status > 0;
    return fail(
        is_decline ? ErrorCode::invalid_argument : static_cast<ErrorCode>(-status), Stage::launch,
        fmt::format("a launch with M = {}: {}", m_, is_decline ? operators::decline_text(status) : "failed"));
}

}  // namespace kiln::tune
