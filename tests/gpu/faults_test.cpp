#include <doctest/doctest.h>

#include "tests/lifetime/processes.hpp"

using namespace kiln::test;

TEST_CASE("faults: an engine's own fault is returned as the device's failure, and disables nothing") {
    CHECK(run(engine_program("faults")) == "end\n");
}
