// What ls, stats, show, prune and clear share: the cache without a service around it, and what an entry says
// of itself. None of them makes the folder that it looks at.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cache/layer.hpp"
#include "runtime/service/cache_places.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {

struct CacheView {
    service::Settings settings;
    // The store is null where its folder does not exist.
    service::CachePlaces places;

    // The store, where there is one, then the layers.
    [[nodiscard]] std::vector<const cache::Layer*> all_places() const;
};

// As the common options and the environment have it; no table is read, no compiler looked for. Layers that
// are not looked into are said in the log; a store that can not be used is an error.
[[nodiscard]] Result<CacheView> open_cache_view(const CommonOptions& common);

// "2026-07-01T12:00:00Z"
[[nodiscard]] std::string to_text(std::chrono::system_clock::time_point time);

// One listed entry as JSON: key, bytes, path, last_used; kind, and what its metadata says of kernel,
// operator, problem, template and target; or error. Entries that are no kernels (disassemblies for the
// simulator) have no kernel.
[[nodiscard]] Json describe_entry(const cache::EntrySummary& summary,
                                  const Result<cache::StoredEntry>& stored);

// What was or would be removed: counts, bytes, the entries, faults.
[[nodiscard]] Json to_json(const cache::PruneReport& report);

// Prints a report on stdout in the form that `common` asks for, faults on stderr, and chooses the exit code.
[[nodiscard]] ExitCode print_report(const cache::PruneReport& report, const CacheView& view, bool dry_run,
                                    const CommonOptions& common);

}  // namespace kiln::cli
