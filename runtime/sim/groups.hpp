// The work-groups of one launch: which starts next, and how the launch ends. Shared by its host threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/sim/execute.hpp"
#include "runtime/sim/order.hpp"

namespace kiln::sim {

// Thread safe.
//
// In the order `any` a work-group that breaks a rule stops only those that start after it, so the error of
// the first one that has one is found whatever the number of threads is. In the others, which run on one
// thread, the first error in time ends the launch.
class Groups {
  public:
    Groups(std::uint64_t count, RunOrder order, const std::atomic<bool>* stop)
        : count_(count), order_(order), stop_(stop), end_(count) {}

    struct Start {
        std::uint64_t place;  // in the order
        std::uint64_t index;  // of the work-group
    };
    // The next to start; nothing when all have, or no more are wanted.
    [[nodiscard]] std::optional<Start> next() {
        const std::uint64_t place = next_.fetch_add(1, std::memory_order_relaxed);
        if (place >= end_.load(std::memory_order_relaxed)) {
            return std::nullopt;
        }
        return Start{place, group_at(order_, count_, place)};
    }
    // Whether the one that started in that place need not go on.
    [[nodiscard]] bool unwanted(std::uint64_t place) const {
        return place >= end_.load(std::memory_order_relaxed) ||
               (stop_ != nullptr && stop_->load(std::memory_order_relaxed));
    }
    [[nodiscard]] bool failed() const { return end_.load(std::memory_order_relaxed) < count_; }
    void fail(std::uint64_t place, RunError error) {
        const std::lock_guard lock(mutex_);
        if (place < end_.load(std::memory_order_relaxed)) {
            end_.store(order_.kind == RunOrder::any ? place : 0, std::memory_order_relaxed);
            error_ = std::move(error);
        }
    }
    // Once no thread runs any more.
    [[nodiscard]] const std::optional<RunError>& error() const { return error_; }

  private:
    const std::uint64_t count_;
    const RunOrder order_;
    const std::atomic<bool>* const stop_;  // may be null
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> end_;  // the first place that is not wanted
    std::mutex mutex_;
    std::optional<RunError> error_;  // of the place end_; protected by mutex_
};

}  // namespace kiln::sim
