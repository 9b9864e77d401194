// What a trial under every order and both extremes of visibility finds that one without them does not: a
// router whose last work-group reads what the others have not released, or what it has not acquired.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/operators/router.hpp"
#include "runtime/service/trial.hpp"
#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::Result;

namespace {

constexpr std::string_view kRow = R"({"schema": 1, "rows": [{"operator": "router",
    "problem": {"hidden": 1024, "experts": 100, "top_k": 6}, "target": "gfx950", "provenance": {"kind": "untuned"},
    "buckets": [{"max_m": 4, "template": "router/one_launch", "constants": {"rows": 2, "waves": 2}}]}]})";

template <class T>
T well(Result<T> result) {
    REQUIRE_MESSAGE(result, result.error().message);
    return *std::move(result);
}

struct Tried {
    TrialResult plain, sanitized;
};
// The shipped router without `line` in the files of that name.
Tried try_without(std::string_view line, std::string_view file) {
    const kiln::test::Scratch scratch;
    std::size_t removed = 0;
    for (const auto& shipped : kiln::embedded::kernel_files()) {
        std::string text(shipped.text);
        if (!line.empty() && shipped.path.find(file) != std::string_view::npos) {
            for (std::size_t at = text.find(line); at != std::string::npos; at = text.find(line)) {
                text.erase(at, line.size());
                ++removed;
            }
        }
        scratch.write("kernels/" + std::string(shipped.path), text);
    }
    CHECK((removed > 0) == !line.empty());
    setenv("KILN_CACHE_DIR", scratch.cache().c_str(), 1);  // the look-alike's listings go there too
    Overrides overrides = kiln::test::overrides_in(scratch);
    overrides.device = "sim";
    overrides.kernel_path = scratch.kernels().string();
    overrides.shapes_path = scratch.write("table.json", kRow).string();
    auto settings = well(read_settings(overrides, process_environment()));
    settings.driver.sim_library = KILN_SIM_LIBRARY;
    const auto service = well(Service::open(std::move(settings)));
    const auto& router = kiln::operators::router();
    const std::vector<std::string> words = {"hidden=1024", "experts=100", "top_k=6"};
    const auto problem = well(kiln::operators::parse_problem(router, words));
    const auto plan = service->prepare(0, router, problem);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    const auto trial = well(Trial::create(*plan, 4, 11));
    auto rules = all_rules(1);
    for (auto& one : rules) {
        // Of a broken kernel a race would be the device's fault, before its results were seen.
        one.checks = removed > 0 ? "uninitialised,freed" : one.checks;
    }
    Tried tried{well(trial->run(4)), well(trial->run(4, rules))};
    // The device is the process's: the next case finds it as it was.
    CHECK((*plan)->device().set_rules({}));
    return tried;
}

bool says(const TrialResult& result, std::string_view part) {
    return result.remark.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("sanitize: the router holds under every order and both extremes of visibility, with every check") {
    const Tried tried = try_without("", "");
    CHECK_MESSAGE(tried.plain.passed, tried.plain.remark);
    CHECK_MESSAGE(tried.sanitized.passed, tried.sanitized.remark);
}

TEST_CASE("sanitize: a router without its release, or without its acquire, passes plainly and fails here") {
    Tried tried;
    SUBCASE("release") {
        tried = try_without(" release_to_device();\n", "router/one_launch.gfx950.hip");
    }
    SUBCASE("acquire") {
        tried = try_without(" acquire_from_device();\n", "");
    }
    CHECK_MESSAGE(tried.plain.passed, tried.plain.remark);
    CHECK_FALSE(tried.sanitized.passed);
    CAPTURE(tried.sanitized.remark);
    CHECK(says(tried.sanitized, "order ascending and scopes late differs from the first launch"));
    CHECK_FALSE(says(tried.sanitized, "scopes early"));
}
