// Filling the cache ahead of time: what is asked of Service::warm() and what it answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/service/builder.hpp"

namespace kiln::service {

struct WarmItem {
    operators::Specialisation specialisation;
    std::optional<Error> error;
    bool skipped = false;  // the stop flag was set before it was done
    ArtifactSource source = ArtifactSource::compiled;
    double compile_seconds = 0;
    std::string key_digest;
};

struct WarmSummary {
    std::vector<WarmItem> items;  // in the order asked for
    std::uint64_t compiled = 0, hits = 0, failed = 0, skipped = 0;
    double seconds = 0;  // wall clock
};

// Called after each item that was not skipped, one at a time, from any thread.
using WarmProgress = std::function<void(std::size_t done, std::size_t total, const WarmItem& item)>;

struct WarmOptions {
    // How many at once; 0: as many as there are compile workers.
    unsigned jobs = 0;
    // Set by a signal handler, say: begins no item any more and ends the compiles under way. What is done is
    // kept. The service compiles nothing from then on.
    const std::atomic<bool>* stop = nullptr;
    WarmProgress progress;
};

// What warm() would find for one specialisation.
struct WarmCheck {
    bool cached = false;
    ArtifactSource source = ArtifactSource::cache;  // where it was found, if it was
    // Why it can not be told, the store does not answer say; it would then be compiled.
    std::optional<Error> error;
};

}  // namespace kiln::service
