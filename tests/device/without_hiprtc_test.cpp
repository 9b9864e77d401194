// A machine with a HIP runtime and no hipRTC: what the cache holds runs, and a compile is an error that says
// what is missing. The look-alike is the HIP runtime here.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kiln/kiln.hpp"
#include "runtime/compile/toolchain.hpp"

namespace fs = std::filesystem;

namespace {

constexpr const char* kTable = R"({"schema": 1, "rows": [
    {"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "gfx950", "provenance": {"kind": "untuned"},
     "buckets": [{"max_m": 16, "template": "linear/small_m",
                  "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]},
    {"operator": "linear", "problem": {"n": 32, "k": 128}, "target": "gfx950", "provenance": {"kind": "untuned"},
     "buckets": [{"max_m": 16, "template": "linear/small_m",
                  "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";

}  // namespace

TEST_CASE("WithoutAHipRtcPlansComeFromTheCacheAndACompileIsANamedError") {
    std::string name = (fs::temp_directory_path() / "kiln-no-hiprtc-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    const fs::path folder = name;
    const std::string cache = (folder / "cache").string(), shapes = (folder / "table.json").string();
    std::ofstream(shapes) << kTable;
    const kiln::Config config{.cache_dir = cache.c_str(),
                              .shapes_path = shapes.c_str(),
                              .device = "hip",
                              .hip_library = KILN_TEST_LOOKALIKE,
                              .log = "off"};
    const kiln::Linear kept{.n = 16, .k = 128}, never_compiled{.n = 32, .k = 128};
    {
        const auto plan = kiln::Service::open(config).prepare(0, kept);
        REQUIRE_MESSAGE(plan, plan.failure().message);
    }
    for (const char* variable : {"HOME", "XDG_DATA_HOME", "KILN_ROCM_PREFIX"}) {
        setenv(variable, "/nonexistent", 1);
    }
    if (kiln::compile::find_toolchain({}, kiln::compile::Family::amdgpu)) {
        MESSAGE("skipped: this machine has a hipRTC where it can not be hidden");
    } else {
        const auto service = kiln::Service::open(config);
        const auto plan = service.prepare(0, kept);
        REQUIRE_MESSAGE(plan, plan.failure().message);
        CHECK(plan.kernel_name(1) == std::string("kiln_linear_n16_k128_m16"));
        CHECK(service.statistics().cache_hits == 1);
        CHECK(service.statistics().compiles == 0);
        const auto missing = service.prepare(0, never_compiled);
        CHECK(missing.failure().status.error_code() == KILN_ERROR_ENVIRONMENT);
        CHECK_MESSAGE(missing.failure().message.find("no HIP run-time compiler") != std::string::npos,
                      missing.failure().message);
        CHECK(service.statistics().cache_misses == 1);
        // It disabled nothing: a compiler may be installed while the process runs.
        CHECK(service.prepare(0, never_compiled).failure().status.error_code() == KILN_ERROR_ENVIRONMENT);
    }
    fs::remove_all(folder);
}
