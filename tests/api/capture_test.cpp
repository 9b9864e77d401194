// Plans and graph capture, as an engine meets them: what kiln does never breaks a capture, and what could is
// declined.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tests/api/small_case.hpp"

using kiln::PrepareMode;
using kiln::test::Folder;
using kiln::test::small_problem;
using kiln::test::small_row;
using kiln::test::small_table;
using kiln::test::SmallCase;

namespace {

namespace engine = kiln::test::engine;
using Mode = engine::CaptureMode;
constexpr Mode kModes[] = {Mode::global, Mode::thread_local_, Mode::relaxed};

// A stream of this thread, and what is captured on it.
class Captured {
  public:
    Captured() = default;
    ~Captured() {
        if (executable_ != nullptr) {
            engine::destroy_graph(executable_);
        }
        engine::destroy_stream(stream_);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;

    [[nodiscard]] void* stream() const { return stream_; }
    void begin(Mode mode) const { engine::begin_capture(stream_, mode); }
    void end() { executable_ = engine::end_capture(stream_); }
    void replay() const {
        engine::replay(executable_, stream_);
        synchronize();
    }
    void synchronize() const { REQUIRE(engine::synchronize_stream(stream_) == 0); }

  private:
    void* stream_ = engine::create_stream();
    void* executable_ = nullptr;
};

struct Capturing {
    Folder folder;
    std::string shapes = folder.write("mine.json", small_table({small_row(16, 1), small_row(32, 1)}));

    kiln::Service open() const {
        kiln::test::shared_cache();
        auto service =
            kiln::Service::open({.shapes_path = shapes.c_str(), .device = engine::device(), .log = "off"});
        REQUIRE_MESSAGE(service, service.failure().message);
        return service;
    }
    kiln::Plan<kiln::Linear> prepare(const kiln::Service& service, std::int64_t n,
                                     PrepareMode mode = PrepareMode::blocking) const {
        auto plan = service.prepare(0, small_problem(n), mode);
        REQUIRE_MESSAGE(plan, plan.failure().message);
        return plan;
    }
};

void on_thread(const bool other, const auto& work) {
    if (other) {
        std::thread(work).join();
    } else {
        work();
    }
}

}  // namespace

TEST_CASE_FIXTURE(Capturing,
                  "capture: the first launch after prepare may be captured, and replays as it runs") {
    const auto service = open();
    const SmallCase arrays(9, 16);
    for (const Mode mode : kModes) {
        const auto plan = prepare(service, 16);  // modules of its own: nothing of it was ever launched
        Captured captured;
        captured.begin(mode);
        REQUIRE(plan.launch(captured.stream(), 9, arrays.args()));
        captured.end();
        arrays.clear();
        captured.replay();
        CHECK(arrays.is_right());
        const auto replayed = arrays.read();
        arrays.clear();
        REQUIRE(plan.launch(nullptr, 9, arrays.args()));
        CHECK(arrays.read() == replayed);
    }
}

TEST_CASE_FIXTURE(Capturing, "capture: what prepares while a stream captures does not break the capture") {
    const auto service = open();
    const auto plan = prepare(service, 16);
    const SmallCase arrays(4, 16), aside(16, 32);
    for (const Mode mode : kModes) {
        for (const bool other_thread : {false, true}) {
            CAPTURE(static_cast<int>(mode));
            CAPTURE(other_thread);
            Captured captured;
            captured.begin(mode);
            REQUIRE(plan.launch(captured.stream(), 4, arrays.args()));
            on_thread(other_thread, [&] {
                // A service of its own binds, asks for the devices, compiles or hits, and loads.
                const auto second = open();
                CHECK(second.prepare(0, small_problem(32)));
                const auto later = second.prepare(0, small_problem(16), PrepareMode::background);
                CHECK(later.wait());
                // Released here: unloads.
            });
            REQUIRE(plan.launch(captured.stream(), 4, arrays.args()));
            captured.end();
            arrays.clear();
            captured.replay();
            CHECK(arrays.is_right());
        }
    }
}

TEST_CASE_FIXTURE(Capturing, "capture: a first use on another stream loads, and breaks no capture") {
    const auto service = open();
    const SmallCase arrays(4, 16), aside(16, 32);
    for (const Mode mode : kModes) {
        CAPTURE(static_cast<int>(mode));
        const auto plan = prepare(service, 16);
        const auto lazy = prepare(service, 32, PrepareMode::lazy);
        Captured captured;
        const Captured idle;
        captured.begin(mode);
        CHECK(lazy.launch(idle.stream(), 16, aside.args()));
        REQUIRE(plan.launch(captured.stream(), 4, arrays.args()));
        captured.end();
        arrays.clear();
        captured.replay();
        CHECK(arrays.is_right());
        idle.synchronize();
        CHECK(aside.is_right());
    }
}

TEST_CASE_FIXTURE(Capturing, "capture: a first use under capture declines, and the capture goes on") {
    const auto service = open();
    const SmallCase arrays(4, 16), other(4, 32);
    for (const Mode mode : kModes) {
        CAPTURE(static_cast<int>(mode));
        const auto plan = prepare(service, 16);
        const auto lazy = prepare(service, 32, PrepareMode::lazy);
        const auto compiles = service.statistics().compiles;
        Captured captured;
        captured.begin(mode);
        CHECK(lazy.launch(captured.stream(), 4, other.args()).decline() == KILN_DECLINE_CAPTURE);
        CHECK(lazy.ready(4).decline() == KILN_DECLINE_COMPILING);
        CHECK(service.statistics().compiles == compiles);
        // The engine keeps its own path: here, another plan.
        REQUIRE(plan.launch(captured.stream(), 4, arrays.args()));
        // Prepared in the background meanwhile, it may be captured from then on.
        CHECK(lazy.wait());
        CHECK(lazy.launch(captured.stream(), 4, other.args()));
        captured.end();
        arrays.clear();
        other.clear();
        captured.replay();
        CHECK(arrays.is_right());
        CHECK(other.is_right());
    }
}
