// A service over one small problem with three buckets, a device whose driver is a double, and the real
// compiler behind a gate: for tests of when buckets are obtained.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/service/device_double.hpp"
#include "tests/service/gated_compiler.hpp"
#include "tests/service/launch_linear.hpp"
#include "tests/service/scratch.hpp"

namespace kiln::test {

using service::Overrides;
using service::Parts;
using service::Plan;
using service::PrepareMode;
using service::Service;
using service::WarmFilter;
using service::WarmItem;
using service::WarmSummary;

inline constexpr std::chrono::milliseconds kForever(-1);

// One small problem with three buckets: M up to 4, 8 and 16.
inline std::string three_buckets() {
    std::string buckets;
    for (const char* edge : {"4", "8", "16"}) {
        buckets +=
            std::string(buckets.empty() ? "" : ", ") + R"({"max_m": )" + edge +
            R"(, "template": "linear/small_m", "constants": {"tiles_n": 1, "waves": 1, "lane_rows": )" +
            edge + R"(, "blocks_ahead": 1}})";
    }
    return R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": "gfx950",
               "provenance": {"kind": "untuned"}, "buckets": [)" +
           buckets + "]}]}";
}

struct Modes {
    Scratch scratch;
    Overrides overrides = overrides_in(scratch);
    std::shared_ptr<DeviceDouble> device = std::make_shared<DeviceDouble>();
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
    Parts parts;
    std::unique_ptr<Service> service;
    alignas(16) char memory[64] = {};
    const kiln_linear_args args{memory, 128, memory, reinterpret_cast<float*>(memory), memory};

    Modes() {
        overrides.shapes_path = scratch.write("table.json", three_buckets()).string();
        parts.open_devices = [this] {
            return kiln::Result<std::vector<std::shared_ptr<kiln::device::Device>>>({device});
        };
        parts.make_compiler = [its_gate = gate]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
            return std::make_unique<GatedCompiler>(its_gate);
        };
        reopen();
    }
    void reopen() {
        service.reset();
        service = open(overrides, parts);
    }
    std::shared_ptr<const Plan> prepare(PrepareMode mode) {
        auto plan = service->prepare(0, operators::linear(), small_problem(), mode);
        REQUIRE_MESSAGE(plan, plan.error().error.message);
        return *std::move(plan);
    }
    kiln_status launch(const Plan& plan, std::int64_t m) const {
        return launch_linear(plan, nullptr, m, args);
    }
    // A service of its own fills the cache, and the counters of `service` stay at nothing.
    void warm() {
        auto other = open(overrides, parts);
        std::vector<kiln::Error> errors;
        WarmFilter filter;
        filter.problem = small_problem();
        const WarmSummary summary = other->warm(other->matching(filter, errors));
        for (const WarmItem& item : summary.items) {
            CHECK_MESSAGE(!item.error, item.error->message);
        }
        CHECK(summary.compiled == 3);
    }
};

}  // namespace kiln::test
