// Scalar operands with their undefined bits.
#pragma once

#include <cstdint>

#include "runtime/sim/undefined.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

struct ScalarValue {
    std::uint64_t value = 0;
    std::uint64_t defined = ~std::uint64_t{0};  // bits
};

// A source of one or two dwords, as Operand::dwords says.
inline ScalarValue read_scalar(const Wave& w, const Operand& o) {
    switch (o.kind) {
        case Operand::sgpr:
            if (o.dwords == 2) {
                return {w.sgpr64(o.index), w.sgpr64_defined(o.index)};
            }
            return {w.sgprs[o.index], w.sgprs_defined[o.index] | ~std::uint64_t{0xffffffff}};
        case Operand::constant:
            return {o.value, ~std::uint64_t{0}};
        case Operand::scc:
            return {w.scc, w.scc_defined ? ~std::uint64_t{0} : ~std::uint64_t{1}};
        case Operand::vccz:
            return {w.sgpr64(kVcc) == 0, ~std::uint64_t{0} - (~w.sgpr64_defined(kVcc) != 0)};
        case Operand::execz:
            return {w.exec() == 0, ~std::uint64_t{0}};
        default:
            return {};
    }
}

// The origin of undefined bits among the scalar sources.
Origin scalar_origin(const Wave& wave, const Instruction& instruction);

// A value that matters: throws when a bit of it is undefined.
inline std::uint64_t require_scalar(const Wave& w, const Instruction& i, const Operand& o, const char* what) {
    const ScalarValue v = read_scalar(w, o);
    if (~v.defined != 0) [[unlikely]] {
        fault_undefined(w, i, what, -1, scalar_origin(w, i));
    }
    return v.value;
}

// Writes a destination of one or two dwords. EXEC must not become undefined.
inline void write_scalar(Wave& w, const Instruction& i, const Operand& o, std::uint64_t value,
                         std::uint64_t defined = ~std::uint64_t{0}) {
    if (o.dwords == 2) {
        if (~defined != 0) [[unlikely]] {
            w.sgpr_origins[o.index] = w.sgpr_origins[o.index + 1] = scalar_origin(w, i);
        }
        w.set_sgpr64(o.index, value, defined);
    } else {
        if (static_cast<std::uint32_t>(~defined) != 0) [[unlikely]] {
            w.sgpr_origins[o.index] = scalar_origin(w, i);
        }
        w.sgprs[o.index] = static_cast<std::uint32_t>(value);
        w.sgprs_defined[o.index] = static_cast<std::uint32_t>(defined);
    }
    if (o.index >= kExec && ~w.sgpr64_defined(kExec) != 0) [[unlikely]] {
        fault_undefined(w, i, "EXEC", -1, w.sgpr_origins[o.index]);
    }
}

inline void write_scc(Wave& w, const Instruction& i, bool value, bool defined) {
    if (!defined) [[unlikely]] {
        w.scc_origin = scalar_origin(w, i);
    }
    w.scc = value;
    w.scc_defined = defined;
}

}  // namespace kiln::sim
