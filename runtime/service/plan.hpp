// A problem resolved for one device, and the launch path.
//
// Constant once made and shared by pointer, but for what its buckets say of themselves: which are loaded, and
// which the driver refused. Launchable from any number of threads, inside a graph capture too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/service/background.hpp"
#include "runtime/service/bucket_set.hpp"

namespace kiln::service {

class Plan {
  public:
    // At most 255 buckets. `background` may be null where all of them are loaded.
    Plan(const operators::Operator& op, operators::Problem problem, std::shared_ptr<device::Device> device,
         std::shared_ptr<BucketLoader> loader, std::shared_ptr<BucketSet> buckets,
         std::shared_ptr<Background> background);

    // The launch path. `bucket` is bucket_for(m), `kernargs` the block that the operator packs. Returns
    // KILN_OK, a decline, or minus an error code.
    [[nodiscard]] kiln_status enqueue(const PlanBucket& bucket, device::Stream stream, std::int64_t m,
                                      void* kernargs) const noexcept;

    // What a launch of up to `max_m` tokens needs of workspace, in bytes; as kiln_plan_workspace_bytes.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t max_m) const;
    // Zeroes the counters in front of it, and waits for that; as kiln_plan_init_workspace.
    [[nodiscard]] operators::Answer<void> init_workspace(device::Stream stream, void* workspace,
                                                         std::int64_t bytes) const;
    // The bytes in front that are zero between launches, the same for every M.
    [[nodiscard]] std::int64_t zeroed_bytes() const { return zeroed_bytes_; }

    // What keeps a launch from using the workspace: a decline, or KILN_OK. Null is a bucket for an M that
    // none serves.
    [[nodiscard]] kiln_status check_workspace(const PlanBucket* bucket, const void* workspace) const noexcept;
    [[nodiscard]] operators::Workspace split_workspace(void* workspace) const noexcept {
        return {workspace,
                workspace != nullptr ? static_cast<std::byte*>(workspace) + zeroed_bytes_ : nullptr};
    }

    // What a launch of m would find, without lock or wait; as kiln_plan_ready.
    [[nodiscard]] kiln_status ready(std::int64_t m) const noexcept;

    // Has every bucket that is not loaded obtained in the background; returns at once.
    void begin() const;
    // The same, and waits; as kiln_plan_wait.
    [[nodiscard]] operators::Answer<void> wait(std::chrono::milliseconds timeout) const;

    // The bucket that serves m; null when none does.
    [[nodiscard]] const PlanBucket* bucket_for(std::int64_t m) const noexcept {
        if (m < 1 || m > max_m_) {
            return nullptr;
        }
        if (m < static_cast<std::int64_t>(bucket_of_.size())) {
            return &buckets_[bucket_of_[static_cast<std::size_t>(m)]];
        }
        const PlanBucket* bucket = &buckets_[first_beyond_];
        while (bucket->max_m < m) {
            ++bucket;
        }
        return bucket;
    }

    // Counts a decline of a launch.
    kiln_status declined(kiln_status decline) const noexcept {
        declines_->note(decline, {});
        return decline;
    }

    [[nodiscard]] const operators::Operator& op() const { return op_; }
    [[nodiscard]] const operators::Problem& problem() const { return problem_; }
    [[nodiscard]] const operators::TypedProblem& typed() const { return typed_; }
    [[nodiscard]] device::Device& device() const { return *device_; }
    [[nodiscard]] const std::shared_ptr<device::Device>& shared_device() const { return device_; }
    [[nodiscard]] std::int64_t max_m() const { return max_m_; }
    // By ascending max_m, at least one.
    [[nodiscard]] std::span<const PlanBucket> buckets() const { return buckets_; }

  private:
    [[nodiscard]] kiln_status launch(const PlanBucket& bucket, device::Stream stream, std::int64_t m,
                                     void* kernargs) const noexcept;
    [[nodiscard]] kiln_status refused(const PlanBucket& bucket, std::size_t stage,
                                      int driver_error) const noexcept;
    [[nodiscard]] std::size_t index_of(const PlanBucket& bucket) const noexcept {
        return static_cast<std::size_t>(&bucket - buckets_.data());
    }

    const operators::Operator& op_;
    const operators::Problem problem_;
    const operators::TypedProblem typed_;
    const std::shared_ptr<device::Device> device_;
    const int ordinal_;
    const std::shared_ptr<BucketLoader> loader_;
    const std::shared_ptr<Declines> declines_;
    const std::shared_ptr<BucketSet> set_;
    const std::shared_ptr<Background> background_;
    const std::span<const PlanBucket> buckets_;  // of set_
    const std::int64_t max_m_;
    const std::int64_t zeroed_bytes_;
    // By M: index into buckets_. Ends at kLookup; the few buckets beyond are searched from first_beyond_ on.
    std::vector<std::uint8_t> bucket_of_;
    std::size_t first_beyond_ = 0;
};

// "linear n=16 k=128": what a problem is called in the log.
[[nodiscard]] std::string label(const operators::Operator& op, const operators::Problem& problem);

}  // namespace kiln::service
