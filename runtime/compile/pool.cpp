#include "runtime/compile/pool.hpp"

#include <signal.h>

#include <algorithm>
#include <new>
#include <system_error>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

using std::chrono::steady_clock;

auto stopped(std::string_view subject) {
    return fail(ErrorCode::worker_failed, Stage::compile, fmt::format("{}: stopped", subject));
}

// Threads that start meanwhile take no signal: those are the host's, and its handlers' business.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

}  // namespace

Pool::~Pool() {
    if (::getpid() != owner_) {
        for (auto& worker : idle_) {
            worker.process->abandon();
        }
        static_cast<void>(keeper_.release());  // the thread did not come along; its handle can not be joined
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    closed_.notify_all();
    if (keeper_ != nullptr) {
        keeper_->join();
    }
}

Result<Reply> Pool::exchange(const std::function<std::string(std::uint64_t)>& encode,
                             std::string_view subject, const std::string& generation) {
    if (::getpid() != owner_) {  // before any lock: the owner may have held it when it forked
        return fail(ErrorCode::environment, Stage::compile,
                    "this process was forked from the one that created the compiler; it must create its own");
    }
    if (!take_place()) {
        return stopped(subject);
    }
    Place place(*this, generation);
    auto taken = take_worker(generation);
    if (!taken) {
        return fail(taken);
    }
    place.process = std::move(*taken);
    const std::uint64_t sequence = ++sequence_;
    Result<Reply> reply = place.process->exchange(encode(sequence), sequence, subject);
    if (!reply) {
        discard(std::move(place.process));
    }
    return reply;
}

void Pool::stop() noexcept {
    if (::getpid() != owner_) {
        return;
    }
    std::vector<Worker> ended;  // after the lock is released
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        ended.swap(idle_);
        for (WorkerProcess* const process : running_) {
            process->interrupt();
        }
    }
    place_free_.notify_all();
}

bool Pool::take_place() {
    std::unique_lock lock(mutex_);
    place_free_.wait(lock, [&] { return busy_ < config_.workers || stopped_; });
    if (stopped_) {
        return false;
    }
    ++busy_;
    return true;
}

Result<std::unique_ptr<WorkerProcess>> Pool::take_worker(const std::string& generation) {
    std::unique_ptr<WorkerProcess> process = take_idle(generation);
    const bool fresh = process == nullptr;
    if (fresh) {
        std::call_once(swept_, sweep_scratch_folders);
        auto spawned = WorkerProcess::spawn(config_.worker);
        if (!spawned) {
            return fail(spawned);
        }
        process = std::move(*spawned);
    }
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) {
            return stopped("compile worker");
        }
        running_.push_back(process.get());
    }
    if (fresh) {
        if (auto ready = process->await_ready(); !ready) {
            discard(std::move(process));
            return fail(ready);
        }
    }
    return process;
}

std::unique_ptr<WorkerProcess> Pool::take_idle(const std::string& generation) {
    std::vector<Worker> discarded;  // ended after the lock is released
    const std::lock_guard lock(mutex_);
    discarded.reserve(idle_.size());
    while (!idle_.empty()) {
        Worker worker = std::move(idle_.back());
        idle_.pop_back();
        if (worker.generation == generation && worker.process->is_idle()) {
            return std::move(worker.process);
        }
        discarded.push_back(std::move(worker));
    }
    return nullptr;
}

void Pool::discard(std::unique_ptr<WorkerProcess> process) noexcept {
    {
        const std::lock_guard lock(mutex_);
        std::erase(running_, process.get());
    }
    process.reset();
}

void Pool::give_back(std::unique_ptr<WorkerProcess> process, const std::string& generation) noexcept {
    {
        const std::lock_guard lock(mutex_);
        --busy_;
        if (process) {
            std::erase(running_, process.get());
            try {
                if (config_.idle_limit > std::chrono::milliseconds::zero() && !stopped_) {
                    start_keeper();
                    idle_.push_back({std::move(process), generation, steady_clock::now()});
                }
            } catch (const std::exception&) {
                // No memory, or no thread: the worker is ended; the next request starts another one.
            }
        }
    }
    place_free_.notify_one();
}

void Pool::start_keeper() {
    if (keeper_runs_) {
        return;
    }
    if (keeper_ != nullptr) {
        keeper_->join();  // it is past its last look at what mutex_ protects
        keeper_ = nullptr;
    }
    const SignalsBlocked blocked;
    keeper_ = std::make_unique<std::thread>([this] { keep(); });
    keeper_runs_ = true;
}

void Pool::keep() {
    std::unique_lock lock(mutex_);
    // The first look comes after the worker that this thread was started for was put among the idle.
    while (!idle_.empty() && !closing_) {
        const auto oldest = std::min_element(
            idle_.begin(), idle_.end(), [](const Worker& a, const Worker& b) { return a.since < b.since; });
        const auto deadline = oldest->since + config_.idle_limit;
        if (steady_clock::now() < deadline) {
            closed_.wait_until(lock, deadline);
            continue;
        }
        std::unique_ptr<WorkerProcess> ended = std::move(oldest->process);
        idle_.erase(oldest);
        lock.unlock();  // ending a process takes a while
        ended.reset();
        lock.lock();
    }
    keeper_runs_ = false;
}

}  // namespace kiln::compile
