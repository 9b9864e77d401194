// Two versions of libkiln in one process, each reached by the library that was built against it.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "tests/abi/engine.hpp"
#include "tests/api/small_case.hpp"

namespace {

using namespace kiln::test;
using namespace kiln_abi_test;

constexpr std::int64_t kN = 32;
constexpr std::uint64_t kBuckets = 2;

struct Place {
    Folder folder;
    Settings settings;

    Place() {
        engine::set_device(0);  // the driver is the program's; either kiln has another beside it
        settings.cache_dir = (folder.path() / "cache").string();
        settings.shapes_path = folder.write("table.json", small_table({small_row(kN, 1)}));
    }
};

Arrays arrays_of(const SmallCase& numbers) {
    const auto args = numbers.args();
    return {args.x, args.ldx, args.w, args.w_scale, args.out};
}

bool launches_right(Engine& part, void* stream) {
    const SmallCase numbers(3, kN);
    return part.launch(stream, numbers.m(), arrays_of(numbers)) == 0 &&
           engine::synchronize_stream(stream) == 0 && numbers.is_right();
}

// The files of the process that a name begins so.
std::set<std::string> mapped(const std::string& beginning) {
    std::set<std::string> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::string path = line.substr(std::min(line.find('/'), line.size()));
        if (path.substr(path.rfind('/') + 1).rfind(beginning, 0) == 0) {
            found.insert(path);
        }
    }
    return found;
}

}  // namespace

TEST_CASE("EachLibraryReachesTheVersionThatItWasBuiltAgainst") {
    Place place;
    const auto of_this = make_engine_of_this(place.settings);
    const auto of_next = make_engine_of_next(place.settings);
    CHECK(of_this->calls() == of_this->compiled_against());
    CHECK(of_next->calls() == of_next->compiled_against());
    CHECK(of_this->calls() != of_next->calls());
    CHECK(of_this->inline_code() != of_next->inline_code());
    CHECK(mapped("libkiln.so.").size() == 2);
}

// As a binding of another language asks, in a process where both are visible to all.
TEST_CASE("TheLoaderKnowsEachFunctionUnderBothVersions") {
    Place place;
    for (const auto& part : {make_engine_of_this(place.settings), make_engine_of_next(place.settings)}) {
        const std::string version = part->compiled_against();
        const std::string interface = "KILN_" + version.substr(0, version.rfind('.'));
        void* const symbol = dlvsym(RTLD_DEFAULT, "kiln_version", interface.c_str());
        REQUIRE(symbol != nullptr);
        CHECK(reinterpret_cast<const char* (*)()>(symbol)() == version);
    }
}

TEST_CASE("WhatOneCompilesLaunchesAndDeclinesTheOtherDoesNotCount") {
    Place place;
    Place other;
    other.settings.disable = "linear";
    const auto of_this = make_engine_of_this(place.settings);
    const auto of_next = make_engine_of_next(other.settings);

    CHECK(of_next->prepare(kN, kSmallK).find("linear") != std::string::npos);
    CHECK(of_next->counted().declines == 1);
    CHECK(of_this->counted().declines == 0);

    REQUIRE(of_this->prepare(kN, kSmallK).empty());
    CHECK(launches_right(*of_this, nullptr));
    CHECK(of_this->counted().compiles == kBuckets);
    CHECK(of_next->counted().compiles == 0);
    CHECK(mapped("libamdhip64.so").size() == 1);

    // And the other way round, with the first of them gone.
    const auto again = make_engine_of_next(place.settings);
    REQUIRE(again->prepare(kN, kSmallK).empty());
    CHECK(launches_right(*again, nullptr));
    CHECK(again->counted().hits == kBuckets);
    CHECK(of_this->counted().hits == 0);
}

TEST_CASE("NeitherHearsWhatTheOtherSays") {
    constexpr std::size_t kSaid = 2 * kBuckets;  // compiled and loaded
    Place first;
    Place second;
    Place third;
    const auto of_this = make_engine_of_this(first.settings);
    const auto of_next = make_engine_of_next(second.settings);
    of_this->listen("info");
    of_next->listen("info");
    REQUIRE(of_this->prepare(kN, kSmallK).empty());
    CHECK(of_this->heard().size() == kSaid);
    CHECK(of_next->heard().empty());

    // Nor is one silent because the other is.
    of_next->listen("off");
    REQUIRE(of_next->prepare(kN, kSmallK).empty());
    CHECK(of_next->heard().empty());
    REQUIRE(make_engine_of_this(third.settings)->prepare(kN, kSmallK).empty());
    CHECK(of_this->heard().size() == kSaid);
    of_this->listen("warning");
    of_next->listen("warning");
}

TEST_CASE("BothCompileOnceForOneStoreAndLaunchAtTheSameTime") {
    Place place;
    const auto of_this = make_engine_of_this(place.settings);
    const auto of_next = make_engine_of_next(place.settings);
    constexpr int kRounds = 8;
    std::string why[2];
    int right[2] = {0, 0};
    const auto work = [&](Engine& part, int number) {
        why[number] = part.prepare(kN, kSmallK);
        void* const stream = engine::create_stream();
        for (int round = 0; why[number].empty() && round < kRounds; ++round) {
            right[number] += launches_right(part, stream) ? 1 : 0;
        }
        engine::destroy_stream(stream);
    };
    std::thread next(work, std::ref(*of_next), 1);
    work(*of_this, 0);
    next.join();
    for (int number : {0, 1}) {
        CHECK(why[number] == "");
        CHECK(right[number] == kRounds);
    }
    CHECK(of_this->counted().compiles + of_next->counted().compiles == kBuckets);
    CHECK(of_this->counted().hits + of_next->counted().hits == kBuckets);
}

TEST_CASE("OneGraphHoldsLaunchesOfBoth") {
    Place place;
    const auto of_this = make_engine_of_this(place.settings);
    const auto of_next = make_engine_of_next(place.settings);
    REQUIRE(of_this->prepare(kN, kSmallK).empty());
    REQUIRE(of_next->prepare(kN, kSmallK).empty());
    const SmallCase first(3, kN);
    const SmallCase second(9, kN);
    void* const stream = engine::create_stream();
    engine::begin_capture(stream, engine::CaptureMode::global);
    CHECK(of_this->launch(stream, first.m(), arrays_of(first)) == 0);
    CHECK(of_next->launch(stream, second.m(), arrays_of(second)) == 0);
    void* const graph = engine::end_capture(stream);
    engine::replay(graph, stream);
    CHECK(engine::synchronize_stream(stream) == 0);
    CHECK(first.is_right());
    CHECK(second.is_right());
    engine::destroy_graph(graph);
    engine::destroy_stream(stream);
}
