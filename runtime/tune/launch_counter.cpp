#include "runtime/tune/launch_counter.hpp"

#include <utility>

namespace kiln::tune {

Result<std::unique_ptr<LaunchCounter>> LaunchCounter::create(
    std::shared_ptr<device::Device> device, std::shared_ptr<const service::TrialCase> arrays) {
    Result<Weights> weights = load_weights(device, *arrays);
    if (!weights) {
        return fail(weights);
    }
    return std::unique_ptr<LaunchCounter>(
        new LaunchCounter(std::move(device), std::move(arrays), *std::move(weights)));
}

Result<std::vector<device::ExecutionCounts>> LaunchCounter::count(const service::Plan& plan,
                                                                  std::int64_t m) const {
    const Result<LaunchArrays> arrays = LaunchArrays::create(case_, plan, m);
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    // What ran before is not this launch's.
    Result<void> launched = device_->take_counts()
                                .and_then([&](const device::ExecutionCounts&) {
                                    return arrays->enqueue(plan, nullptr, weights_);
                                })
                                .and_then([&] { return device_->synchronize(nullptr); });
    return launched ? device_->launch_counts() : fail(launched);
}

}  // namespace kiln::tune
