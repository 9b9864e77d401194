// Specialisations of fused_moe/small_m through the real compiler, and what their code must look like.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fused_moe_device.hpp"
#include "instructions.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/occupancy.hpp"
#include "runtime/service/budget.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

bool starts_with(std::string_view text, std::string_view part) {
    return text.starts_with(part);
}

void check_kernel(const Built& built, std::string_view part, std::int64_t waves) {
    CAPTURE(std::string(part));
    const compile::KernelInfo kernel = built.kernel(part);
    CHECK(kernel.scratch_bytes == 0);
    CHECK(kernel.vgpr_spills == 0);
    CHECK(kernel.sgpr_spills == 0);
    CHECK(kernel.agprs == 0);
    CHECK(kernel.max_threads == 64 * waves);
    CHECK(kernel.wavefront == 64);
    CHECK(kernel.lds_bytes <= 160 * 1024);
    CHECK(compile::waves_per_simd(kernel, waves, kernel.lds_bytes) >= 2);

    const Instructions code(built.result.listing, kernel.name);
    CHECK(code.count([](auto text) { return contains(text, "accvgpr"); }) == 0);
    CHECK(code.count([](auto text) { return starts_with(text, "flat_"); }) == 0);
    // Weights come 16 bytes a lane, and past the caches; nothing else does.
    CHECK(code.count([](auto text) {
        return text.ends_with(" nt") && !starts_with(text, "buffer_load_dwordx4");
    }) == 0);
    CHECK(code.count([](auto text) { return text.ends_with(" nt"); }) > 0);
    // Unpacked by the conversions, multiplied by the bf16 instruction: four conversions for each operand of
    // 32 k, which all tiles of tokens share.
    const std::int64_t products =
        code.count([](auto text) { return starts_with(text, "v_mfma_f32_16x16x32_bf16"); });
    const std::int64_t conversions =
        code.count([](auto text) { return starts_with(text, "v_cvt_scalef32_pk_bf16_fp"); });
    CHECK(products > 0);
    CHECK(conversions <= 4 * products);
    CHECK(code.count([](auto text) { return contains(text, "mfma"); }) == products);
}

void check(std::vector<operators::Specialisation> wanted) {
    for (const Built& built : build(std::move(wanted))) {
        CAPTURE(built.specialisation.kernel_name);
        CHECK(built.result.log.empty());  // no warnings
        const auto object = compile::read_code_object(built.result.code_object);
        REQUIRE(object);
        CHECK(service::over_budget(built.specialisation, *object).empty());
        // What rows promise of LDS is counted by hand, up to what alignment adds.
        CHECK(std::max(built.kernel("gate_up").lds_bytes, built.kernel("down").lds_bytes) + 256 >=
              built.specialisation.bucket.budget.lds_bytes.value_or(0));
        check_kernel(built, "gate_up", built.constant("gate_up_waves"));
        check_kernel(built, "down", built.constant("down_waves"));
    }
}

}  // namespace

TEST_CASE("fused_moe compile: the problems of Qwen3.5-397B keep to their registers, LDS and instructions") {
    for (const operators::FusedMoeProblem& problem : {operators::FusedMoeProblem{4096, 256, 513, 11, false},
                                                      {4096, 512, 513, 11, false},
                                                      {4096, 256, 513, 11, true},
                                                      {4096, 128, 513, 11, true}}) {
        check(derived_fused_moe(problem));
    }
}

// Minutes of compiling: a test of its own runs it.
TEST_CASE("fused_moe shipped: every bucket of every row keeps to its registers, LDS and instructions" *
          doctest::skip()) {
    std::vector<operators::Specialisation> all = shipped_specialisations("gfx950", "fused_moe");
    REQUIRE(all.size() > 100);
    check(std::move(all));
}
