#include "runtime/compile/pool.hpp"

#include <algorithm>
#include <exception>

#include "base/signals_blocked.hpp"

namespace kiln::compile {
namespace {

using std::chrono::steady_clock;

}  // namespace

Pool::Pool(PoolConfig config)
    : config_(std::move(config)), fork_generation_((watch_forks(), fork_generation())) {}

Pool::~Pool() {
    if (is_forked()) {
        leave_to_owner(std::move(state_));
        return;
    }
    {
        const std::lock_guard lock(state_->mutex);
        state_->closing = true;
    }
    state_->closed.notify_all();
    if (state_->keeper != nullptr) {
        state_->keeper->join();
    }
}

void Pool::leave_to_owner(std::unique_ptr<State> state) {
    // The descriptors at least are closed, unless the owner was at work on them when it forked.
    if (state->mutex.try_lock()) {
        for (auto& worker : state->idle) {
            worker.process->abandon();
        }
        state->idle.clear();
        state->mutex.unlock();
    }
    // Destroying what threads of the owner wait for would wait for them.
    static constinit std::atomic<State*> left{nullptr};
    State* const kept = state.release();
    kept->left_before = left.load();
    while (!left.compare_exchange_weak(kept->left_before, kept)) {
    }
}

Result<Reply> Pool::exchange(const std::function<std::string(std::uint64_t)>& encode,
                             std::string_view subject, const std::string& generation) {
    if (is_forked()) {  // before any lock: the owner may have held it when it forked
        return fail(ErrorCode::environment, Stage::compile,
                    "this process was forked from the one that created the compiler; it must create its own");
    }
    if (!take_place()) {
        return stopped(subject);
    }
    Place place(*this, generation);
    const std::uint64_t sequence = ++sequence_;
    const std::string frame = encode(sequence);
    if (auto taken = take_worker(place, subject); !taken) {
        return fail(taken);
    }
    Result<Reply> reply = place.process->exchange(frame, sequence, subject);
    place.usable = reply.has_value();
    return reply;
}

void Pool::stop() noexcept {
    if (is_forked()) {
        return;
    }
    std::vector<Worker> ended;  // after the lock is released
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopped = true;
        ended.swap(state_->idle);
        for (WorkerProcess* const process : state_->running) {
            process->interrupt();
        }
    }
    state_->place_free.notify_all();
}

bool Pool::take_place() {
    std::unique_lock lock(state_->mutex);
    state_->place_free.wait(lock, [&] { return state_->busy < config_.workers || state_->stopped; });
    if (state_->stopped) {
        return false;
    }
    ++state_->busy;
    return true;
}

Result<void> Pool::take_worker(Place& place, std::string_view subject) {
    place.process = take_idle(place.generation());
    const bool fresh = place.process == nullptr;
    if (fresh) {
        std::call_once(swept_, sweep_scratch_folders);
        auto spawned = WorkerProcess::spawn(config_.worker);
        if (!spawned) {
            return fail(spawned);
        }
        place.process = std::move(*spawned);
    }
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->stopped) {
            return stopped(subject);
        }
        state_->running.push_back(place.process.get());
    }
    return fresh ? place.process->await_ready(subject) : Result<void>();
}

std::unique_ptr<WorkerProcess> Pool::take_idle(const std::string& generation) {
    std::vector<Worker> discarded;  // ended after the lock is released
    const std::lock_guard lock(state_->mutex);
    discarded.reserve(state_->idle.size());
    while (!state_->idle.empty()) {
        Worker worker = std::move(state_->idle.back());
        state_->idle.pop_back();
        if (worker.generation == generation && worker.process->is_idle()) {
            return std::move(worker.process);
        }
        discarded.push_back(std::move(worker));
    }
    return nullptr;
}

void Pool::give_back(Place& place) noexcept {
    {
        const std::lock_guard lock(state_->mutex);
        std::erase(state_->running, place.process.get());
        try {
            if (place.usable && config_.idle_limit > std::chrono::milliseconds::zero() && !state_->stopped) {
                start_keeper();
                state_->idle.push_back({nullptr, place.generation(), steady_clock::now()});
                state_->idle.back().process = std::move(place.process);
            }
        } catch (const std::exception&) {
            // No memory, or no thread: the worker is ended; the next request starts another one.
        }
    }
    place.process.reset();  // before its place is somebody else's
    {
        const std::lock_guard lock(state_->mutex);
        --state_->busy;
    }
    state_->place_free.notify_one();
}

void Pool::start_keeper() {
    if (state_->keeper_runs) {
        return;
    }
    if (state_->keeper != nullptr) {
        state_->keeper->join();  // it is past its last look at what the mutex protects
        state_->keeper = nullptr;
    }
    const SignalsBlocked blocked;
    state_->keeper = std::make_unique<std::thread>([this] { keep(); });
    state_->keeper_runs = true;
}

void Pool::keep() {
    std::unique_lock lock(state_->mutex);
    // The first look comes after the worker that this thread was started for was put among the idle.
    while (!state_->idle.empty() && !state_->closing) {
        const auto oldest =
            std::min_element(state_->idle.begin(), state_->idle.end(),
                             [](const Worker& a, const Worker& b) { return a.since < b.since; });
        const auto deadline = oldest->since + std::min(config_.idle_limit, kForEver);
        if (steady_clock::now() < deadline) {
            state_->closed.wait_until(lock, deadline);
            continue;
        }
        std::unique_ptr<WorkerProcess> ended = std::move(oldest->process);
        state_->idle.erase(oldest);
        lock.unlock();  // ending a process takes a while
        ended.reset();
        lock.lock();
    }
    state_->keeper_runs = false;
}

}  // namespace kiln::compile
