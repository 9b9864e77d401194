#include "runtime/service/background.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/fork_guard.hpp"
#include "base/log.hpp"

namespace kiln::service {

namespace {

// Every Background of this process. A child of a fork has none and must not wait for a lock that its parent
// held, so each generation has a registry of its own; none is ever destroyed.
struct Registry {
    std::uint32_t generation = fork_generation();
    std::mutex mutex;
    std::vector<Background*> members;  // protected by mutex
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
    for (Background* member : all.members) {
        member->stop();
    }
}

void enter(Background* background) {
    // Registered after the driver was bound, hence run before the driver's own handlers.
    static const int registered = std::atexit(stop_all);
    static_cast<void>(registered);
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.members.push_back(background);
}

void leave(Background* background) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase(all.members, background);
}

}  // namespace

Background::Background(unsigned max_threads, std::function<void()> abort)
    : max_threads_(std::max(max_threads, 1u)), abort_(std::move(abort)), generation_(fork_generation()) {}

Background::~Background() {
    if (generation_ != fork_generation()) {
        // The threads are the parent's: there is nothing to join, and a thread object must not be destroyed
        // unjoined.
        static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
        return;
    }
    leave(this);
    stop();
}

void Background::post(Task task) {
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        if (!stopped_) {
            queue_.push_back(std::move(task));
            task = nullptr;
            first = threads_.empty();
            if (idle_ < queue_.size() && threads_.size() < max_threads_) {
                try {
                    threads_.emplace_back([this] { work(); });
                } catch (const std::system_error& error) {
                    if (threads_.empty()) {
                        task = std::move(queue_.back());
                        queue_.pop_back();
                        first = false;
                        log::warning("no thread to prepare in the background: {}", error.what());
                    }
                }
            }
        }
    }
    if (first) {
        enter(this);
    }
    if (task) {
        task(Turn::dropped);
    } else {
        changed_.notify_one();
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
