#include "runtime/sim/atomics.hpp"

#include <bit>

#include "runtime/sim/late_memory.hpp"
#include "runtime/sim/numeric/arithmetic.hpp"
#include "runtime/sim/numeric/convert.hpp"

namespace kiln::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

i64 sign(AtomicOp op, u64 x) {
    return op.bytes == 4 ? static_cast<std::int32_t>(static_cast<u32>(x)) : static_cast<i64>(x);
}

u32 add_halves(u32 x, u32 y, bool bf16) {
    u32 result = 0;
    for (unsigned half = 0; half < 2; ++half) {
        const u32 a = x >> (16 * half) & 0xffff, b = y >> (16 * half) & 0xffff;
        const float sum =
            bf16 ? numeric::to_float(numeric::bf16_to_f32(a)) + numeric::to_float(numeric::bf16_to_f32(b))
                 : numeric::to_float(numeric::f16_to_f32(a)) + numeric::to_float(numeric::f16_to_f32(b));
        const u32 bits = numeric::to_bits(sum);
        result |= ((bf16 ? numeric::f32_to_bf16(bits) : numeric::f32_to_f16(bits)) & 0xffff) << (16 * half);
    }
    return result;
}

// One lane on memory that other threads may touch.
template <class T>
u64 exchange(AtomicOp op, u64 address, u64 data, u64 compare) {
    auto* where = reinterpret_cast<T*>(address);
    T old = __atomic_load_n(where, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(where, &old, static_cast<T>(combine(op, old, data, compare)), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}

u64 read_lane(const Wave& w, unsigned row, unsigned lane, unsigned bytes) {
    return w.rows[row][lane] | (bytes == 8 ? static_cast<u64>(w.rows[row + 1][lane]) << 32 : 0);
}

}  // namespace

u64 combine(AtomicOp op, u64 old, u64 data, u64 compare) {
    switch (op.kind) {
        case AtomicKind::swap:
            return data;
        case AtomicKind::cmpswap:
            return old == compare ? data : old;
        case AtomicKind::add:
            return old + data;
        case AtomicKind::sub:
            return old - data;
        case AtomicKind::rsub:
            return data - old;
        case AtomicKind::smin:
            return sign(op, old) < sign(op, data) ? old : data;
        case AtomicKind::smax:
            return sign(op, old) > sign(op, data) ? old : data;
        case AtomicKind::umin:
            return old < data ? old : data;
        case AtomicKind::umax:
            return old > data ? old : data;
        case AtomicKind::logic_and:
            return old & data;
        case AtomicKind::logic_or:
            return old | data;
        case AtomicKind::logic_xor:
            return old ^ data;
        case AtomicKind::inc:
            return old >= data ? 0 : old + 1;
        case AtomicKind::dec:
            return old == 0 || old > data ? data : old - 1;
        case AtomicKind::add_f32: {
            // The unit flushes denormals on its way in.
            const float sum = numeric::to_float(numeric::flush_denormal(static_cast<u32>(old))) +
                              numeric::to_float(numeric::flush_denormal(static_cast<u32>(data)));
            return numeric::to_bits(sum);
        }
        case AtomicKind::min_f32:
            return numeric::v_min_f32(static_cast<u32>(old), static_cast<u32>(data));
        case AtomicKind::max_f32:
            return numeric::v_max_f32(static_cast<u32>(old), static_cast<u32>(data));
        case AtomicKind::add_f64:
            return numeric::to_bits(numeric::to_double(old) + numeric::to_double(data));
        case AtomicKind::min_f64:
            return numeric::to_double(data) < numeric::to_double(old) ? data : old;
        case AtomicKind::max_f64:
            return numeric::to_double(data) > numeric::to_double(old) ? data : old;
        case AtomicKind::pk_add_f16:
            return add_halves(static_cast<u32>(old), static_cast<u32>(data), false);
        case AtomicKind::pk_add_bf16:
            return add_halves(static_cast<u32>(old), static_cast<u32>(data), true);
    }
    return old;
}

void run_atomic(Wave& w, const Instruction& i, AtomicOp op, const Addresses& a) {
    const bool mapped = begin_access(w, i, a, op.bytes, op.bytes, AccessKind::atomic);
    const unsigned dwords = op.bytes / 4, data = i.src[3].index;
    for (unsigned n = 0; n < i.src[3].dwords; ++n) {
        require_row(w, i, data + n, a.lanes, 0xf, "the data of an atomic operation");
    }
    for_lanes(a.lanes, [&](unsigned lane) {
        const u64 value = read_lane(w, data, lane, op.bytes);
        const u64 compare = op.kind == AtomicKind::cmpswap ? read_lane(w, data + dwords, lane, op.bytes) : 0;
        LateMemory* const late = w.group->late;
        if (late != nullptr) [[unlikely]] {
            late->before_update(w, a.address[lane], op.bytes);
        }
        const u64 old = op.bytes == 8 ? exchange<u64>(op, a.address[lane], value, compare)
                                      : exchange<u32>(op, a.address[lane], value, compare);
        if (late != nullptr) [[unlikely]] {
            late->after_update(w, a.address[lane], op.bytes, &old);
        }
        if (i.returns) {
            w.rows[i.dst.index][lane] = static_cast<u32>(old);
            if (dwords == 2) {
                w.rows[i.dst.index + 1][lane] = static_cast<u32>(old >> 32);
            }
        }
    });
    for (unsigned n = 0; i.returns && n < dwords; ++n) {
        w.defined[i.dst.index + n] |= a.lanes;
    }
    if (mapped) {
        finish_atomic(w, i, a, op.bytes, op.kind == AtomicKind::swap);
    }
    const auto bytes = static_cast<u64>(std::popcount(a.lanes)) * op.bytes;
    w.global_read += bytes;
    w.global_written += bytes;
}

}  // namespace kiln::sim
