// Global and flat loads, stores and atomics. Scalar base, vector offset, immediate; flat addresses may lie in
// the LDS aperture, which no kernel of hipRTC's default address spaces needs: they are refused as outside of
// every allocation.
#include <cstring>

#include "runtime/sim/access.hpp"
#include "runtime/sim/atomics.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;

// src[0] is the vector address or offset, src[1] the scalar base or off, src[3] the data to store.
void make_addresses(Wave& w, const Instruction& i, Addresses& a) {
    a.lanes = w.exec();
    const Operand& vector = i.src[0];
    const auto immediate = static_cast<u64>(static_cast<std::int64_t>(i.offset));
    u64 base = immediate;
    if (i.src[1].kind == Operand::sgpr) {
        base += require_scalar(w, i, i.src[1], "the address");
    }
    for (unsigned n = 0; vector.kind == Operand::vgpr && n < vector.dwords; ++n) {
        require_row(w, i, vector.index + n, a.lanes, 0xf, "the address");
    }
    if (vector.kind != Operand::vgpr) {
        for (u64& address : a.address) {
            address = base;
        }
        return;
    }
    const std::uint32_t* low = w.rows[vector.index];
    if (vector.dwords == 1) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            a.address[lane] = base + low[lane];
        }
        return;
    }
    const std::uint32_t* high = w.rows[vector.index + 1];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        a.address[lane] = base + (low[lane] | static_cast<u64>(high[lane]) << 32);
    }
}

void load(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    Addresses a;
    make_addresses(w, i, a);
    load_lanes(w, i, i.dst, a, shape);
    w.global_read += static_cast<u64>(std::popcount(a.lanes)) * shape.bytes;
}

void store(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    Addresses a;
    make_addresses(w, i, a);
    store_lanes(w, i, i.src[3], a, shape);
    w.global_written += static_cast<u64>(std::popcount(a.lanes)) * shape.bytes;
}

void load_to_lds(Wave& w, const Instruction& i) {
    Addresses a;
    make_addresses(w, i, a);
    load_lanes_to_lds(w, i, a, a.lanes, unpack_shape(i.opcode->parameter));
}

void atomic(Wave& w, const Instruction& i) {
    const AtomicOp op = unpack_atomic(i.opcode->parameter);
    Addresses a;
    make_addresses(w, i, a);
    run_atomic(w, i, op, a);
}

constexpr Opcode op(std::string_view name, std::string_view form, Handler handler, std::uint32_t parameter) {
    return {name, form, handler, Category::vmem, 0, nullptr, 0, parameter};
}

#define KILN_BOTH(name, handler, ...)                                           \
    op("global_" name, "!global", handler, pack_shape(DataShape{__VA_ARGS__})), \
        op("flat_" name, "!flat", handler, pack_shape(DataShape{__VA_ARGS__}))
#define KILN_ATOMIC(name, kind, bytes)                                                    \
    op("global_atomic_" name, "!global", atomic, pack_atomic({AtomicKind::kind, bytes})), \
        op("flat_atomic_" name, "!flat", atomic, pack_atomic({AtomicKind::kind, bytes}))

constexpr Opcode kOpcodes[] = {
    KILN_BOTH("load_dword", load, 4),
    KILN_BOTH("load_dwordx2", load, 8),
    KILN_BOTH("load_dwordx3", load, 12),
    KILN_BOTH("load_dwordx4", load, 16),
    KILN_BOTH("load_ubyte", load, 1),
    KILN_BOTH("load_sbyte", load, 1, true),
    KILN_BOTH("load_ushort", load, 2),
    KILN_BOTH("load_sshort", load, 2, true),
    KILN_BOTH("load_ubyte_d16", load, 1, false, true),
    KILN_BOTH("load_ubyte_d16_hi", load, 1, false, true, true),
    KILN_BOTH("load_sbyte_d16", load, 1, true, true),
    KILN_BOTH("load_sbyte_d16_hi", load, 1, true, true, true),
    KILN_BOTH("load_short_d16", load, 2, false, true),
    KILN_BOTH("load_short_d16_hi", load, 2, false, true, true),
    KILN_BOTH("store_dword", store, 4),
    KILN_BOTH("store_dwordx2", store, 8),
    KILN_BOTH("store_dwordx3", store, 12),
    KILN_BOTH("store_dwordx4", store, 16),
    KILN_BOTH("store_byte", store, 1),
    KILN_BOTH("store_byte_d16_hi", store, 1, false, false, true),
    KILN_BOTH("store_short", store, 2),
    KILN_BOTH("store_short_d16_hi", store, 2, false, false, true),
    op("global_load_lds_dword", "!global_lds", load_to_lds, pack_shape({4})),
    op("global_load_lds_dwordx3", "!global_lds", load_to_lds, pack_shape({12})),
    op("global_load_lds_dwordx4", "!global_lds", load_to_lds, pack_shape({16})),
    KILN_ATOMIC("swap", swap, 4),
    KILN_ATOMIC("cmpswap", cmpswap, 4),
    KILN_ATOMIC("add", add, 4),
    KILN_ATOMIC("sub", sub, 4),
    KILN_ATOMIC("smin", smin, 4),
    KILN_ATOMIC("umin", umin, 4),
    KILN_ATOMIC("smax", smax, 4),
    KILN_ATOMIC("umax", umax, 4),
    KILN_ATOMIC("and", logic_and, 4),
    KILN_ATOMIC("or", logic_or, 4),
    KILN_ATOMIC("xor", logic_xor, 4),
    KILN_ATOMIC("inc", inc, 4),
    KILN_ATOMIC("dec", dec, 4),
    KILN_ATOMIC("swap_x2", swap, 8),
    KILN_ATOMIC("cmpswap_x2", cmpswap, 8),
    KILN_ATOMIC("add_x2", add, 8),
    KILN_ATOMIC("sub_x2", sub, 8),
    KILN_ATOMIC("smin_x2", smin, 8),
    KILN_ATOMIC("umin_x2", umin, 8),
    KILN_ATOMIC("smax_x2", smax, 8),
    KILN_ATOMIC("umax_x2", umax, 8),
    KILN_ATOMIC("and_x2", logic_and, 8),
    KILN_ATOMIC("or_x2", logic_or, 8),
    KILN_ATOMIC("xor_x2", logic_xor, 8),
    KILN_ATOMIC("inc_x2", inc, 8),
    KILN_ATOMIC("dec_x2", dec, 8),
    KILN_ATOMIC("add_f32", add_f32, 4),
    KILN_ATOMIC("add_f64", add_f64, 8),
    KILN_ATOMIC("min_f64", min_f64, 8),
    KILN_ATOMIC("max_f64", max_f64, 8),
    KILN_ATOMIC("pk_add_f16", pk_add_f16, 4),
    KILN_ATOMIC("pk_add_bf16", pk_add_bf16, 4),
    op("buffer_inv", "!cache", acquire, 0),
    op("buffer_wbl2", "!cache", release, 0),
};

}  // namespace

std::span<const Opcode> global_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
