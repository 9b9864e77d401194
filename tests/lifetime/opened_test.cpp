// A host that opens libkiln itself and closes it again.
#include <doctest/doctest.h>

#include <utility>

#include <fmt/format.h>

#include "tests/lifetime/processes.hpp"

using kiln::test::kLeaks;
using kiln::test::run;

TEST_CASE("ALibraryThatIsClosedStaysUsableAndOpensAgain") {
    for (const auto& [held, environment] : {std::pair{"released", ""}, std::pair{"live", kLeaks}}) {
        CHECK(run(fmt::format("env {} {} {} {} {}", environment, KILN_TEST_OPENED, KILN_TEST_LIBKILN,
                              KILN_TEST_LOOKALIKE, held)) == "end\n");
    }
}
