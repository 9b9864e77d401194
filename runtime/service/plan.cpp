#include "runtime/service/plan.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace kiln::service {

namespace {
constexpr std::int64_t kLookup = 1024;
}

std::string label(const operators::Operator& op, const operators::Problem& problem) {
    return fmt::format("{} {}", op.name(), operators::format_problem(op, problem));
}

Plan::Plan(const operators::Operator& op, operators::Problem problem, std::shared_ptr<device::Device> device,
           std::shared_ptr<BucketLoader> loader, std::shared_ptr<BucketSet> buckets,
           std::shared_ptr<Background> background)
    : op_(op),
      problem_(std::move(problem)),
      typed_(op.typed(problem_)),
      device_(std::move(device)),
      ordinal_(device_->info().ordinal),
      loader_(std::move(loader)),
      declines_(loader_->ledger().declines_of(label(op_, problem_))),
      set_(std::move(buckets)),
      background_(std::move(background)),
      buckets_(set_->buckets()),
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
    const PlanBucket* bucket = bucket_for(m);
    if (bucket == nullptr) {
        return declined(KILN_DECLINE_M_TOO_LARGE);
    }
    const kiln_status status = launch(*bucket, stream, kernargs, kernarg_bytes);
    return status > 0 ? declined(status) : status;
}

kiln_status Plan::launch(const PlanBucket& bucket, device::Stream stream, void* kernargs,
                         std::size_t kernarg_bytes) const noexcept {
    if (const int current = device_->current_ordinal(); current != ordinal_) {
        return current < 0 ? -KILN_ERROR_DEVICE_FAILED : KILN_DECLINE_OTHER_DEVICE;
    }
    const LoadedBucket* loaded = bucket.loaded();
    if (loaded == nullptr) [[unlikely]] {
        if (const kiln_status status = set_->first_use(index_of(bucket), stream); status != KILN_OK) {
            return status;
        }
        loaded = bucket.loaded();
    }
    if (loaded->health->disabled.load(std::memory_order_relaxed)) {
        return KILN_DECLINE_DISABLED;
    }
    const int error = device_->launch(loaded->function, loaded->shape, stream, kernargs, kernarg_bytes);
    return error == 0 ? KILN_OK : refused(bucket, error);
}

kiln_status Plan::refused(const PlanBucket& bucket, int driver_error) const noexcept try {
    if (device_->is_earlier_failure(driver_error)) {
        return -KILN_ERROR_DEVICE_FAILED;
    }
    loader_->ledger().disable(
        *bucket.health, bucket.kernel_name,
        fmt::format("the driver refused to launch it: {}", device_->describe(driver_error)));
    return -KILN_ERROR_LAUNCH_FAILED;
} catch (const std::exception&) {
    return -KILN_ERROR_LAUNCH_FAILED;
}

kiln_status Plan::ready(std::int64_t m) const noexcept {
    if (m <= 0) {
        return m == 0 ? KILN_OK : KILN_DECLINE_M_NEGATIVE;
    }
    const PlanBucket* bucket = bucket_for(m);
    return bucket != nullptr ? set_->ready(index_of(*bucket)) : KILN_DECLINE_M_TOO_LARGE;
}

void Plan::begin() const {
    for (const std::size_t index : set_->claim()) {
        try {
            // A plan that is released meanwhile wants nothing any more.
            background_->post([set = std::weak_ptr<BucketSet>(set_), index](Background::Turn turn) {
                if (const std::shared_ptr<BucketSet> alive = set.lock()) {
                    turn == Background::Turn::run ? alive->obtain(index) : alive->drop(index);
                }
            });
        } catch (const std::exception&) {
            set_->drop(index);
        }
    }
}

operators::Answer<void> Plan::wait(std::chrono::milliseconds timeout) const {
    if (background_ != nullptr && timeout.count() != 0) {
        begin();
    }
    return set_->wait(timeout);
}

}  // namespace kiln::service
