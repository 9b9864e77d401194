#include "base/nearest.hpp"

#include <doctest/doctest.h>

TEST_CASE("NearestIsTheWordOfTheFewestEdits") {
    constexpr std::string_view kWords[] = {"prune", "clear", "stats", "start"};
    CHECK(kiln::nearest("clera", kWords) == "clear");
    CHECK(kiln::nearest("stat", kWords) == "stats");  // the first of two
    CHECK(kiln::nearest("", kWords) == "prune");
    CHECK(kiln::nearest("prune", kWords) == "prune");
}
