#include "runtime/sim/table.hpp"

#include <unordered_map>

#include "runtime/sim/matrix.hpp"

namespace kiln::sim {
namespace {

// All of them: the decoder finds out which they are.
constexpr Opcode kMatrix = {"v_mfma", "!mfma", run_matrix, Category::mfma, 0, nullptr, 0, 0};

bool has_v3() {
#if KILN_SIM_HAS_V3
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

std::unordered_map<std::string_view, const Opcode*> make_table() {
    std::unordered_map<std::string_view, const Opcode*> table;
    const auto add = [&](std::span<const Opcode> opcodes) {
        for (const Opcode& opcode : opcodes) {
            table.emplace(opcode.name, &opcode);
        }
    };
#if KILN_SIM_HAS_V3
    if (has_v3()) {
        add(v3::integer_opcodes());
        add(v3::float_opcodes());
        add(v3::wide_opcodes());
        add(v3::packed_opcodes());
        add(v3::compare_opcodes());
    }
#endif
    if (!has_v3()) {
        add(baseline::integer_opcodes());
        add(baseline::float_opcodes());
        add(baseline::wide_opcodes());
        add(baseline::packed_opcodes());
        add(baseline::compare_opcodes());
    }
    add(portable::convert_opcodes());
    add(portable::half_opcodes());
    add(scalar_opcodes());
    add(branch_opcodes());
    add(cross_lane_opcodes());
    add(scalar_memory_opcodes());
    add(global_opcodes());
    add(buffer_opcodes());
    add(lds_opcodes());
    return table;
}

}  // namespace

const Opcode* find_opcode(std::string_view mnemonic) {
    static const std::unordered_map<std::string_view, const Opcode*> table = make_table();
    if (mnemonic.starts_with("v_mfma_")) {
        return &kMatrix;
    }
    const auto found = table.find(mnemonic);
    return found == table.end() ? nullptr : found->second;
}

}  // namespace kiln::sim
