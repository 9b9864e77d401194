// What the benchmarks that look inside share: the service on a cache of their own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/service.hpp"

namespace kiln::bench {

// A benchmark that can not run says why and ends the program: there is nothing to measure.
template <class T>
T value_or_exit(Result<T> result) {
    if (!result) {
        std::fprintf(stderr, "benchmark: %s\n", result.error().message.c_str());
        std::exit(3);
    }
    return std::move(*result);
}

// Overrides for a service that keeps its cache in `folder` and takes the library `driver` for its HIP.
inline service::Overrides overrides_for(const std::filesystem::path& folder, const std::string& driver) {
    service::Overrides overrides;
    overrides.cache_dir = folder.string();
    overrides.device = "hip";
    overrides.hip_library = driver;
    return overrides;
}

// What the tables have of `linear` for gfx950, whose plans are read in a second.
inline service::WarmFilter linear_of_gfx950() {
    service::WarmFilter filter;
    filter.op = &operators::linear();
    filter.target = tables::Target{"gfx950", {}};
    return filter;
}

inline std::vector<operators::Specialisation> all_specialisations(const service::Service& service) {
    std::vector<Error> errors;
    auto all = service.matching(linear_of_gfx950(), errors);
    if (!errors.empty()) {
        std::fprintf(stderr, "benchmark: %s\n", errors.front().message.c_str());
        std::exit(3);
    }
    return all;
}

// Compiles all of them into the service's cache.
inline void warm(service::Service& service) {
    const auto summary = service.warm(all_specialisations(service), {});
    if (summary.failed != 0) {
        std::fprintf(stderr, "benchmark: %zu specialisations failed to compile\n",
                     static_cast<std::size_t>(summary.failed));
        std::exit(3);
    }
}

}  // namespace kiln::bench
