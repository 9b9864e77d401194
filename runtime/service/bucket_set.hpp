// The buckets of one plan, and their way from wanted to loaded.
//
// Invariants:
//  1. A bucket that is loaded stays loaded, unchanged, for as long as the set lives.
//  2. One attempt to obtain a bucket at a time; whoever else needs it waits for that one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/kiln.h"
#include "runtime/service/bucket_loader.hpp"

namespace kiln::service {

enum class PrepareMode { blocking, lazy, background };

class PlanBucket {
  public:
    std::int64_t max_m = 0;
    std::string kernel_name;
    std::string template_id;
    std::vector<std::shared_ptr<Health>> health;  // by stage
    bool needs_workspace = false;
    bool is_deterministic = true;
    operators::TypedBucket typed;
    const operators::Pipeline* pipeline = nullptr;  // lives as long as the set

    // Any stage failed on the device, so that no launch of the bucket goes through.
    [[nodiscard]] bool is_disabled() const noexcept {
        return std::any_of(health.begin(), health.end(), [](const std::shared_ptr<Health>& stage) {
            return stage->disabled.load(std::memory_order_relaxed);
        });
    }

    // Null until it is loaded.
    [[nodiscard]] const LoadedBucket* loaded() const noexcept {
        return loaded_.load(std::memory_order_acquire);
    }

  private:
    friend class BucketSet;

    std::atomic<const LoadedBucket*> loaded_{nullptr};
    // What a launch answers while nothing is loaded; KILN_OK: that it obtains the bucket itself.
    std::atomic<kiln_status> unready_{KILN_OK};

    // Protected by the set's mutex.
    LoadedBucketPtr owner_;
    bool in_progress_ = false;
    std::optional<operators::Refusal> failure_;  // of the last attempt
    bool reported_ = false;                      // the failure was an answer of wait() or of a launch
};

// Thread safe.
class BucketSet {
  public:
    // At least one, by ascending max_m.
    BucketSet(std::shared_ptr<device::Device> device, std::shared_ptr<BucketLoader> loader,
              std::vector<operators::Pipeline> wanted, PrepareMode mode);

    [[nodiscard]] std::span<const PlanBucket> buckets() const { return buckets_; }

    // A bucket that was loaded elsewhere. Before the set is shared.
    void set_loaded(std::size_t index, LoadedBucketPtr loaded);

    // What a launch on `stream` does where the bucket is not loaded: in lazy mode it obtains it. KILN_OK: it
    // is loaded now.
    [[nodiscard]] kiln_status first_use(std::size_t index, device::Stream stream) noexcept;

    // What first_use() would come to, without doing it; KILN_DECLINE_COMPILING where it would obtain.
    [[nodiscard]] kiln_status ready(std::size_t index) const noexcept;

    // Takes every bucket that is neither loaded nor under way, nor disabled, nor failed without anyone having
    // been told. The caller sees to it that each gets its obtain() or drop().
    [[nodiscard]] std::vector<std::size_t> claim();
    void obtain(std::size_t index) noexcept;
    void drop(std::size_t index) noexcept;

    // Waits until nothing is under way, no longer than `timeout` (negative: without limit). Then the first
    // failure, or what is not loaded, if there is any.
    [[nodiscard]] operators::Answer<void> wait(std::chrono::milliseconds timeout);

  private:
    [[nodiscard]] kiln_status obtain_now(std::size_t index);
    // Whether a failure is what an end of service or process brings.
    enum class Expected { yes, no };
    [[nodiscard]] kiln_status settle(PlanBucket& bucket, operators::Answer<LoadedBucketPtr> answer,
                                     Expected expected);
    // Both require mutex_.
    [[nodiscard]] std::optional<operators::Refusal> first_failure();
    [[nodiscard]] std::optional<operators::Refusal> first_not_loaded() const;

    // Constant after construction.
    const std::shared_ptr<device::Device> device_;
    const std::shared_ptr<BucketLoader> loader_;
    const std::vector<operators::Pipeline> wanted_;
    const kiln_status unready_;

    std::mutex mutex_;
    std::condition_variable settled_;
    std::vector<PlanBucket> buckets_;
};

}  // namespace kiln::service
