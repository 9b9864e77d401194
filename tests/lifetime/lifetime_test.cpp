// How processes that use kiln begin, fork and end. Each case is a process of its own, and a cache that is
// filled once.
#include <doctest/doctest.h>

#include <string>

#include <fmt/format.h>

#include "tests/lifetime/processes.hpp"

using kiln::test::check_no_worker_is_left;
using kiln::test::engine_program;
using kiln::test::kLeaks;
using kiln::test::run;
using kiln::test::tail_of;

namespace {

std::string end_by(const std::string& how) {
    return run(fmt::format("{} {}", engine_program("ends"), how));
}

}  // namespace

TEST_CASE("APlanInAStaticObjectIsReleasedAfterMain") {
    CHECK(end_by("static") == "end\n");
    check_no_worker_is_left();
}

TEST_CASE("AStaticDestructorMayUseKilnAndEveryCallComesBack") {
    CHECK(end_by("static-use") == "end\nused\n");
}

TEST_CASE("ExitWithLivePlansAndWorkThatNobodyWaitsFor") {
    CHECK(end_by("exit-live") == "end\n");
}

TEST_CASE("QuickExitWithLivePlans") {
    CHECK(end_by("quick-exit") == "end\n");
}

TEST_CASE("ExitWhileThreadsLaunchPrepareAndCompile") {
    for (const char* how : {"busy", "busy-thread", "busy-_exit"}) {
        CHECK(end_by(how) == "end\n");
        check_no_worker_is_left();
    }
}

TEST_CASE("AChildOfAForkIsToldAndEndsAndItsParentGoesOn") {
    for (const char* how : {"exit", "_exit", "before"}) {
        const auto said =
            run(fmt::format("env KILN_LOG=info {} {} {}", kLeaks, engine_program("forks"), how));
        CHECK_MESSAGE(said.find("not so") == std::string::npos, tail_of(said));
    }
    check_no_worker_is_left();
}

TEST_CASE("AHundredServicesLeaveNothingBehind") {
    CHECK(run(engine_program("many")) == "end\n");
}

TEST_CASE("ThreadsShareAServiceAndItsPlans") {
    CHECK(run(fmt::format("{} {}", engine_program("threads"), KILN_TEST_ROUNDS)) == "end\n");
}
