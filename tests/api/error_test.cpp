#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "kiln/kiln.hpp"
#include "tests/api/simulator.hpp"

static_assert(std::is_trivially_copyable_v<kiln::Status> && sizeof(kiln::Status) == sizeof(kiln_status));

TEST_CASE("error: an object says status, code, stage and message") {
    kiln_config config = KILN_CONFIG_INIT;
    config.jit = "maybe";
    kiln_service* service = nullptr;
    kiln_error* error = nullptr;
    CHECK(kiln_service_open(&config, &service, &error) == -KILN_ERROR_BAD_INPUT);
    CHECK(service == nullptr);
    REQUIRE(error != nullptr);
    CHECK(kiln_error_get_status(error) == -KILN_ERROR_BAD_INPUT);
    CHECK(kiln_error_get_code(error) == KILN_ERROR_BAD_INPUT);
    CHECK(kiln_error_get_stage(error) == KILN_STAGE_CONFIGURE);
    CHECK(kiln_error_get_message(error) ==
          std::string("KILN_JIT (configuration): expected one of on, off, found \"maybe\""));
    kiln_error_free(error);
    // Without a place for it there is no object.
    CHECK(kiln_service_open(&config, &service, nullptr) == -KILN_ERROR_BAD_INPUT);
}

TEST_CASE("error: a null object has nothing to say") {
    CHECK(kiln_error_get_status(nullptr) == KILN_OK);
    CHECK(kiln_error_get_code(nullptr) == 0);
    CHECK(kiln_error_get_stage(nullptr) == 0);
    CHECK(std::strlen(kiln_error_get_message(nullptr)) == 0);
}

TEST_CASE("error: a fault in a table names file, line and pointer") {
    const kiln::test::Folder folder;
    const std::string path =
        folder.write("mine.json", "{\"schema\": 1,\n \"rows\": [{\"operator\": \"linear\"}]}\n");
    const auto service = kiln::Service::open({.shapes_path = path.c_str()});
    REQUIRE(!service);
    CHECK(service.failure().stage == KILN_STAGE_TABLE);
    CHECK(service.failure().message.find("mine.json:2:") != std::string::npos);
    CHECK(service.failure().message.find("/rows/0") != std::string::npos);
}

TEST_CASE("error: what could not be opened hands its failure on to everything made from it") {
    const auto service = kiln::Service::open({.target = "not a target"});
    REQUIRE(!service);
    const auto plan = service.prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    REQUIRE(!plan);
    CHECK(plan.failure().message == service.failure().message);
    CHECK(plan.launch(nullptr, 1, {}) == service.failure().status);
    CHECK(plan.launch(nullptr, 1, {}).error_code() == KILN_ERROR_BAD_INPUT);
    CHECK(plan.max_m() == 0);
    CHECK(plan.kernel_name(1) == nullptr);
    kiln::Failure why;
    CHECK(service.supports(0, kiln::Linear{}, &why) == service.failure().status);
    CHECK(why.message == service.failure().message);
    CHECK(service.statistics().compiles == 0);
}

TEST_CASE("error: missing places are invalid arguments") {
    CHECK(kiln_service_open(nullptr, nullptr, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_linear_supports(nullptr, 0, nullptr, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_linear_prepare(nullptr, 0, nullptr, nullptr, nullptr, nullptr) ==
          -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_device_count(nullptr, nullptr, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_service_statistics(nullptr, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("versioned structs: shorter ones are filled up, longer ones must be zero in what is not known") {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open();
    REQUIRE_MESSAGE(service, service.failure().message);
    struct Longer {
        kiln_linear known;
        std::int64_t unknown;
    } longer{KILN_LINEAR_INIT, 0};
    longer.known.struct_size = sizeof(Longer);
    longer.known.n = 4096;
    longer.known.k = 1024;
    const auto supports = [&] {
        return kiln_linear_supports(service.handle(), KILN_NO_DEVICE, &longer.known, nullptr);
    };
    CHECK(supports() == KILN_OK);
    longer.unknown = 1;
    CHECK(supports() == -KILN_ERROR_INVALID_ARGUMENT);
    // An old caller's struct ended after k.
    longer.known.struct_size = offsetof(kiln_linear, x_type);
    longer.known.bias = 1;
    CHECK(supports() == KILN_OK);
    for (const std::size_t nonsense : {std::size_t{0}, offsetof(kiln_linear, k) + 4}) {  // 4: within k
        longer.known.struct_size = nonsense;
        CHECK(supports() == -KILN_ERROR_INVALID_ARGUMENT);
    }

    kiln_statistics statistics = KILN_STATISTICS_INIT;
    statistics.struct_size = offsetof(kiln_statistics, compiles);
    statistics.compiles = 77;
    CHECK(kiln_service_statistics(service.handle(), &statistics) == KILN_OK);
    CHECK(statistics.compiles == 77);
    for (const std::size_t forgotten : {std::size_t{0}, sizeof(std::size_t)}) {
        statistics.struct_size = forgotten;
        CHECK(kiln_service_statistics(service.handle(), &statistics) == -KILN_ERROR_INVALID_ARGUMENT);
        kiln_device_info info{};
        info.struct_size = forgotten;
        CHECK(kiln_device_get_info(service.handle(), 0, &info, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    }
}

TEST_CASE("what was moved from is empty, and no call on it succeeds") {
    kiln::test::shared_cache();
    auto service = kiln::Service::open();
    REQUIRE_MESSAGE(service, service.failure().message);
    const auto moved_to = std::move(service);
    REQUIRE(moved_to);
    std::int32_t count = 0;
    kiln_device_info info{};
    kiln::Failure why;
    const kiln::Status invalid(-KILN_ERROR_INVALID_ARGUMENT);
    CHECK(service.supports(KILN_NO_DEVICE, kiln::Linear{.n = 4096, .k = 1024}, &why) == invalid);
    CHECK(why.status == invalid);
    CHECK(service.device_count(count) == invalid);
    CHECK(service.device_info(0, info) == invalid);
    const auto plan = service.prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    CHECK_FALSE(plan);
    CHECK(plan.launch(nullptr, 1, {}) == invalid);
    const kiln::Plan<kiln::Linear> none(nullptr);
    CHECK(none.launch(nullptr, 1, {}) == invalid);
}

TEST_CASE("enum values that do not exist are invalid arguments, not declines") {
    kiln::test::shared_cache();
    const auto service = kiln::Service::open();
    const kiln::Status status =
        service.supports(KILN_NO_DEVICE, kiln::Linear{.n = 4096, .k = 1024, .x_type = kiln::Dtype{99}});
    CHECK(status.error_code() == KILN_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("the version of the library is that of its header") {
    const std::string expected = std::to_string(KILN_VERSION_MAJOR) + "." +
                                 std::to_string(KILN_VERSION_MINOR) + "." +
                                 std::to_string(KILN_VERSION_PATCH);
    CHECK(kiln_version() == expected);
    CHECK(kiln_status_text(-KILN_ERROR_COMPILE_FAILED) == std::string("the compiler refused a template"));
    CHECK(kiln_status_text(-999) == std::string("unknown error"));
    CHECK(kiln_status_text(0) == std::string("done"));
}
