// warm_once CACHE_DIR SHAPES_PATH [ROUNDS]: in a service of its own, warms what the tables hold for one small
// problem, again and again, and prints "COMPILES HITS MISSES MEMORY_HITS LAYER_HITS". An empty CACHE_DIR
// leaves the place to the environment.
#include <cstdio>
#include <cstdlib>

#include "runtime/service/service.hpp"

int main(int argc, char** argv) {
    if (argc < 3 || argc > 4) {
        return 2;
    }
    kiln::service::Overrides overrides;
    if (*argv[1] != '\0') {
        overrides.cache_dir = argv[1];
    }
    overrides.shapes_path = argv[2];
    auto service = kiln::service::Service::open(overrides);
    if (!service) {
        std::fprintf(stderr, "%s\n", service.error().message.c_str());
        return 1;
    }
    const kiln::service::WarmFilter filter{.op = nullptr,
                                           .problem = {{"n", std::int64_t{16}}, {"k", std::int64_t{128}}},
                                           .target = std::nullopt};
    std::vector<kiln::Error> errors;
    const auto wanted = (*service)->matching(filter, errors);
    for (int round = 0; round < (argc == 4 ? std::atoi(argv[3]) : 1); ++round) {
        const kiln::service::WarmSummary summary = (*service)->warm(wanted);
        if (!errors.empty() || summary.failed != 0 || summary.items.empty()) {
            return 1;
        }
    }
    const kiln::service::Statistics statistics = (*service)->statistics();
    for (const auto count : {statistics.compiles, statistics.cache_hits, statistics.cache_misses,
                             statistics.memory_hits, statistics.layer_hits}) {
        std::printf("%llu ", static_cast<unsigned long long>(count));
    }
    return 0;
}
