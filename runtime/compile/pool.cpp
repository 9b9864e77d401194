#include "runtime/compile/pool.hpp"

#include <new>

namespace kiln::compile {

Pool::~Pool() {
    if (::getpid() != owner_) {
        for (auto& worker : idle_) {
            worker.process->abandon();
        }
    }
}

Result<Reply> Pool::exchange(const std::function<std::string(std::uint64_t)>& encode,
                             std::string_view subject, const std::string& generation) {
    if (::getpid() != owner_) {  // before any lock: the owner may have held it when it forked
        return fail(ErrorCode::environment, Stage::compile,
                    "this process was forked from the one that created the compiler; it must create its own");
    }
    Place place(*this, generation);
    if (!place.process) {
        auto started = WorkerProcess::start(config_.toolchain, config_.worker);
        if (!started) {
            return fail(started);
        }
        place.process = std::move(*started);
    }
    const std::uint64_t sequence = ++sequence_;
    auto process = std::move(place.process);  // kept only when all went well
    auto reply = process->exchange(encode(sequence), sequence, subject, config_.time_limit);
    if (reply) {
        place.process = std::move(process);
    }
    return reply;
}

std::unique_ptr<WorkerProcess> Pool::take(const std::string& generation) {
    std::vector<Worker> discarded;  // ended after the lock is released
    std::unique_lock lock(mutex_);
    place_free_.wait(lock, [&] { return busy_ < config_.workers; });
    discarded.reserve(idle_.size());  // nothing throws once the place is taken
    ++busy_;
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

void Pool::give_back(std::unique_ptr<WorkerProcess> process, const std::string& generation) noexcept {
    {
        const std::lock_guard lock(mutex_);
        --busy_;
        if (process) {
            try {
                idle_.push_back({std::move(process), generation});
            } catch (const std::bad_alloc&) {
                // The worker is ended; the next request starts another one.
            }
        }
    }
    place_free_.notify_one();
}

}  // namespace kiln::compile
