#include "runtime/service/background.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "base/at_exit.hpp"
#include "base/fork_guard.hpp"
#include "base/log.hpp"
#include "base/signals_blocked.hpp"

namespace kiln::service {

namespace {

// Every Background of this process. A child of a fork has none and must not wait for a lock that its parent
// held, so each generation has a registry of its own; none is ever destroyed.
struct Registry {
    std::uint32_t generation = fork_generation();
    std::mutex mutex;
    // Protected by mutex.
    std::vector<Background*> members;
    bool ended = false;
};

std::atomic<Registry*> current_registry{nullptr};

Registry& registry() {
    Registry* known = current_registry.load();
    while (known == nullptr || known->generation != fork_generation()) {
        auto* made = new Registry;
        if (current_registry.compare_exchange_strong(known, made)) {
            return *made;
        }
        delete made;
    }
    return *known;
}

void stop_all() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.ended = true;
    for (Background* member : all.members) {
        member->stop();
    }
}

// False when the process ends: nobody would stop it.
bool enter(Background* background) {
    static const bool registered = (call_at_exit(stop_all), true);
    static_cast<void>(registered);
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (!all.ended) {
        all.members.push_back(background);
    }
    return !all.ended;
}

void leave(Background* background) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase(all.members, background);
}

}  // namespace

Background::Background(unsigned max_threads, std::function<void()> abort)
    : max_threads_(std::max(max_threads, 1u)), abort_(std::move(abort)) {}

Background::~Background() {
    leave(this);
    stop();
}

void Background::post(Task task) {
    if (!entered_.exchange(true) && !enter(this)) {
        stop();
    }
    {
        const std::lock_guard lock(mutex_);
        if (!stopped_) {
            queue_.push_back(std::move(task));
            task = nullptr;
            if (idle_ < queue_.size() && threads_.size() < max_threads_) {
                start_thread();
            }
            if (threads_.empty()) {
                task = std::move(queue_.back());
                queue_.pop_back();
            }
        }
    }
    if (task) {
        task(Turn::dropped);
    } else {
        changed_.notify_one();
    }
}

void Background::start_thread() noexcept {
    try {
        // A signal that the host waits for is not for a thread of ours.
        const SignalsBlocked blocked;
        threads_.reserve(threads_.size() + 1);
        threads_.emplace_back([this] { work(); });
    } catch (const std::exception& error) {
        log::warning("no further thread to prepare in the background: {}", error.what());
    }
}

void Background::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        changed_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
        --idle_;
        if (stopped_) {
            return;
        }
        {
            const Task task = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            task(Turn::run);
        }
        lock.lock();
    }
}

void Background::stop() noexcept {
    std::deque<Task> dropped;
    std::vector<std::thread> threads;
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        dropped.swap(queue_);
        threads.swap(threads_);
    }
    changed_.notify_all();
    for (const Task& task : dropped) {
        task(Turn::dropped);
    }
    if (!threads.empty()) {
        abort_();
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace kiln::service
