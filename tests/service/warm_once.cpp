// warm_once CACHE_DIR SHAPES_PATH: warms what the tables hold for gfx950 and prints the number of compiles.
#include <cstdio>

#include "runtime/service/service.hpp"

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    kiln::service::Overrides overrides;
    overrides.cache_dir = argv[1];
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
    const kiln::service::WarmSummary summary = (*service)->warm((*service)->matching(filter, errors));
    if (!errors.empty() || summary.failed != 0 || summary.items.empty()) {
        return 1;
    }
    std::printf("%llu\n", static_cast<unsigned long long>((*service)->statistics().compiles));
    return 0;
}
