// The workers of one compiler: started when needed, as many as may run at once, replaced when they fail,
// ended when nobody needed them for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/fork_guard.hpp"
#include "runtime/compile/worker_process.hpp"

namespace kiln::compile {

struct PoolConfig {
    WorkerConfig worker;
    unsigned workers = 1;
    std::chrono::milliseconds idle_limit{};  // after which an idle worker is ended; 0: none is kept
};

// Thread safe. Destroyed when no exchange runs.
class Pool {
  public:
    explicit Pool(PoolConfig config);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // Waits for a free worker, has it answer the frame that `encode` makes for a sequence number, and keeps
    // it if all went well. `generation` tells toolchains apart: a worker that was started under another one
    // is replaced first.
    [[nodiscard]] Result<Reply> exchange(const std::function<std::string(std::uint64_t)>& encode,
                                         std::string_view subject, const std::string& generation);

    // Ends every exchange, those that wait for a worker among them, and refuses later ones: worker_failed.
    void stop() noexcept;

  private:
    struct Worker {
        std::unique_ptr<WorkerProcess> process;
        std::string generation;
        std::chrono::steady_clock::time_point since;  // it is idle
    };

    // One of the config_.workers places, given back whatever happens, with the worker where there is one.
    class Place {
      public:
        Place(Pool& pool, const std::string& generation) : pool_(pool), generation_(generation) {}
        ~Place() { pool_.give_back(*this); }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

        [[nodiscard]] const std::string& generation() const { return generation_; }

        std::unique_ptr<WorkerProcess> process;
        bool usable = false;  // the worker, for another request; one of which that is not known is ended

      private:
        Pool& pool_;
        const std::string& generation_;
    };

    // Takes a place, waiting for one. False when the pool was stopped.
    [[nodiscard]] bool take_place();
    // Puts an idle worker of the place's generation into it, or a new one. Stop() reaches it from here on.
    [[nodiscard]] Result<void> take_worker(Place& place, std::string_view subject);
    [[nodiscard]] std::unique_ptr<WorkerProcess> take_idle(const std::string& generation);
    void give_back(Place& place) noexcept;
    // With the mutex held: sees to it that somebody ends idle workers in time.
    void start_keeper();
    void keep();

    // What threads share. Apart from the pool, so that a forked process can leave it as it is: threads that
    // it does not have may hold the lock, or wait.
    struct State {
        std::mutex mutex;
        std::condition_variable place_free;
        std::condition_variable closed;
        // Protected by the mutex.
        std::vector<Worker> idle;  // the one that was used last at the end
        std::vector<WorkerProcess*> running;
        unsigned busy = 0;  // places taken
        bool stopped = false;
        bool closing = false;
        bool keeper_runs = false;
        std::unique_ptr<std::thread> keeper;  // ends idle workers; runs only while there are any

        State* left_before = nullptr;  // in a forked process: the one that was left to its owner before
    };
    static void leave_to_owner(std::unique_ptr<State> state);
    [[nodiscard]] bool is_forked() const { return fork_generation() != fork_generation_; }

    const PoolConfig config_;
    const std::uint32_t fork_generation_;
    std::atomic<std::uint64_t> sequence_{0};
    std::once_flag swept_;
    std::unique_ptr<State> state_ = std::make_unique<State>();
};

}  // namespace kiln::compile
