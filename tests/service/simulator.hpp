// The shipped tables and templates on the simulated gfx950, and what a test of them takes for granted.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <utility>

#include "runtime/service/service.hpp"
#include "tests/service/scratch.hpp"

namespace kiln::test {

template <class T>
T well(Result<T> result) {
    REQUIRE_MESSAGE(result, result.error().message);
    return *std::move(result);
}
inline void well(const Result<void>& result) {
    REQUIRE_MESSAGE(result, result.error().message);
}

// One service for all cases, so that each specialisation is compiled once. Left alone at the end: its devices
// belong to a driver that is being torn down by then.
inline service::Service& simulator() {
    static const Scratch* const scratch = new Scratch;
    static service::Service* const service = [] {
        setenv("KILN_CACHE_DIR", scratch->cache().c_str(), 1);  // the look-alike's listings go there too
        service::Overrides overrides;
        overrides.device = "sim";
        auto settings = service::read_settings(overrides, service::process_environment());
        REQUIRE_MESSAGE(settings, settings.error().message);
        settings->driver.sim_library = KILN_SIM_LIBRARY;
        return well(service::Service::open(*std::move(settings))).release();
    }();
    return *service;
}

}  // namespace kiln::test
