// Loads, stores and atomics through a buffer descriptor, with its range check.
#include "runtime/sim/access.hpp"
#include "runtime/sim/atomics.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

#include <cstring>

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

struct Buffer {
    u64 base = 0;
    u32 num_records = 0;
};

// src[1] is the descriptor. Only raw buffers are known: no stride, no swizzle.
Buffer read_buffer(const Wave& w, const Instruction& i) {
    const unsigned first = i.src[1].index;
    for (unsigned n = 0; n < 4; ++n) {
        if (w.sgprs_defined[first + n] != ~0u) {
            fault_undefined(w, i, "the buffer descriptor", -1, origin_of_sgpr(w, i, first + n));
        }
    }
    const u32 word1 = w.sgprs[first + 1], word3 = w.sgprs[first + 3];
    if (word1 >> 16 != 0 || (word3 >> 23 & 1) != 0) {
        fault(-1, "the buffer descriptor has a stride or a swizzle: words {:#x} {:#x}", word1, word3);
    }
    return {w.sgprs[first] | static_cast<u64>(word1 & 0xffff) << 32, w.sgprs[first + 2]};
}

struct BufferAccess {
    Buffer buffer;
    Addresses a;
    alignas(64) u32 offset[kLanes];  // what is compared with num_records
};

// Of the range check, soffset is not part (?): no public source settles it, and the kernels here do not
// depend on it.
void make_addresses(Wave& w, const Instruction& i, BufferAccess& access) {
    access.buffer = read_buffer(w, i);
    access.a.lanes = w.exec();
    const u64 scalar = static_cast<u32>(require_scalar(w, i, i.src[2], "the offset"));
    const u64 base = access.buffer.base + scalar;
    const u32* vector = nullptr;
    if (i.offen) {
        require_row(w, i, i.src[0].index, access.a.lanes, 0xf, "the offset");
        vector = w.rows[i.src[0].index];
    }
    const auto immediate = static_cast<u32>(i.offset);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        access.offset[lane] = immediate + (vector != nullptr ? vector[lane] : 0);
        access.a.address[lane] = base + access.offset[lane];
    }
}

// Of the active lanes those whose dword n is in range. A carry out of the 32-bit offset is out of range too.
u64 lanes_in_range(const BufferAccess& access, u64 active, unsigned n) {
    u64 lanes = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        lanes |= static_cast<u64>(u64{access.offset[lane]} + 4 * n < access.buffer.num_records) << lane;
    }
    return lanes & active;
}

void load(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    BufferAccess access;
    make_addresses(w, i, access);
    const u64 active = access.a.lanes, last = lanes_in_range(access, active, shape.dwords() - 1);
    // What is out of range reads as zero and touches no memory.
    access.a.lanes = last;
    load_lanes(w, i, i.dst, access.a, shape);
    w.global_read += static_cast<u64>(std::popcount(last)) * shape.bytes;
    const u64 left = active & ~last;
    if (shape.bytes < 4) {
        for_lanes(left, [&](unsigned lane) { write_narrow(w, i, i.dst.index, lane, 0, shape); });
        finish_narrow(w, i, i.dst.index, left, shape);
        return;
    }
    for (unsigned n = 0; left != 0 && n < shape.dwords(); ++n) {
        for_lanes(left, [&](unsigned lane) { w.rows[i.dst.index + n][lane] = 0; });
        w.defined[i.dst.index + n] |= left;
        // Lanes that are partly in range load those dwords.
        Addresses part;
        part.lanes = lanes_in_range(access, left, n);
        for_lanes(part.lanes, [&](unsigned lane) { part.address[lane] = access.a.address[lane] + 4 * n; });
        Operand data = i.dst;
        data.index = static_cast<std::uint16_t>(data.index + n);
        load_lanes(w, i, data, part, {4});
        w.global_read += static_cast<u64>(std::popcount(part.lanes)) * 4;
    }
}

void store(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    BufferAccess access;
    make_addresses(w, i, access);
    const u64 active = access.a.lanes, last = lanes_in_range(access, active, shape.dwords() - 1);
    access.a.lanes = last;
    store_lanes(w, i, i.src[3], access.a, shape);
    w.global_written += static_cast<u64>(std::popcount(last)) * shape.bytes;
    // Lanes that are partly in range store those dwords.
    for (unsigned n = 0; n + 1 < shape.dwords(); ++n) {
        Addresses part;
        part.lanes = lanes_in_range(access, active & ~last, n);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            part.address[lane] = access.a.address[lane] + 4 * n;
        }
        Operand data = i.src[3];
        data.index = static_cast<std::uint16_t>(data.index + n);
        store_lanes(w, i, data, part, {4});
        w.global_written += static_cast<u64>(std::popcount(part.lanes)) * 4;
    }
}

void atomic(Wave& w, const Instruction& i) {
    BufferAccess access;
    make_addresses(w, i, access);
    const AtomicOp op = unpack_atomic(i.opcode->parameter);
    const u64 inside = lanes_in_range(access, access.a.lanes, op.bytes / 4 - 1);
    if (i.returns && inside != access.a.lanes) {
        fault(std::countr_zero(access.a.lanes & ~inside),
              "an atomic operation that returns is out of the buffer's range");
    }
    access.a.lanes = inside;
    run_atomic(w, i, op, access.a);
}

// Straight to LDS. Out of range stores zeros.
void load_to_lds(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    BufferAccess access;
    make_addresses(w, i, access);
    const u64 active = access.a.lanes;
    access.a.lanes = lanes_in_range(access, active, shape.dwords() - 1);
    load_lanes_to_lds(w, i, access.a, active, shape);
}

// With the modifier "lds", a load goes straight to LDS; the decoder marks it.
void load_either(Wave& w, const Instruction& i) {
    if (i.to_lds) {
        load_to_lds(w, i);
    } else {
        load(w, i);
    }
}

constexpr Opcode op(std::string_view name, Handler handler, std::uint32_t parameter) {
    return {name, "!buffer", handler, Category::vmem, 0, nullptr, 0, parameter};
}
constexpr Opcode move(std::string_view name, Handler handler, DataShape shape) {
    return op(name, handler, pack_shape(shape));
}

constexpr Opcode kOpcodes[] = {
    move("buffer_load_dword", load_either, {4}),
    move("buffer_load_dwordx2", load, {8}),
    move("buffer_load_dwordx3", load_either, {12}),
    move("buffer_load_dwordx4", load_either, {16}),
    move("buffer_load_ubyte", load, {1}),
    move("buffer_load_sbyte", load, {1, true}),
    move("buffer_load_ushort", load, {2}),
    move("buffer_load_sshort", load, {2, true}),
    move("buffer_load_ubyte_d16", load, {1, false, true}),
    move("buffer_load_ubyte_d16_hi", load, {1, false, true, true}),
    move("buffer_load_sbyte_d16", load, {1, true, true}),
    move("buffer_load_sbyte_d16_hi", load, {1, true, true, true}),
    move("buffer_load_short_d16", load, {2, false, true}),
    move("buffer_load_short_d16_hi", load, {2, false, true, true}),
    move("buffer_store_dword", store, {4}),
    move("buffer_store_dwordx2", store, {8}),
    move("buffer_store_dwordx3", store, {12}),
    move("buffer_store_dwordx4", store, {16}),
    move("buffer_store_byte", store, {1}),
    move("buffer_store_byte_d16_hi", store, {1, false, false, true}),
    move("buffer_store_short", store, {2}),
    move("buffer_store_short_d16_hi", store, {2, false, false, true}),
    op("buffer_atomic_add", atomic, pack_atomic({AtomicKind::add, 4})),
    op("buffer_atomic_add_f32", atomic, pack_atomic({AtomicKind::add_f32, 4})),
    op("buffer_atomic_pk_add_f16", atomic, pack_atomic({AtomicKind::pk_add_f16, 4})),
    op("buffer_atomic_pk_add_bf16", atomic, pack_atomic({AtomicKind::pk_add_bf16, 4})),
};

}  // namespace

std::span<const Opcode> buffer_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
