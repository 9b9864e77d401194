#include "runtime/tables/target.hpp"

#include <doctest/doctest.h>

using namespace kiln;
using namespace kiln::tables;

namespace {

Target target(std::string_view text) {
    const auto parsed = parse_target(text);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    return *parsed;
}

}  // namespace

TEST_CASE("TargetReadsProcessorAndFeatures") {
    CHECK(target("gfx950") == Target{"gfx950", {}});
    CHECK(target("sm_90a") == Target{"sm_90a", {}});
    CHECK(target("gfx9-4-generic") == Target{"gfx9-4-generic", {}});
    CHECK(target("gfx950:xnack-") == Target{"gfx950", {{"xnack", false}}});
    CHECK(target("gfx950:sramecc+:xnack-") == Target{"gfx950", {{"sramecc", true}, {"xnack", false}}});
}

TEST_CASE("TargetHasOneSpelling") {
    CHECK(target("gfx950:xnack-:sramecc+").text() == "gfx950:sramecc+:xnack-");
    CHECK(target("gfx950").text() == "gfx950");
    CHECK(target("gfx950:xnack+").text() == "gfx950:xnack+");
}

TEST_CASE("TargetRefusesWhatIsNone") {
    for (const char* text :
         {"", ":", ":xnack-", "GFX950", "950", "gfx 950", "gfx950:", "gfx950:xnack", "gfx950:+",
          "gfx950::xnack-", "gfx950:xnack-:", "gfx950:xnack-:xnack-", "gfx950:xnack-:xnack+", "gfx950:Xnack-",
          "gfx950:xnack--", "gfx950\n", "gfx950,xnack-"}) {
        const auto parsed = parse_target(text);
        REQUIRE_MESSAGE(!parsed, text);
        CHECK(parsed.error().code == ErrorCode::bad_input);
        CHECK(parsed.error().stage == Stage::table);
    }
    CHECK(parse_target("gfx950:xnack").error().message ==
          "target \"gfx950:xnack\": expected a feature and its sign, such as xnack-, found \"xnack\"");
}

TEST_CASE("TargetServesWhenProcessorAndPinnedFeaturesAgree") {
    struct Case {
        const char* wanted;
        const char* device;
        bool serves;
    };
    const Case cases[] = {
        {"gfx950", "gfx950", true},
        {"gfx950", "gfx950:sramecc+:xnack-", true},
        {"gfx950", "gfx942:sramecc+:xnack-", false},
        {"gfx950", "gfx9500", false},
        {"gfx950:xnack-", "gfx950:sramecc+:xnack-", true},
        {"gfx950:xnack+", "gfx950:sramecc+:xnack-", false},
        {"gfx950:sramecc+:xnack-", "gfx950:sramecc+:xnack-", true},
        {"gfx950:sramecc-:xnack-", "gfx950:sramecc+:xnack-", false},
        {"gfx950:xnack-", "gfx950", false},  // of what the device says nothing, it agrees with neither sign
        {"gfx950:xnack+", "gfx950", false},
        {"sm_90a", "sm_90a", true},
        {"sm_90a", "sm_90", false},
    };
    for (const auto& one : cases) {
        CAPTURE(one.wanted);
        CAPTURE(one.device);
        CHECK(serves(target(one.wanted), target(one.device)) == one.serves);
    }
}
