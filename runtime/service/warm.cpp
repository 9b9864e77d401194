#include <algorithm>
#include <atomic>
#include <chrono>
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

WarmItem warm_one(Builder& builder, const operators::Specialisation& specialisation) try {
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

}  // namespace

WarmSummary Service::warm(std::span<const operators::Specialisation> wanted, const WarmProgress& progress) {
    const auto start = std::chrono::steady_clock::now();
    WarmSummary summary;
    summary.items.resize(wanted.size());

    // The compiler's pool decides how many compile at once; these threads only wait for it. One more than
    // that keeps it fed while another writes its entry.
    const unsigned cores = cores_of_this_process();
    const std::size_t waiters =
        std::min<std::size_t>(wanted.size(), (settings_.workers > 0 ? settings_.workers : cores) + 1);
    std::atomic<std::size_t> next{0};
    std::mutex progress_mutex;
    std::size_t done = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < wanted.size(); i = next++) {
            WarmItem item = warm_one(*builder_, wanted[i]);
            const std::lock_guard lock(progress_mutex);
            summary.items[i] = std::move(item);
            ++done;
            if (progress) {
                try {
                    progress(done, wanted.size(), summary.items[i]);
                } catch (const std::exception& exception) {
                    log::warning("warm: the progress of one item is not reported: {}", exception.what());
                }
            }
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(waiters);
    try {
        // The calling thread is one of them.
        while (threads.size() + 1 < waiters) {
            threads.emplace_back(work);
        }
    } catch (const std::system_error& error) {
        log::warning("warm: {} threads instead of {}: {}", threads.size() + 1, waiters, error.what());
    }
    work();
    for (std::thread& thread : threads) {
        thread.join();
    }

    for (const WarmItem& item : summary.items) {
        ++(item.error                                ? summary.failed
           : item.source == ArtifactSource::compiled ? summary.compiled
                                                     : summary.hits);
    }
    summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return summary;
}

}  // namespace kiln::service
