// The workers of one compiler: started when needed, as many as may run at once, replaced when they fail.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/worker_process.hpp"

namespace kiln::compile {

struct PoolConfig {
    Toolchain toolchain;
    std::filesystem::path worker;
    unsigned workers = 1;
    std::chrono::milliseconds time_limit{};
};

// Thread safe.
class Pool {
  public:
    explicit Pool(PoolConfig config) : config_(std::move(config)), owner_(::getpid()) {}
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // Waits for a free worker, has it answer the frame that `encode` makes for a sequence number, and keeps
    // it if all went well. `generation` tells toolchains apart: a worker that was started under another one
    // is replaced first.
    [[nodiscard]] Result<Reply> exchange(const std::function<std::string(std::uint64_t)>& encode,
                                         std::string_view subject, const std::string& generation);

  private:
    struct Worker {
        std::unique_ptr<WorkerProcess> process;
        std::string generation;
    };

    // Takes one of the config_.workers places, waiting for it, and an idle worker of that generation if there
    // is one.
    [[nodiscard]] std::unique_ptr<WorkerProcess> take(const std::string& generation);
    void give_back(std::unique_ptr<WorkerProcess> process, const std::string& generation) noexcept;

    // A place that is given back whatever happens, with `process` where there is one.
    struct Place {
        Place(Pool& its_pool, const std::string& its_generation)
            : pool(its_pool), generation(its_generation), process(pool.take(generation)) {}
        ~Place() { pool.give_back(std::move(process), generation); }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

        Pool& pool;
        const std::string& generation;
        std::unique_ptr<WorkerProcess> process;
    };

    const PoolConfig config_;
    const pid_t owner_;
    std::atomic<std::uint64_t> sequence_{0};

    std::mutex mutex_;
    std::condition_variable place_free_;
    std::vector<Worker> idle_;  // protected by mutex_
    unsigned busy_ = 0;         // places taken; protected by mutex_
};

}  // namespace kiln::compile
