// Specialisations of fused_moe through the real compiler, and what their code must look like.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
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

// What holds for every kernel.
void check_lean(const compile::KernelInfo& kernel, const Instructions& code) {
    CHECK(kernel.scratch_bytes == 0);
    CHECK(kernel.vgpr_spills == 0);
    CHECK(kernel.sgpr_spills == 0);
    CHECK(kernel.agprs == 0);
    CHECK(kernel.wavefront == 64);
    CHECK(kernel.lds_bytes <= 160 * 1024);
    CHECK(code.count([](auto text) { return contains(text, "accvgpr"); }) == 0);
    CHECK(code.count([](auto text) { return starts_with(text, "flat_"); }) == 0);
}

void check_small_m(const Built& built, std::string_view part, std::int64_t waves) {
    CAPTURE(std::string(part));
    const compile::KernelInfo kernel = built.kernel(part);
    const Instructions code(built.result.listing, kernel.name);
    check_lean(kernel, code);
    CHECK(kernel.max_threads == 64 * waves);
    CHECK(compile::waves_per_simd(kernel, waves, kernel.lds_bytes) >= 2);
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
        check_small_m(built, "gate_up", built.constant("gate_up_waves"));
        check_small_m(built, "down", built.constant("down_waves"));
    }
}

bool is_small_m(const operators::Specialisation& wanted) {
    return wanted.bucket.template_id == "fused_moe/small_m";
}

void check_stages(std::vector<operators::Specialisation> wanted) {
    for (const Built& built : build(std::move(wanted))) {
        CAPTURE(built.specialisation.kernel_name);
        CHECK(built.result.log.empty());
        const auto object = compile::read_code_object(built.result.code_object);
        REQUIRE(object);
        CHECK(service::over_budget(built.specialisation, *object).empty());
        for (const compile::KernelInfo& kernel : object->kernels) {
            CAPTURE(kernel.name);
            const Instructions code(built.result.listing, kernel.name);
            check_lean(kernel, code);
            // Both products are the scaled fp4 one, and all their weights come 16 bytes a lane.
            const bool multiplies = built.specialisation.bucket.template_id.ends_with("_g1") ||
                                    built.specialisation.bucket.template_id.ends_with("_g2");
            const std::int64_t products = code.count([](auto text) { return contains(text, "mfma"); });
            CHECK((products > 0) == multiplies);
            CHECK(code.count([](auto text) {
                return starts_with(text, "v_mfma_scale_f32_16x16x128_f8f6f4");
            }) == products);
        }
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

TEST_CASE("fused_moe compile: each product of mxmoe that a row names, once for each height of blocks") {
    std::set<std::pair<std::string, std::int64_t>> seen;
    std::vector<operators::Specialisation> wanted;
    for (operators::Specialisation& stage : shipped_specialisations("gfx950", "fused_moe")) {
        const auto block_m = stage.bucket.constants.find("block_m");
        if (block_m != stage.bucket.constants.end() &&
            seen.emplace(stage.bucket.template_id, block_m->second).second) {
            wanted.push_back(std::move(stage));
        }
    }
    CHECK(wanted.size() == 6);  // 16, 32 and 128 rows
    check_stages(std::move(wanted));
}

// Minutes of compiling: a test of its own runs these.
TEST_CASE("fused_moe shipped: every bucket of every row keeps to its registers, LDS and instructions" *
          doctest::skip()) {
    std::vector<operators::Specialisation> all = shipped_specialisations("gfx950", "fused_moe");
    std::erase_if(all, [](const auto& wanted) { return !is_small_m(wanted); });
    REQUIRE(all.size() > 100);
    check(std::move(all));
}

TEST_CASE("fused_moe shipped: every stage of every bucket of mxmoe keeps to its registers and LDS" *
          doctest::skip()) {
    std::vector<operators::Specialisation> all = shipped_specialisations("gfx950", "fused_moe");
    std::set<std::string> seen;
    std::erase_if(all, [&](const auto& wanted) {
        return is_small_m(wanted) || !seen.insert(wanted.kernel_name).second;
    });
    REQUIRE(all.size() > 300);
    check_stages(std::move(all));
}
