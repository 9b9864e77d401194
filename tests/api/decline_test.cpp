// Every way to decline, through the public interface. (KILN_DECLINE_COMPILER needs a compiler that can not
// build for the target: tests/service/prepare_test.cpp hands one in.)
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "kiln/kiln.hpp"
#include "runtime/operators/decline.hpp"
#include "tests/api/simulator.hpp"

using kiln::Dtype;
using kiln::Linear;
using kiln::test::Driver;

namespace {

const Linear kServed{.n = 4096, .k = 1024};

// A table of one small problem, and a feature that its target pins.
std::string table(const std::string& target) {
    return R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": ")" +
           target +
           R"(", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": 16, "template": "linear/small_m",
              "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";
}

// The decline of a problem on the configured target; its message mentions `part`.
std::int32_t declines(const Linear& problem, const std::string& part = "", kiln::Config config = {}) {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open(config);
    REQUIRE_MESSAGE(service, service.failure().message);
    kiln::Failure why;
    const kiln::Status status = service.supports(KILN_NO_DEVICE, problem, &why);
    REQUIRE(status.declined());
    CHECK(why.status == status);
    CHECK_MESSAGE(why.message.find(part) != std::string::npos, why.message);
    return status.decline();
}

Linear with(void (*change)(Linear&)) {
    Linear problem = kServed;
    change(problem);
    return problem;
}

}  // namespace

TEST_CASE("decline: shape, dimensions") {
    CHECK(declines({.n = 4112, .k = 1024}, "n=4112") == KILN_DECLINE_SHAPE);
    CHECK(declines({.n = 4100, .k = 1024}, "n=4100") == KILN_DECLINE_DIMENSIONS);
    CHECK(declines({}, "n=0") == KILN_DECLINE_DIMENSIONS);
}

TEST_CASE("decline: another processor, by name") {
    CHECK(declines(kServed, "gfx942", {.target = "gfx942"}) == KILN_DECLINE_PROCESSOR);
}

TEST_CASE("decline: a pinned feature, by name") {
    const kiln::test::Folder folder;
    const std::string shapes = folder.write("table.json", table("gfx950:xnack+"));
    CHECK(
        declines({.n = 16, .k = 128}, "xnack", {.shapes_path = shapes.c_str(), .target = "gfx950:xnack-"}) ==
        KILN_DECLINE_TARGET_FEATURE);
}

TEST_CASE("decline: switched off") {
    CHECK(declines(kServed, "linear", {.disable = "linear"}) == KILN_DECLINE_SWITCHED_OFF);
    CHECK(declines(kServed, "linear/small_m", {.disable = "router,linear/small_m"}) ==
          KILN_DECLINE_SWITCHED_OFF);
}

TEST_CASE("decline: what the activations, weights, scales and results are") {
    CHECK(declines(with([](Linear& l) { l.x_type = Dtype::fp16; }), "x_type=fp16") == KILN_DECLINE_X_TYPE);
    CHECK(declines(with([](Linear& l) { l.x_quantised = true; })) == KILN_DECLINE_X_QUANTISED);
    CHECK(declines(with([](Linear& l) { l.x_inner_stride = 4096; })) == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(declines(with([](Linear& l) { l.w_type = Dtype::e4m3fnuz; })) == KILN_DECLINE_W_TYPE);
    CHECK(declines(with([](Linear& l) { l.w_layout = kiln::WeightLayout::row_major; })) ==
          KILN_DECLINE_W_LAYOUT);
    CHECK(declines(with([](Linear& l) { l.w_scale_type = Dtype::bf16; })) == KILN_DECLINE_W_SCALE_TYPE);
    CHECK(declines(with([](Linear& l) { l.w_scale_granularity = kiln::ScaleGranularity::per_tensor; })) ==
          KILN_DECLINE_W_SCALE_SHAPE);
    CHECK(declines(with([](Linear& l) { l.w_scale_strided = true; })) == KILN_DECLINE_W_SCALE_STRIDE);
    CHECK(declines(with([](Linear& l) { l.out_type = Dtype::fp32; })) == KILN_DECLINE_OUT_TYPE);
    CHECK(declines(with([](Linear& l) { l.bias = true; })) == KILN_DECLINE_BIAS);
}

TEST_CASE("decline: named types are the same as default types") {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open();
    CHECK(service.supports(KILN_NO_DEVICE,
                           Linear{.n = 4096,
                                  .k = 1024,
                                  .x_type = Dtype::bf16,
                                  .w_type = Dtype::e4m3fn,
                                  .w_scale_type = Dtype::fp32,
                                  .out_type = Dtype::bf16,
                                  .w_layout = kiln::WeightLayout::preshuffled,
                                  .w_scale_granularity = kiln::ScaleGranularity::block_128x128}));
}

TEST_CASE("decline: a build that failed is an error once, and disabled from then on") {
    kiln::test::shared_cache();
    const kiln::test::Folder folder;
    folder.write("linear/small_m.gfx950.hip", "this is no C++;\n");
    const std::string kernels = folder.path().string();
    const auto service = kiln::Service::open({.kernel_path = kernels.c_str(), .device = "sim", .log = "off"});
    const auto failed = service.prepare(0, kServed);
    REQUIRE(!failed);
    CHECK(failed.failure().status.error_code() == KILN_ERROR_COMPILE_FAILED);
    CHECK(failed.failure().stage == KILN_STAGE_COMPILE);
    CHECK(failed.failure().message.find("linear/small_m.gfx950.hip:1") != std::string::npos);
    const auto declined = service.prepare(0, kServed);
    REQUIRE(!declined);
    CHECK(declined.failure().status.decline() == KILN_DECLINE_DISABLED);
    CHECK(service.supports(0, kServed).decline() == KILN_DECLINE_DISABLED);
    // An empty plan passes its status on.
    CHECK(declined.launch(nullptr, 1, {}).decline() == KILN_DECLINE_DISABLED);
}

TEST_CASE("decline: what a launch looks at") {
    kiln::test::shared_cache();
    const auto plan = kiln::Service::open({.device = "sim", .log = "warning"}).prepare(0, kServed);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    alignas(16) static char memory[32];  // never reached
    const auto at = [](std::size_t offset) { return static_cast<void*>(memory + offset); };
    const Linear::Args good{at(0), 1024, at(0), static_cast<float*>(at(0)), at(0)};
    const auto launch = [&](std::int64_t m, const Linear::Args& args) {
        return plan.launch(nullptr, m, args).decline();
    };
    const auto changed = [&](auto change) {
        Linear::Args args = good;
        change(args);
        return launch(1, args);
    };
    CHECK(launch(-1, good) == KILN_DECLINE_M_NEGATIVE);
    CHECK(launch(33, good) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(launch(std::int64_t{1} << 40, good) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(changed([&](auto& a) { a.x = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([&](auto& a) { a.x = at(2); }) == KILN_DECLINE_X_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.ldx = 1016; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.ldx = 1028; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.ldx = std::int64_t{1} << 40; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.w = at(8); }) == KILN_DECLINE_W_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.w_scale = reinterpret_cast<float*>(memory + 1); }) ==
          KILN_DECLINE_W_SCALE_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.out = at(4); }) == KILN_DECLINE_OUT_ALIGNMENT);

    const Driver driver;
    REQUIRE(driver.call("hipSetDevice", 1) == 0);
    CHECK(launch(1, good) == KILN_DECLINE_OTHER_DEVICE);
    REQUIRE(driver.call("hipSetDevice", 0) == 0);
}

TEST_CASE("decline: every reason has a text of its own") {
    std::set<std::string> texts;
    int last = 0;
    for (const auto& words : kiln::operators::all_declines()) {
        CHECK(words.value > last);
        last = words.value;
        CHECK(kiln_decline_text(words.value) == std::string(words.text));
        CHECK(kiln::Status(words.value).text() == std::string(words.text));
        CHECK(texts.insert(words.text).second);
    }
    CHECK(last >= KILN_DECLINE_FLAG_ALIGNMENT);
    CHECK(kiln_decline_text(0) == std::string("unknown reason"));
    CHECK(kiln_decline_text(last + 1) == std::string("unknown reason"));
}
