#include "tests/gpu/faults.hpp"

#include "tests/engine/engine_cuda.hpp"
#include "tests/lifetime/engine.hpp"

using namespace kiln::test;

namespace {

constexpr char kFault[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry fault() {
    .reg .b64 %address;
    mov.b64 %address, 16;
    st.global.u32 [%address], 1;
    ret;
}
)";
constexpr int kIllegalAddress = 700;

void fault() {
    void* const function = engine::load_function(kFault, "fault");
    engine::cuda().require("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U,
                           static_cast<void*>(nullptr), static_cast<void**>(nullptr),
                           static_cast<void**>(nullptr));
    const int error = engine::synchronize();
    ENGINE_REQUIRE(error == kIllegalAddress, "%d", error);
}

void require_device_failed(const kiln::Status& status, const char* call) {
    ENGINE_REQUIRE(status.error_code() == KILN_ERROR_DEVICE_FAILED, "%s: %s", call, status.text());
}

}  // namespace

int kiln::test::run_faults() {
    const auto service = open_service();
    const auto plan = prepare(service);
    const auto lazy = service.prepare(0, Linear{.n = 32, .k = 128}, PrepareMode::lazy);
    const auto arrays = make_arrays(0);
    ENGINE_REQUIRE(plan.launch(nullptr, 1, arrays));
    ENGINE_REQUIRE(engine::synchronize() == 0);

    fault();
    for (int i = 0; i < 3; ++i) {
        require_device_failed(plan.launch(nullptr, 1, arrays), "launch");
        require_device_failed(lazy.launch(nullptr, 1, arrays), "first launch");
        require_device_failed(service.prepare(0, Linear{.n = 48, .k = 128}).failure().status, "prepare");
    }
    ENGINE_REQUIRE(plan.ready(1), "%s", plan.ready(1).text());
    ENGINE_REQUIRE(service.statistics().disabled == 0);
    std::puts("end");
    return 0;
}
