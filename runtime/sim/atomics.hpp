// Read-modify-write operations of global memory, buffers and LDS.
#pragma once

#include <cstdint>

#include "runtime/sim/access.hpp"

namespace kiln::sim {

enum class AtomicKind : std::uint8_t {
    swap,
    cmpswap,
    add,
    sub,
    smin,
    umin,
    smax,
    umax,
    logic_and,
    logic_or,
    logic_xor,
    inc,
    dec,
    add_f32,
    add_f64,
    min_f64,
    max_f64,
    pk_add_f16,
    pk_add_bf16,
    min_f32,
    max_f32,
    rsub
};
struct AtomicOp {
    AtomicKind kind;
    unsigned bytes;
};
constexpr std::uint32_t pack_atomic(AtomicOp op) {
    return static_cast<std::uint32_t>(op.kind) | op.bytes << 8;
}
constexpr AtomicOp unpack_atomic(std::uint32_t p) {
    return {static_cast<AtomicKind>(p & 0xff), p >> 8};
}

// What memory holds afterwards. `compare` matters to cmpswap only.
std::uint64_t combine(AtomicOp op, std::uint64_t old, std::uint64_t data, std::uint64_t compare);

// On memory, one lane after the other in lane order, each atomic against other host threads. The data are in
// src[3] (for cmpswap the new value, then the one compared with); the old value goes to dst when the
// instruction returns it.
void run_atomic(Wave& wave, const Instruction& instruction, AtomicOp op, const Addresses& addresses);

}  // namespace kiln::sim
