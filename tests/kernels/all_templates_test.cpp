// Every shipped specialisation through the real compiler, and what its code must look like: this is where a
// template that no longer compiles, or compiles to something slow, is seen.
#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "instructions.hpp"
#include "runtime/compile/occupancy.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

bool is_weight_load(std::string_view text) {
    return text.starts_with("buffer_load_dwordx4") && text.ends_with(" nt");
}
bool is_vector_memory(std::string_view text) {
    return text.starts_with("buffer_") || text.starts_with("global_") || text.starts_with("flat_") ||
           text.starts_with("scratch_");
}

// Nothing waits for the vector memory between the first and the last of the loads that open a wave's stream.
void check_stream_is_not_interrupted(const Instructions& code, std::int64_t opening_loads) {
    std::int64_t loads = 0;
    for (const std::string_view text : code.texts) {
        loads += is_weight_load(text) ? 1 : 0;
        if (loads == opening_loads) {
            return;
        }
        CHECK_FALSE(contains(text, "vmcnt"));
        CHECK_FALSE(contains(text, "mfma"));
    }
    FAIL("fewer weight loads than " << opening_loads);
}

void check_small_m_gfx950(const Built& built) {
    const compile::KernelInfo kernel = built.kernel();
    const Instructions code(built.result.listing);
    const std::int64_t tiles_n = built.constant("tiles_n");
    const std::int64_t waves = built.constant("waves");
    const std::int64_t tiles_m = (built.specialisation.bucket.max_m + 15) / 16;
    const std::int64_t wave_blocks = built.field("k") / 128 / waves;

    CHECK(kernel.scratch_bytes == 0);
    CHECK(kernel.vgpr_spills == 0);
    CHECK(kernel.sgpr_spills == 0);
    CHECK(kernel.agprs == 0);
    CHECK(kernel.lds_bytes == (waves == 1 ? 0 : 1024 * waves * tiles_n * tiles_m));
    CHECK(kernel.max_threads == 64 * waves);
    CHECK(kernel.wavefront == 64);
    CHECK(compile::waves_per_simd(kernel, waves, kernel.lds_bytes) >= 4);

    std::vector<std::string_view> names;
    for (const compile::KernelArgument& argument : kernel.arguments) {
        names.push_back(argument.name);
    }
    CHECK(names == std::vector<std::string_view>{"x", "w", "w_scale", "out", "m", "ldx"});

    // Straight-line code: weights are read once, 16 bytes a lane, and multiplied by the instruction without
    // scales.
    REQUIRE(code.count(is_weight_load) == 2 * tiles_n * wave_blocks);
    CHECK(code.count([](auto text) { return text.starts_with("v_mfma_f32_16x16x128_f8f6f4"); }) ==
          tiles_n * tiles_m * wave_blocks);
    CHECK(code.count([](auto text) { return contains(text, "f8f6f4") && contains(text, "scale"); }) == 0);
    CHECK(code.count([](auto text) {
        return is_vector_memory(text) && !text.starts_with("buffer_load_dwordx4") &&
               !text.starts_with("buffer_store_dwordx2");
    }) == 0);
    CHECK(code.count([](auto text) { return text.starts_with("ds_") && !contains(text, "b128"); }) == 0);
    check_stream_is_not_interrupted(code, 2 * tiles_n * built.constant("blocks_ahead"));
}

void check_small_m_sm_90a(const Built& built) {
    // What a multiprocessor of sm_90a has for one block.
    constexpr std::int64_t kBlockRegisters = 64 * 1024;
    constexpr std::int64_t kSharedBytes = 227 * 1024;
    const operators::Specialisation& wanted = built.specialisation;
    const compile::KernelInfo kernel = built.kernel();
    const device::LaunchShape shape = wanted.kernels.front().shape_for(wanted.bucket.max_m);

    CHECK(kernel.scratch_bytes == 0);  // a stack, or registers that spill
    CHECK(kernel.vgprs * shape.block.x <= kBlockRegisters);
    CHECK(kernel.lds_bytes + shape.dynamic_lds_bytes <= kSharedBytes);
    CHECK(kernel.max_threads == shape.block.x);
    CHECK(shape.grid.x % static_cast<std::uint32_t>(built.constant("split_k")) == 0);
    CHECK(kernel.arguments.size() == wanted.source_template->kernargs().arguments.size());
}

}  // namespace

TEST_CASE(
    "all templates: every shipped specialisation for gfx950 compiles within its budget of registers, LDS "
    "and instructions") {
    const std::vector<Built> all = build(shipped_specialisations("gfx950"));
    REQUIRE(all.size() >= 3);
    for (const Built& built : all) {
        CAPTURE(built.specialisation.kernel_name);
        CHECK(built.result.log.empty());  // no warnings
        REQUIRE(built.specialisation.bucket.template_id == "linear/small_m");
        check_small_m_gfx950(built);
    }
}

TEST_CASE("all templates: every shipped specialisation for sm_90a compiles within its budget") {
    const auto wanted = shipped_specialisations("sm_90a");
    if (wanted.empty() || !can_build_for("sm_90a")) {
        return;
    }
    for (const Built& built : build(wanted)) {
        CAPTURE(built.specialisation.kernel_name);
        CHECK(built.result.log.empty());  // no warnings
        REQUIRE(built.specialisation.bucket.template_id == "linear/small_m");
        check_small_m_sm_90a(built);
    }
}

TEST_CASE("all templates: constants at the ends of their ranges compile within the budget too") {
    // One wave and no LDS; 8 tiles of N; three tiles of M; a part of a weight scale's columns; more blocks
    // than are ahead.
    std::vector<operators::Specialisation> odd;
    odd.push_back(
        specialise_linear(16, 128, 1, {{"tiles_n", 1}, {"waves", 1}, {"lane_rows", 4}, {"blocks_ahead", 1}}));
    odd.push_back(specialise_linear(1024, 256, 16,
                                    {{"tiles_n", 8}, {"waves", 2}, {"lane_rows", 16}, {"blocks_ahead", 1}}));
    odd.push_back(specialise_linear(256, 384, 48,
                                    {{"tiles_n", 2}, {"waves", 3}, {"lane_rows", 16}, {"blocks_ahead", 1}}));
    odd.push_back(specialise_linear(240, 768, 5,
                                    {{"tiles_n", 5}, {"waves", 2}, {"lane_rows", 8}, {"blocks_ahead", 1}}));
    for (const Built& built : build(std::move(odd))) {
        CAPTURE(built.specialisation.kernel_name);
        check_small_m_gfx950(built);
    }
}
