#include "runtime/service/plan.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace kiln::service {

namespace {
constexpr std::int64_t kLookup = 1024;
}

Plan::Plan(const operators::Operator& op, operators::Problem problem, std::shared_ptr<device::Device> device,
           std::vector<LoadedBucket> buckets)
    : op_(op),
      problem_(std::move(problem)),
      typed_(op.typed(problem_)),
      device_(std::move(device)),
      ordinal_(device_->info().ordinal),
      buckets_(std::move(buckets)),
      max_m_(buckets_.back().max_m) {
    bucket_of_.push_back(0);  // M = 0 never gets here
    for (std::int64_t m = 1; m <= std::min(max_m_, kLookup); ++m) {
        while (buckets_[first_beyond_].max_m < m) {
            ++first_beyond_;
        }
        bucket_of_.push_back(static_cast<std::uint8_t>(first_beyond_));
    }
}

kiln_status Plan::enqueue(device::Stream stream, std::int64_t m, void* kernargs,
                          std::size_t kernarg_bytes) const noexcept {
    const LoadedBucket* bucket = bucket_for(m);
    if (bucket == nullptr) {
        return KILN_DECLINE_M_TOO_LARGE;
    }
    if (bucket->health->disabled.load(std::memory_order_relaxed)) {
        return KILN_DECLINE_DISABLED;
    }
    if (const int current = device_->current_ordinal(); current != ordinal_) {
        return current < 0 ? -KILN_ERROR_DEVICE_FAILED : KILN_DECLINE_OTHER_DEVICE;
    }
    const int error = device_->launch(bucket->function, bucket->shape, stream, kernargs, kernarg_bytes);
    return error == 0 ? KILN_OK : refused(*bucket, error);
}

kiln_status Plan::refused(const LoadedBucket& bucket, int driver_error) const noexcept {
    if (device_->is_earlier_failure(driver_error)) {
        return -KILN_ERROR_DEVICE_FAILED;
    }
    if (!bucket.health->disabled.exchange(true)) {
        log::error("{} is disabled: the driver refused to launch it: {}", bucket.kernel_name,
                   device_->describe(driver_error));
    }
    return -KILN_ERROR_LAUNCH_FAILED;
}

kiln_status launch_linear(const Plan& plan, device::Stream stream, std::int64_t m,
                          const kiln_linear_args& args) noexcept {
    const auto* problem = std::get_if<operators::LinearProblem>(&plan.typed());
    if (problem == nullptr) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    if (m <= 0) {
        return m == 0 ? KILN_OK : KILN_DECLINE_M_NEGATIVE;
    }
    if (const int decline = operators::check_launch(*problem, args); decline != KILN_OK) {
        return decline;
    }
    operators::LinearKernargs kernargs = operators::pack(m, args);
    return plan.enqueue(stream, m, &kernargs, sizeof(kernargs));
}

}  // namespace kiln::service
