#include "runtime/sim/hip/work.hpp"

#include <limits>
#include <utility>

namespace kiln::sim::hip {

namespace {
// Further than any work comes.
constexpr auto kEverything = std::numeric_limits<std::uint64_t>::max();
}  // namespace

void Timeline::advance(std::uint64_t value) {
    {
        const std::scoped_lock lock(mutex_);
        done_ = value;
    }
    changed_.notify_all();
}

void Timeline::wait(std::uint64_t value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= value; });
}

bool Timeline::reached(std::uint64_t value) {
    const std::scoped_lock lock(mutex_);
    return done_ >= value;
}

WorkQueue::WorkQueue() : timeline_(std::make_shared<Timeline>()) {}

WorkQueue::~WorkQueue() {
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
    }
    join();
}

void WorkQueue::abandon() {
    {
        const std::scoped_lock lock(mutex_);
        ending_ = abandoned_ = true;
    }
    arrived_.notify_all();
}

void WorkQueue::join() {
    std::thread ending;
    {
        // While the process ends, other threads may submit.
        const std::scoped_lock lock(mutex_);
        std::swap(ending, thread_);
    }
    arrived_.notify_all();
    if (!ending.joinable()) {
        return;
    }
    if (ending.get_id() == std::this_thread::get_id()) {  // a host function that ended the process
        ending.detach();
    } else {
        ending.join();
    }
}

Mark WorkQueue::submit(std::function<void()> work, std::vector<Mark> after) {
    const std::scoped_lock lock(mutex_);
    if (abandoned_) {  // the process ends: what is dropped is not waited for
        timeline_->advance(kEverything);
        return {timeline_, submitted_};
    }
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { serve(); });
    }
    items_.push_back({std::move(work), std::move(after), ++submitted_});
    arrived_.notify_all();
    return {timeline_, submitted_};
}

Mark WorkQueue::last() const {
    const std::scoped_lock lock(mutex_);
    return {timeline_, submitted_};
}

void WorkQueue::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        arrived_.wait(lock, [&] { return ending_ || !items_.empty(); });
        if (items_.empty() || abandoned_) {
            timeline_->advance(kEverything);
            return;
        }
        Item item = std::move(items_.front());
        items_.pop_front();
        lock.unlock();
        for (const Mark& mark : item.after) {
            mark.wait();
        }
        lock.lock();
        const bool wanted = !abandoned_;
        lock.unlock();
        if (wanted) {
            item.work();
        }
        item.work = nullptr;  // what it holds goes before anybody learns that it is done
        timeline_->advance(item.value);
        lock.lock();
    }
}

}  // namespace kiln::sim::hip
