// What a trial finds out when a device does not do the same thing every time: the simulator, with something
// between it and the service that tampers with its memory.
#include "runtime/service/trial.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::ByteView;
using kiln::Result;
using kiln::device::Device;
using kiln::operators::linear;

namespace {

// Passes everything on, and does what the test says around it.
class Tampering final : public Device {
  public:
    explicit Tampering(std::shared_ptr<Device> device) : device_(std::move(device)), info_(device_->info()) {}

    bool captures = true;
    bool replays = true;
    // After a replay, on the array that was allocated last: the result with its margins.
    std::function<void(std::vector<std::byte>&)> after_replay;
    // On what the host gets in the nth copy.
    int tampered_copy = 0;
    // Of the next launch that is waited for, in the workspace that it has: the first of its counters.
    bool leaves_a_count = false;

    void pretend_real() { info_.simulated = false; }

    const kiln::device::DeviceInfo& info() const override { return info_; }
    Result<std::unique_ptr<kiln::device::Module>> load(ByteView code_object) override {
        return device_->load(code_object);
    }
    int launch(kiln::device::Function function, const kiln::device::LaunchShape& shape,
               kiln::device::Stream stream, void* kernargs, std::size_t bytes) const noexcept override {
        return device_->launch(function, shape, stream, kernargs, bytes);
    }
    std::string describe(int error) const override { return device_->describe(error); }
    bool is_earlier_failure(int error) const noexcept override { return device_->is_earlier_failure(error); }
    int current_ordinal() const noexcept override { return device_->current_ordinal(); }
    Result<void> make_current() override { return device_->make_current(); }
    Result<void*> allocate(std::size_t bytes) override {
        auto pointer = device_->allocate(bytes);
        if (pointer) {
            last_ = {static_cast<std::byte*>(*pointer), bytes};
        }
        return pointer;
    }
    Result<void> free(void* pointer) override { return device_->free(pointer); }
    Result<void> copy_to_device(void* to, ByteView from, kiln::device::Stream stream) override {
        return device_->copy_to_device(to, from, stream);
    }
    Result<void> copy_to_host(std::span<std::byte> to, const void* from,
                              kiln::device::Stream stream) override {
        auto copied = device_->copy_to_host(to, from, stream);
        if (++copies_ == tampered_copy) {
            to.front() ^= std::byte{1};
        }
        return copied;
    }
    Result<void> fill(void* to, std::byte value, std::size_t bytes, kiln::device::Stream stream) override {
        if (value == std::byte{0}) {
            counters_ = to;  // nothing else of a trial is filled with zeros
        }
        return device_->fill(to, value, bytes, stream);
    }
    Result<kiln::device::Stream> create_stream() override { return device_->create_stream(); }
    Result<void> destroy_stream(kiln::device::Stream stream) override {
        return device_->destroy_stream(stream);
    }
    Result<void> synchronize(kiln::device::Stream stream) override {
        auto waited = device_->synchronize(stream);
        return waited && std::exchange(leaves_a_count, false)
                   ? device_->fill(counters_, std::byte{1}, 4, stream)
                   : waited;
    }
    Result<kiln::device::Event> create_event() override { return device_->create_event(); }
    Result<void> destroy_event(kiln::device::Event event) override { return device_->destroy_event(event); }
    Result<void> record(kiln::device::Event event, kiln::device::Stream stream) override {
        return device_->record(event, stream);
    }
    Result<float> elapsed_milliseconds(kiln::device::Event start, kiln::device::Event stop) override {
        return device_->elapsed_milliseconds(start, stop);
    }
    Result<bool> is_capturing(kiln::device::Stream stream) const override {
        return device_->is_capturing(stream);
    }
    Result<void> begin_capture(kiln::device::Stream stream) override {
        if (!captures) {
            return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::device, "lacks begin_capture");
        }
        return device_->begin_capture(stream);
    }
    Result<Graph> end_capture(kiln::device::Stream stream) override { return device_->end_capture(stream); }
    Result<void> replay(Graph graph, kiln::device::Stream stream) override {
        auto replayed = replays ? device_->replay(graph, stream) : Result<void>();
        if (after_replay) {
            std::vector<std::byte> bytes(last_.size());
            REQUIRE(device_->copy_to_host(bytes, last_.data(), stream));
            after_replay(bytes);
            REQUIRE(device_->copy_to_device(last_.data(), bytes, stream));
        }
        return replayed;
    }
    Result<void> destroy_graph(Graph graph) override { return device_->destroy_graph(graph); }
    Result<kiln::device::ExecutionCounts> take_counts() override { return device_->take_counts(); }
    std::vector<std::string>* orders_set = nullptr;
    Result<void> set_rules(const kiln::device::SimulationRules& rules) override {
        if (orders_set != nullptr) {
            orders_set->push_back(rules.order + " " + rules.scopes);
        }
        return device_->set_rules(rules);
    }

  private:
    const std::shared_ptr<Device> device_;
    kiln::device::DeviceInfo info_;
    std::span<std::byte> last_;
    int copies_ = 0;
    void* counters_ = nullptr;
};

// What is tried: a problem with a table that serves it.
struct Subject {
    const kiln::operators::Operator& op;
    kiln::operators::Problem problem;
    std::string table;
};
Subject small_linear() {
    return {linear(), kiln::test::small_problem(), kiln::test::small_table()};
}
// It has a workspace.
Subject small_router() {
    const auto& op = kiln::operators::router();
    const auto problem = kiln::operators::complete(
        op, {{"hidden", std::int64_t{64}}, {"experts", std::int64_t{8}}, {"top_k", std::int64_t{2}}});
    REQUIRE(problem);
    return {op, *problem, R"({"schema": 1, "rows": [
{"operator": "router", "problem": {"hidden": 64, "experts": 8, "top_k": 2}, "target": "gfx950",
 "buckets": [{"max_m": 4, "template": "router/one_launch", "constants": {"rows": 1, "waves": 1}}],
 "provenance": {"kind": "untuned"}}]})"};
}

// One case, M = 3 of a bucket for more, on a simulator that `prepare` has set up.
struct Tried {
    TrialResult result;
    bool passed() const { return result.passed; }
    bool says(const std::string& part) const { return result.remark.find(part) != std::string::npos; }
};
Tried try_on(const std::function<void(Tampering&)>& prepare,
             const std::vector<kiln::device::SimulationRules>& rules = {},
             const Subject& subject = small_linear()) {
    // The code object is compiled once.
    static const kiln::test::Scratch* const scratch = new kiln::test::Scratch;
    setenv("KILN_CACHE_DIR", scratch->cache().c_str(), 1);  // the look-alike's listings are there too
    auto overrides = kiln::test::overrides_in(*scratch);
    overrides.device = "sim";
    overrides.shapes_path = scratch->write("table.json", subject.table).string();
    auto settings = read_settings(overrides, process_environment());
    REQUIRE_MESSAGE(settings, settings.error().message);
    settings->driver.sim_library = KILN_SIM_LIBRARY;
    Parts parts;
    parts.open_devices = [&, driver = settings->driver]() -> Result<std::vector<std::shared_ptr<Device>>> {
        auto devices = kiln::device::open_devices(driver);
        REQUIRE_MESSAGE(devices, devices.error().message);
        const auto tampering = std::make_shared<Tampering>(devices->front());
        prepare(*tampering);
        return std::vector<std::shared_ptr<Device>>{tampering};
    };
    auto service = Service::open(*std::move(settings), std::move(parts));
    REQUIRE_MESSAGE(service, service.error().message);
    const auto plan = (*service)->prepare(0, subject.op, subject.problem);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    const auto trial = Trial::create(*plan, (*plan)->max_m(), 7);
    REQUIRE_MESSAGE(trial, trial.error().message);
    auto result = (*trial)->run(3, rules);
    REQUIRE_MESSAGE(result, result.error().message);
    return {*std::move(result)};
}

}  // namespace

TEST_CASE("trial: a device that does as it is told passes, from a graph too") {
    const Tried tried = try_on([](Tampering&) {});
    CHECK_MESSAGE(tried.passed(), tried.result.remark);
    CHECK(tried.result.replayed);
    CHECK(tried.result.counts);
    CHECK(!tried.result.microseconds);

    const Tried timed = try_on([](Tampering& device) { device.pretend_real(); });
    CHECK_MESSAGE(timed.passed(), timed.result.remark);
    CHECK(timed.result.replayed);
    CHECK(!timed.result.counts);
    CHECK(timed.result.microseconds);
}

TEST_CASE("trial: a replay with other bits, or with none, fails") {
    const Tried other = try_on([](Tampering& device) {
        device.after_replay = [](std::vector<std::byte>& bytes) { bytes[bytes.size() / 2] ^= std::byte{1}; };
    });
    CHECK(!other.passed());
    CHECK_MESSAGE(other.says("a replay from a graph differs from the first launch in"), other.result.remark);

    const Tried none = try_on([](Tampering& device) { device.replays = false; });
    CHECK(!none.passed());
    CHECK_MESSAGE(none.says("in 48 of 48"), none.result.remark);
}

TEST_CASE("trial: a byte before or behind the result fails") {
    const Tried before = try_on([](Tampering& device) {
        device.after_replay = [](std::vector<std::byte>& bytes) { bytes.front() = std::byte{0}; };
    });
    CHECK(!before.passed());
    CHECK_MESSAGE(before.says("writes before out"), before.result.remark);
    const Tried behind = try_on([](Tampering& device) {
        device.after_replay = [](std::vector<std::byte>& bytes) { bytes.back() = std::byte{0}; };
    });
    CHECK(!behind.passed());
    CHECK_MESSAGE(behind.says("writes behind out"), behind.result.remark);
}

TEST_CASE("trial: a later launch with other bits fails") {
    const Tried tried = try_on([](Tampering& device) {
        device.pretend_real();
        device.tampered_copy = 2;
    });
    CHECK(!tried.passed());
    CHECK_MESSAGE(tried.says("a later launch differs from the first launch in 1 of 48"), tried.result.remark);
}

TEST_CASE("trial: a driver that does not capture has no replay, and passes") {
    const Tried tried = try_on([](Tampering& device) { device.captures = false; });
    CHECK_MESSAGE(tried.passed(), tried.result.remark);
    CHECK(!tried.result.replayed);
}

TEST_CASE("trial: once more under each of the rules of the simulator that are given") {
    const auto rules = kiln::service::all_rules(5);
    std::vector<std::string> set, expected;
    for (const char* scopes : {" early", " late"}) {
        for (const char* order :
             {"ascending", "descending", "shuffle:5", "interleave:5", "interleave:6", "interleave:7"}) {
            expected.push_back(std::string(order) + scopes);
        }
    }
    expected.push_back("ascending early");
    const Tried tried = try_on([&](Tampering& device) { device.orders_set = &set; }, rules);
    CHECK_MESSAGE(tried.passed(), tried.result.remark);
    CHECK(set == expected);

    // Copies to the host: of the first launch, of the replay, of one launch for each rule.
    const Tried other = try_on([](Tampering& device) { device.tampered_copy = 4; }, rules);
    CHECK(!other.passed());
    CHECK_MESSAGE(
        other.says(
            "a launch with order descending and scopes early differs from the first launch in 1 of 48"),
        other.result.remark);
}

TEST_CASE("trial: a launch that leaves its counters other than zero fails") {
    const Tried right = try_on([](Tampering&) {}, {}, small_router());
    CHECK_MESSAGE(right.passed(), right.result.remark);
    CHECK(right.result.replayed);
    const Tried wrong = try_on([](Tampering& device) { device.leaves_a_count = true; }, {}, small_router());
    CHECK(!wrong.passed());
    CHECK_MESSAGE(wrong.says("leaves the workspace's counters other than zero at byte 0"),
                  wrong.result.remark);
}
