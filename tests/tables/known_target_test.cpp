#include "runtime/tables/known_target.hpp"

#include <doctest/doctest.h>

using namespace kiln::tables;

namespace {

std::string judged(const char* text, bool is_served = false) {
    const auto fault = judge_target(*parse_target(text), is_served);
    return fault ? "expected " + fault->expected + ", found " + fault->found : "well";
}

}  // namespace

TEST_CASE("KnownTargetTakesProcessorsThatThereAre") {
    for (const char* text : {"gfx950", "gfx942:sramecc+:xnack-", "gfx9-4-generic", "gfx1100", "sm_90a"}) {
        CHECK(judged(text) == "well");
    }
}

TEST_CASE("KnownTargetNamesTheNearestOfAMisspeltProcessor") {
    CHECK(judged("gfx95o") == "expected a processor that there is; the nearest is gfx950, found \"gfx95o\"");
    CHECK(judged("gfx9500").find("the nearest is gfx950,") != std::string::npos);
    CHECK(judged("sm90a").find("the nearest is sm_90a,") != std::string::npos);
    // What there is a template for is known by that.
    CHECK(judged("gfx1300", true) == "well");
}

TEST_CASE("KnownTargetRefusesFeaturesThatTheProcessorNeverReports") {
    CHECK(judged("gfx950:xnak-") == "expected a feature that gfx950 has: sramecc or xnack, found \"xnak\"");
    CHECK(judged("gfx1300:tgsplit+", true).find("\"tgsplit\"") != std::string::npos);
    CHECK(judged("sm_90a:xnack-") == "expected no feature pinned: sm_90a has none, found \"xnack\"");
}

TEST_CASE("AskedTargetMayHaveAProcessorOfItsOwnButNoFeatureThatNoDeviceReports") {
    CHECK(parse_asked_target("gfx950:xnack-")->text() == "gfx950:xnack-");
    CHECK(parse_asked_target("gfx1300")->text() == "gfx1300");
    CHECK(parse_asked_target("SM_90A").error().message ==
          "target \"SM_90A\": expected a processor in lower case, such as gfx950, found \"SM_90A\"");
    CHECK(parse_asked_target("sm_90a:xnack-").error().message ==
          "target \"sm_90a:xnack-\": expected no feature pinned: sm_90a has none, found \"xnack\"");
}
