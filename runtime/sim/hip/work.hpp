// Streams' order: marks that say how far a queue has come, and the queue that does its work in order on a
// thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::sim::hip {

// How much of a queue's work is done. Thread safe; outlives its queue where a mark still points at it.
class Timeline {
  public:
    void advance(std::uint64_t value);
    void wait(std::uint64_t value);
    [[nodiscard]] bool reached(std::uint64_t value);

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t done_ = 0;  // protected by mutex_
};

// One piece of work in a queue. An empty mark is complete.
struct Mark {
    std::shared_ptr<Timeline> timeline;
    std::uint64_t value = 0;

    [[nodiscard]] bool complete() const { return timeline == nullptr || timeline->reached(value); }
    void wait() const {
        if (timeline != nullptr) {
            timeline->wait(value);
        }
    }
};

// Thread safe. The thread starts with the first work.
//
// Marks that are waited for must come from work submitted before (to any queue): then no two queues can wait
// for each other. Whoever submits to several queues sees to that with a lock of its own.
class WorkQueue {
  public:
    WorkQueue();
    ~WorkQueue();  // does what was submitted, then ends the thread
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    Mark submit(std::function<void()> work, std::vector<Mark> after);
    // Of the last work submitted.
    [[nodiscard]] Mark last() const;
    // For the end of the process, in two steps because queues wait for each other: first every queue is told
    // to drop what has not begun (nobody may wait for it any more), then every thread is awaited.
    void abandon();
    void join();

  private:
    struct Item {
        std::function<void()> work;
        std::vector<Mark> after;
        std::uint64_t value = 0;
    };
    void serve();

    const std::shared_ptr<Timeline> timeline_;
    mutable std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Item> items_;  // protected by mutex_, as is all below
    std::uint64_t submitted_ = 0;
    bool ending_ = false;
    bool abandoned_ = false;
    std::thread thread_;
};

}  // namespace kiln::sim::hip
