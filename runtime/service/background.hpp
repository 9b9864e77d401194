// Threads of a service that prepare plans while the program goes on.
//
// Whoever holds a Background is a thread of the program: a task holds none, so the last release, which joins,
// never happens on a thread of its own. An exit handler, registered when the first one is used (and a driver
// is bound), ends every Background that is still there; one that is used later begins nothing. In a fork none
// may be destroyed: its threads are the parent's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::service {

// Thread safe.
class Background {
  public:
    // A task is told whether to do its work, or that it will never be its turn.
    enum class Turn { run, dropped };
    using Task = std::function<void(Turn)>;

    // `abort` ends early what running tasks wait for; called once, by stop().
    Background(unsigned max_threads, std::function<void()> abort);
    ~Background();
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    // In order, on a thread that is started if need be. Dropped at once, by the calling thread, after stop()
    // and where no thread is to be had.
    void post(Task task);

    // Begins no further task, drops those that wait, and returns when the running ones have ended. A second
    // call returns at once.
    void stop() noexcept;

  private:
    void work();
    void start_thread() noexcept;  // requires mutex_

    // Constant after construction.
    const unsigned max_threads_;
    const std::function<void()> abort_;
    std::atomic<bool> entered_{false};

    std::mutex mutex_;
    std::condition_variable changed_;
    // Protected by mutex_.
    std::deque<Task> queue_;
    std::vector<std::thread> threads_;
    unsigned idle_ = 0;
    bool stopped_ = false;
};

}  // namespace kiln::service
