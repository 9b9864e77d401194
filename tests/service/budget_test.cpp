// Kernels held to the budget of their row. The kernels are made up.
#include "runtime/service/budget.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace kiln;

namespace {

struct Budgeted {
    operators::Specialisation specialisation;
    compile::CodeObject object;

    Budgeted() {
        specialisation.kernels = {{"a", {{}, {256, 1, 1}, 0}, {.fixed = 1}},
                                  {"b", {{}, {256, 1, 1}, 0}, {.fixed = 1}}};
        object.target = "gfx950";
        for (const char* name : {"a", "b"}) {
            compile::KernelInfo kernel;
            kernel.name = name;
            kernel.vgprs = 128;
            kernel.lds_bytes = 40 * 1024;
            kernel.wavefront = 64;
            object.kernels.push_back(std::move(kernel));
        }
    }
    [[nodiscard]] std::vector<std::string> complaints() const {
        return service::over_budget(specialisation, object);
    }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Budgeted,
                  "budget: every kernel has neither scratch memory nor spills, whatever the row says") {
    CHECK(complaints().empty());
    object.kernels[1].scratch_bytes = 16;
    object.kernels[1].vgpr_spills = 3;
    object.kernels[0].sgpr_spills = 1;
    CHECK(complaints() == Lines{"a: expected no spilled scalar registers, found 1",
                                "b: expected no scratch memory, found 16",
                                "b: expected no spilled vector registers, found 3"});
}

TEST_CASE_FIXTURE(Budgeted, "budget: waves are what registers and LDS leave room for") {
    tables::Budget& budget = specialisation.bucket.budget;
    budget.waves_per_simd = 4;  // by registers 4, by LDS four groups of four waves on four SIMDs
    CHECK(complaints().empty());
    budget.waves_per_simd = 5;
    CHECK(complaints().size() == 2);
    budget.waves_per_simd = 4;
    object.kernels[0].vgprs = 129;
    CHECK(complaints() == Lines{"a: expected room for 4 waves on a SIMD, found 3"});
    object.kernels[0].vgprs = 128;
    object.kernels[1].lds_bytes += 1;
    CHECK(complaints() == Lines{"b: expected room for 4 waves on a SIMD, found 3"});
    // What a launch adds counts.
    object.kernels[1].lds_bytes -= 1;
    specialisation.kernels[1].shape.dynamic_lds_bytes = 1;
    CHECK(complaints().size() == 1);
    object.target = "sm_90a";
    CHECK(complaints().empty());
}

TEST_CASE_FIXTURE(Budgeted, "budget: LDS of a work-group has a limit") {
    specialisation.bucket.budget.lds_bytes = 40 * 1024;
    CHECK(complaints().empty());
    object.kernels[0].lds_bytes += 16;
    CHECK(complaints() == Lines{"a: expected at most 40960 bytes of LDS, found 40976"});
}
