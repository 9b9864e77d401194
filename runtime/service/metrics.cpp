#include "runtime/service/metrics.hpp"

#include <chrono>
#include <limits>

#include "runtime/operators/decline.hpp"
#include "runtime/service/version.hpp"

namespace kiln::service {
namespace {

using prometheus::Page;
using prometheus::Type;

constexpr std::string_view kLabels[] = {"place", "reason", "result", "version"};

void add_facts(const Service& service, Page& page) {
    page.family(Type::gauge, "kiln_build_info", "The version of kiln, as a label; 1.");
    page.sample(std::uint64_t{1}, {{"version", kVersion}});
    page.family(Type::gauge, "kiln_service_opened_timestamp_seconds",
                "When the service was opened, in seconds since 1970: its counters begin there.");
    page.sample(std::chrono::duration<double>(service.opened().time_since_epoch()).count());
    page.family(Type::gauge, "kiln_jit_enabled", "1 where a miss is compiled, 0 where it is an error.");
    page.sample(std::uint64_t{service.settings().jit ? 1u : 0u});
    page.family(Type::gauge, "kiln_cache_limit_bytes", "Bound of the user's store; +Inf: none.");
    const std::uint64_t limit = service.settings().cache_limit;
    if (limit == 0) {
        page.sample(std::numeric_limits<double>::infinity());
    } else {
        page.sample(limit);
    }
}

void add_cache(const Statistics& statistics, Page& page) {
    const auto counter = [&page](std::string_view name, std::string_view help, std::uint64_t value) {
        page.family(Type::counter, name, help);
        page.sample(value);
    };
    page.family(Type::counter, "kiln_cache_hits_total",
                "Specialisations that came from the user's store, or from a layer of KILN_CACHE_PATH.");
    page.sample(statistics.cache_hits - statistics.layer_hits, {{"place", "store"}});
    page.sample(statistics.layer_hits, {{"place", "layer"}});
    counter("kiln_cache_misses_total", "Specialisations looked for and not there, damaged entries included.",
            statistics.cache_misses);
    counter("kiln_cache_damaged_total", "Entries that did not verify and were set aside.",
            statistics.cache_damaged);
    counter("kiln_cache_other_compiler_hits_total",
            "Of the hits, those that another compiler than this machine's built.",
            statistics.other_compiler_hits);
    counter("kiln_cache_evictions_total", "Entries that went to keep the store within its bound.",
            statistics.evictions);
    counter("kiln_memory_hits_total",
            "Specialisations that another thread was just building, or memory held.", statistics.memory_hits);
}

void add_work(const Service& service, const Statistics& statistics, Page& page) {
    page.family(Type::counter, "kiln_compiles_total", "Specialisations compiled, and those that failed.");
    page.sample(statistics.compiles, {{"result", "done"}});
    page.sample(statistics.compile_errors, {{"result", "failed"}});
    page.family(Type::counter, "kiln_compile_seconds_total",
                "Time inside the compiler, over all workers, of those that were done.");
    page.sample(statistics.compile_seconds);
    page.family(Type::counter, "kiln_loads_total", "Code objects handed to a driver.");
    page.sample(statistics.loads);
    page.family(Type::counter, "kiln_declines_total",
                "Answers \"not applicable\" of supports, prepare and launches, by reason.");
    for (const operators::DeclineWords& words : operators::all_declines()) {
        page.sample(service.num_declines(words.value), {{"reason", words.name}});
    }
    page.family(Type::counter, "kiln_disabled_total", "Failures that took a specialisation out.");
    page.sample(statistics.disabled);
    page.family(Type::counter, "kiln_reloads_total", "Reloads that took the tables.");
    page.sample(statistics.reloads);
}

}  // namespace

std::span<const std::string_view> metric_labels() {
    return kLabels;
}

void add_metrics(const Service& service, prometheus::Page& page) {
    const Statistics statistics = service.statistics();
    add_facts(service, page);
    add_cache(statistics, page);
    add_work(service, statistics, page);
}

}  // namespace kiln::service
