#include "runtime/service/plan.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace kiln::service {

namespace {
constexpr std::int64_t kLookup = 1024;
constexpr std::int64_t kWorkspaceAlignment = 256;

// Buckets share the counters: each leaves at zero what it uses.
std::int64_t zeroed_bytes_of(std::span<const PlanBucket> buckets) {
    std::int64_t most = 0;
    for (const PlanBucket& bucket : buckets) {
        most = std::max(most, bucket.pipeline->workspace(bucket.max_m).zeroed);
    }
    return (most + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace

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
      max_m_(buckets_.back().max_m),
      zeroed_bytes_(zeroed_bytes_of(buckets_)) {
    bucket_of_.push_back(0);  // M = 0 never gets here
    for (std::int64_t m = 1; m <= std::min(max_m_, kLookup); ++m) {
        while (buckets_[first_beyond_].max_m < m) {
            ++first_beyond_;
        }
        bucket_of_.push_back(static_cast<std::uint8_t>(first_beyond_));
    }
}

kiln_status Plan::enqueue(const PlanBucket& bucket, device::Stream stream, std::int64_t m,
                          void* kernargs) const noexcept {
    const kiln_status status = launch(bucket, stream, m, kernargs);
    return status > 0 ? declined(status) : status;
}

kiln_status Plan::launch(const PlanBucket& bucket, device::Stream stream, std::int64_t m,
                         void* kernargs) const noexcept {
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
    if (bucket.is_disabled()) {
        return KILN_DECLINE_DISABLED;
    }
    for (const LoadedKernel& kernel : loaded->kernels) {
        device::LaunchShape shape = kernel.shape;
        shape.grid.x = kernel.grid_x(m);
        void* const arguments = static_cast<std::byte*>(kernargs) + kernel.kernarg_offset;
        if (const int error =
                device_->launch(kernel.function, shape, stream, arguments, kernel.kernarg_bytes);
            error != 0) {
            return refused(bucket, kernel.stage, error);
        }
    }
    return KILN_OK;
}

std::int64_t Plan::workspace_bytes(std::int64_t max_m) const {
    bool needed = false;
    std::int64_t scratch = 0;
    std::int64_t first = 1;
    for (const PlanBucket& bucket : buckets_) {
        if (first > max_m) {
            break;
        }
        const std::int64_t last = std::min(bucket.max_m, max_m);
        needed = needed || bucket.needs_workspace;
        scratch = std::max(scratch, bucket.pipeline->workspace(last).scratch);
        first = bucket.max_m + 1;
    }
    return needed ? zeroed_bytes_ + scratch : 0;
}

operators::Answer<void> Plan::init_workspace(device::Stream stream, void* workspace,
                                             std::int64_t bytes) const {
    if (bytes == 0 || zeroed_bytes_ == 0) {
        return {};
    }
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment == 0;
    if (workspace == nullptr || !is_aligned || bytes < zeroed_bytes_) {
        return operators::failed({ErrorCode::invalid_argument, Stage::device,
                                  fmt::format("{}: expected a workspace of at least {} bytes, aligned to {}, "
                                              "found {} bytes at {}",
                                              label(op_, problem_), zeroed_bytes_, kWorkspaceAlignment, bytes,
                                              fmt::ptr(workspace))});
    }
    const Result<bool> capturing = device_->is_capturing(stream);
    if (!capturing) {
        return operators::failed(capturing.error());
    }
    if (*capturing) {
        return operators::declined(
            KILN_DECLINE_CAPTURE, Stage::device,
            fmt::format("{}: a workspace is initialised outside of a capture, once", label(op_, problem_)));
    }
    Result<void> filled =
        device_->fill(workspace, std::byte{0}, static_cast<std::size_t>(zeroed_bytes_), stream);
    return filled ? operators::Answer<void>() : operators::failed(std::move(filled.error()));
}

kiln_status Plan::check_workspace(const PlanBucket* bucket, const void* workspace) const noexcept {
    if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
        return KILN_DECLINE_WORKSPACE_ALIGNMENT;
    }
    return workspace == nullptr && bucket != nullptr && bucket->needs_workspace ? KILN_DECLINE_NULL_POINTER
                                                                                : KILN_OK;
}

kiln_status Plan::refused(const PlanBucket& bucket, std::size_t stage, int driver_error) const noexcept try {
    if (device_->is_earlier_failure(driver_error)) {
        return -KILN_ERROR_DEVICE_FAILED;
    }
    loader_->ledger().disable(
        *bucket.health[stage], bucket.pipeline->stages[stage].specialisation.kernel_name,
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
