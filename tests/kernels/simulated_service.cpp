#include "simulated_service.hpp"

#include <doctest/doctest.h>

#include "tests/service/scratch.hpp"

namespace kiln::kernels_test {

service::Service& open_simulated_service(const std::vector<std::string>& rows) {
    static const test::Scratch scratch;
    setenv("KILN_CACHE_DIR", scratch.cache().c_str(), 1);  // the look-alike's listings go there too
    std::string table;
    for (const std::string& row : rows) {
        table += (table.empty() ? "" : ",\n") + row;
    }
    service::Overrides overrides = test::overrides_in(scratch);
    overrides.device = "sim";
    overrides.shapes_path = scratch.write("table.json", R"({"schema": 1, "rows": [)" + table + "]}").string();
    auto settings = service::read_settings(overrides, service::process_environment());
    REQUIRE_MESSAGE(settings, settings.error().message);
    settings->driver.sim_library = KILN_SIM_LIBRARY;
    auto opened = service::Service::open(*std::move(settings));
    REQUIRE_MESSAGE(opened, opened.error().message);
    return *opened->release();
}

std::shared_ptr<const service::Plan> prepare_on(service::Service& service, const operators::Operator& op,
                                                const operators::Problem& problem) {
    const auto complete = operators::complete(op, problem);
    REQUIRE_MESSAGE(complete, complete.error().message);
    auto plan = service.prepare(0, op, *complete);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    return *std::move(plan);
}

}  // namespace kiln::kernels_test
