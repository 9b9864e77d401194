#include "runtime/service/warm.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/log.hpp"
#include "runtime/service/service.hpp"

namespace kiln::service {

namespace {

using operators::Specialisation;

WarmItem warm_one(Builder& builder, const Specialisation& specialisation) try {
    WarmItem item;
    Result<ArtifactPtr> artifact = builder.obtain(specialisation);
    item.specialisation = specialisation;
    if (artifact) {
        item.source = (*artifact)->source;
        item.compile_seconds = (*artifact)->compile_seconds;
        item.key_digest = (*artifact)->key_digest;
    } else {
        item.error = std::move(artifact.error());
    }
    return item;
} catch (const std::exception& exception) {
    WarmItem item;
    item.error = Error{ErrorCode::internal, Stage::compile, exception.what()};
    return item;
}

// One call of warm(): threads that take the items in order, and a caller that watches the stop flag.
class Warming {
  public:
    Warming(Builder& builder, std::span<const Specialisation> wanted, const WarmOptions& options)
        : builder_(builder), wanted_(wanted), options_(options), items_(wanted.size()) {}

    std::vector<WarmItem> run(std::size_t num_threads) {
        std::vector<std::thread> threads;
        threads.reserve(num_threads);
        try {
            while (threads.size() < num_threads) {
                threads.emplace_back([this] { work(); });
                const std::lock_guard lock(mutex_);
                ++working_;
            }
        } catch (const std::system_error& error) {
            log::warning("warm: {} threads instead of {}: {}", threads.size(), num_threads, error.what());
        }
        if (threads.empty()) {
            ++working_;
            work();
        }
        watch();
        for (std::thread& thread : threads) {
            thread.join();
        }
        return std::move(items_);
    }

  private:
    [[nodiscard]] bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

    void work() {
        for (std::size_t i = next_++; i < wanted_.size(); i = next_++) {
            WarmItem item;
            if (stopped()) {
                item.specialisation = wanted_[i];
                item.skipped = true;
            } else {
                item = warm_one(builder_, wanted_[i]);
                // What the stop itself ended has not failed.
                if (item.error && stopped()) {
                    item.error.reset();
                    item.skipped = true;
                }
            }
            keep(i, std::move(item));
        }
        {
            const std::lock_guard lock(mutex_);
            --working_;
        }
        ended_.notify_one();
    }

    void keep(std::size_t i, WarmItem item) {
        const std::lock_guard lock(mutex_);
        items_[i] = std::move(item);
        if (items_[i].skipped || !options_.progress) {
            return;
        }
        ++done_;
        try {
            options_.progress(done_, wanted_.size(), items_[i]);
        } catch (const std::exception& exception) {
            log::warning("warm: the progress of one item is not reported: {}", exception.what());
        }
    }

    // Until every thread has ended. A flag that a signal handler sets wakes nobody, so it is looked at now
    // and then.
    void watch() {
        constexpr std::chrono::milliseconds kInterval(20);
        bool told = false;
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, kInterval, [this] { return working_ == 0; })) {
            if (!told && stopped()) {
                told = true;
                lock.unlock();
                builder_.stop();
                lock.lock();
            }
        }
    }

    Builder& builder_;
    const std::span<const Specialisation> wanted_;
    const WarmOptions& options_;
    std::atomic<std::size_t> next_{0};

    std::mutex mutex_;
    std::condition_variable ended_;
    // Protected by mutex_.
    std::vector<WarmItem> items_;
    std::size_t done_ = 0;
    std::ptrdiff_t working_ = 0;  // below 0 for a moment, where a thread ends before it is counted
};

}  // namespace

WarmSummary Service::warm(std::span<const Specialisation> wanted, const WarmOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    // The compiler's pool decides how many compile at once; these threads only wait for it. One more than
    // that keeps it fed while another writes its entry.
    const std::size_t workers = settings_.workers > 0 ? settings_.workers : cores_of_this_process();
    const std::size_t jobs = options.jobs > 0 ? options.jobs : workers + 1;

    WarmSummary summary;
    summary.items = Warming(builder(), wanted, options).run(std::min(wanted.size(), jobs));
    for (const WarmItem& item : summary.items) {
        ++(item.skipped                              ? summary.skipped
           : item.error                              ? summary.failed
           : item.source == ArtifactSource::compiled ? summary.compiled
                                                     : summary.hits);
    }
    summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return summary;
}

std::vector<WarmCheck> Service::check_warm(std::span<const Specialisation> wanted) {
    std::vector<WarmCheck> checks;
    checks.reserve(wanted.size());
    for (const Specialisation& specialisation : wanted) {
        const Result<std::optional<ArtifactPtr>> found = builder().find(specialisation);
        WarmCheck& check = checks.emplace_back();
        if (found) {
            check.cached = found->has_value();
            check.source = check.cached ? (**found)->source : check.source;
        } else {
            check.error = found.error();
        }
    }
    return checks;
}

}  // namespace kiln::service
