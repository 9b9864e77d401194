// LDS: reads, writes, read-modify-write. Bytes never written read as undefined; see undefined.hpp.
#include <cstring>

#include "runtime/sim/access.hpp"
#include "runtime/sim/atomics.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/lds_banks.hpp"
#include "runtime/sim/races.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct LdsAddresses {
    u64 lanes;
    alignas(64) u32 address[kLanes];
};

// Wide accesses are aligned to their size, but for 96 bits, which needs a dword's.
constexpr unsigned lds_alignment(unsigned bytes) {
    return bytes == 12 ? 4 : bytes;
}

// src[0] + offset, in 32 bits, inside of the work-group's LDS and aligned.
void check_addresses(Wave& w, const Instruction& i, u32 offset, unsigned bytes, LdsAddresses& a) {
    a.lanes = w.exec();
    require_row(w, i, i.src[0].index, a.lanes, 0xf, "the LDS address");
    const u32* base = w.rows[i.src[0].index];
    const u32* active = w.lanes_of_exec();
    u32 highest = 0, bits = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 address = base[lane] + offset;
        a.address[lane] = address;
        const u32 reached = address & active[lane];
        highest = reached > highest ? reached : highest;
        bits |= address & active[lane];
    }
    const u32 size = w.group->lds_bytes, align = lds_alignment(bytes);
    if ((size >= bytes && highest <= size - bytes && (bits & (align - 1)) == 0) || a.lanes == 0) [[likely]] {
        return;
    }
    for_lanes(a.lanes, [&](unsigned lane) {
        const u64 address = a.address[lane];
        if (address + bytes > size) {
            fault(static_cast<int>(lane), "{} bytes at {} are outside of the {} bytes of LDS", bytes, address,
                  size);
        }
        if ((address & (align - 1)) != 0) {
            fault(static_cast<int>(lane), "{} bytes at LDS address {} are misaligned: {} is wanted", bytes,
                  address, align);
        }
    });
}

void make_addresses(Wave& w, const Instruction& i, u32 offset, unsigned bytes, AccessKind kind,
                    LdsAddresses& a) {
    check_addresses(w, i, offset, bytes, a);
    count_lds(w, a.lanes, a.address, bytes, kind);
    if (w.group->races != nullptr) [[unlikely]] {
        w.group->races->launch->lds(w, i, a.lanes, a.address, bytes, kind);
    }
}

// What of `bytes` bytes is defined, a bit a byte.
unsigned written_bytes(const Wave& w, u32 address, unsigned bytes) {
    unsigned mask = 0;
    for (unsigned n = 0; n < bytes; ++n) {
        mask |= (w.group->lds_written[address + n] != 0 ? 1u : 0) << n;
    }
    return mask;
}

// Marks the lanes of rows that were read from bytes of which some are undefined.
void mark_read(Wave& w, const Instruction& i, unsigned row, const LdsAddresses& a, unsigned bytes,
               unsigned row_bytes) {
    const std::uint8_t* written[kLanes];
    for_lanes(a.lanes, [&](unsigned lane) { written[lane] = w.group->lds_written + a.address[lane]; });
    mark_loaded(w, row, a.lanes, written, bytes, row_bytes, {&i, kOriginLds});
}

template <unsigned Dwords>
void read_dwords(Wave& w, const Instruction& i, unsigned row, const LdsAddresses& a) {
    u32(*d)[kLanes] = w.rows + row;
    const std::uint8_t* lds = w.group->lds;
    const std::uint8_t* written = w.group->lds_written;
    u32 all = ~0u;
    for_lanes(a.lanes, [&](unsigned lane) {
        u32 value[Dwords], mask[Dwords];
        std::memcpy(value, lds + a.address[lane], sizeof value);
        std::memcpy(mask, written + a.address[lane], sizeof mask);
        for (unsigned n = 0; n < Dwords; ++n) {
            d[n][lane] = value[n];
            all &= mask[n];
        }
    });
    if (all != ~0u) [[unlikely]] {
        mark_read(w, i, row, a, 4 * Dwords, 0xf);
        return;
    }
    for (unsigned n = 0; n < Dwords; ++n) {
        w.defined[row + n] |= a.lanes;
    }
}

template <unsigned Dwords>
void write_dwords(Wave& w, unsigned row, const LdsAddresses& a) {
    const u32(*d)[kLanes] = w.rows + row;
    u64 ok = ~u64{0};
    for (unsigned n = 0; n < Dwords; ++n) {
        ok &= w.defined[row + n];
    }
    for_lanes(a.lanes, [&](unsigned lane) {
        u32 value[Dwords];
        for (unsigned n = 0; n < Dwords; ++n) {
            value[n] = d[n][lane];
        }
        std::memcpy(w.group->lds + a.address[lane], value, sizeof value);
        std::memset(w.group->lds_written + a.address[lane], 0xff, sizeof value);
    });
    for_lanes(a.lanes & ~ok, [&](unsigned lane) {
        for (unsigned n = 0; n < 4 * Dwords; ++n) {
            const bool defined = w.byte_defined(row + n / 4, n % 4) >> lane & 1;
            w.group->lds_written[a.address[lane] + n] = defined ? 0xff : 0;
        }
    });
}

void count_read(Wave& w, u64 lanes, unsigned bytes) {
    w.lds_read += static_cast<u64>(std::popcount(lanes)) * bytes;
}
void count_written(Wave& w, u64 lanes, unsigned bytes) {
    w.lds_written += static_cast<u64>(std::popcount(lanes)) * bytes;
}

void read_wide(Wave& w, const Instruction& i, unsigned row, u32 offset, unsigned bytes) {
    LdsAddresses a;
    make_addresses(w, i, offset, bytes, AccessKind::load, a);
    switch (bytes) {
        case 4:
            read_dwords<1>(w, i, row, a);
            break;
        case 8:
            read_dwords<2>(w, i, row, a);
            break;
        case 12:
            read_dwords<3>(w, i, row, a);
            break;
        default:
            read_dwords<4>(w, i, row, a);
    }
    count_read(w, a.lanes, bytes);
}

void write_wide(Wave& w, const Instruction& i, unsigned row, u32 offset, unsigned bytes) {
    LdsAddresses a;
    make_addresses(w, i, offset, bytes, AccessKind::store, a);
    switch (bytes) {
        case 4:
            write_dwords<1>(w, row, a);
            break;
        case 8:
            write_dwords<2>(w, row, a);
            break;
        case 12:
            write_dwords<3>(w, row, a);
            break;
        default:
            write_dwords<4>(w, row, a);
    }
    count_written(w, a.lanes, bytes);
}

void read(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    if (shape.bytes >= 4) {
        read_wide(w, i, i.dst.index, static_cast<u32>(i.offset), shape.bytes);
        return;
    }
    LdsAddresses a;
    make_addresses(w, i, static_cast<u32>(i.offset), shape.bytes, AccessKind::load, a);
    bool all_written = true;
    for_lanes(a.lanes, [&](unsigned lane) {
        std::uint16_t value = 0;
        std::memcpy(&value, w.group->lds + a.address[lane], shape.bytes);
        write_narrow(w, i, i.dst.index, lane, value, shape);
        for (unsigned n = 0; n < shape.bytes; ++n) {
            all_written &= w.group->lds_written[a.address[lane] + n] != 0;
        }
    });
    if (all_written) {
        finish_narrow(w, i, i.dst.index, a.lanes, shape);
    } else {
        mark_read(w, i, i.dst.index, a, shape.bytes, shape.row_bytes());
    }
    count_read(w, a.lanes, shape.bytes);
}

void write(Wave& w, const Instruction& i) {
    const DataShape shape = unpack_shape(i.opcode->parameter);
    const unsigned row = i.src[1].index;
    if (shape.bytes >= 4) {
        write_wide(w, i, row, static_cast<u32>(i.offset), shape.bytes);
        return;
    }
    LdsAddresses a;
    make_addresses(w, i, static_cast<u32>(i.offset), shape.bytes, AccessKind::store, a);
    const unsigned first = shape.high ? 2 : 0;
    for_lanes(a.lanes, [&](unsigned lane) {
        const auto value = static_cast<std::uint16_t>(w.rows[row][lane] >> (8 * first));
        std::memcpy(w.group->lds + a.address[lane], &value, shape.bytes);
        for (unsigned n = 0; n < shape.bytes; ++n) {
            w.group->lds_written[a.address[lane] + n] = w.byte_defined(row, first + n) >> lane & 1 ? 0xff : 0;
        }
    });
    count_written(w, a.lanes, shape.bytes);
}

// Two elements; the offsets count elements, or 64 elements.
template <unsigned Bytes, unsigned Stride>
void read2(Wave& w, const Instruction& i) {
    // The address may be overwritten by the first half.
    constexpr unsigned kAddress = kScratchRow + 3;
    std::memcpy(w.rows[kAddress], w.rows[i.src[0].index], sizeof w.rows[0]);
    w.defined[kAddress] = w.defined[i.src[0].index];
    std::memcpy(w.bytes_defined[kAddress], w.bytes_defined[i.src[0].index], sizeof w.bytes_defined[0]);
    w.origins[kAddress] = w.origins[i.src[0].index];
    Instruction half = i;
    half.src[0].index = kAddress;
    read_wide(w, half, i.dst.index, static_cast<u32>(i.offset) * Bytes * Stride, Bytes);
    read_wide(w, half, i.dst.index + Bytes / 4, static_cast<u32>(i.offset1) * Bytes * Stride, Bytes);
    for (unsigned n = 0; n < Bytes / 2; ++n) {
        if (w.origins[i.dst.index + n].reader == &half) {
            w.origins[i.dst.index + n].reader = &i;
        }
    }
}

template <unsigned Bytes, unsigned Stride>
void write2(Wave& w, const Instruction& i) {
    write_wide(w, i, i.src[1].index, static_cast<u32>(i.offset) * Bytes * Stride, Bytes);
    write_wide(w, i, i.src[2].index, static_cast<u32>(i.offset1) * Bytes * Stride, Bytes);
}

void atomic(Wave& w, const Instruction& i) {
    const AtomicOp op = unpack_atomic(i.opcode->parameter);
    LdsAddresses a;
    make_addresses(w, i, static_cast<u32>(i.offset), op.bytes, AccessKind::atomic, a);
    const unsigned dwords = op.bytes / 4;
    // cmpswap has the value compared with first, then the new one.
    const unsigned data = i.src[op.kind == AtomicKind::cmpswap ? 2 : 1].index, compare = i.src[1].index;
    for (unsigned n = 0; n < dwords; ++n) {
        require_row(w, i, data + n, a.lanes, 0xf, "the data of an atomic operation");
        require_row(w, i, compare + n, a.lanes, 0xf, "the data of an atomic operation");
    }
    const auto lane_value = [&](unsigned row, unsigned lane) {
        return w.rows[row][lane] | (dwords == 2 ? static_cast<u64>(w.rows[row + 1][lane]) << 32 : 0);
    };
    for_lanes(a.lanes, [&](unsigned lane) {
        const u32 address = a.address[lane];
        if (op.kind != AtomicKind::swap && written_bytes(w, address, op.bytes) != (1u << op.bytes) - 1) {
            fault(static_cast<int>(lane), "the LDS bytes at {} were never written", address);
        }
        u64 old = 0;
        std::memcpy(&old, w.group->lds + address, op.bytes);
        const u64 value = combine(op, old, lane_value(data, lane), lane_value(compare, lane));
        std::memcpy(w.group->lds + address, &value, op.bytes);
        std::memset(w.group->lds_written + address, 0xff, op.bytes);
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
    count_read(w, a.lanes, op.bytes);
    count_written(w, a.lanes, op.bytes);
}

// A transposing read: half n of lane l comes from what lane (l & ~15) + (l / 4 % 4) + 4 n addresses, its half
// l % 4.
void read_transposed(Wave& w, const Instruction& i) {
    LdsAddresses a;
    make_addresses(w, i, static_cast<u32>(i.offset), 8, AccessKind::load, a);
    if (a.lanes != ~u64{0}) {
        fault(-1, "a transposing read with lanes switched off is not known");
    }
    alignas(64) u32 result[2][kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        std::uint16_t half[4];
        for (unsigned n = 0; n < 4; ++n) {
            const u32 address = a.address[(lane & ~15u) + (lane >> 2 & 3) + 4 * n] + 2 * (lane & 3);
            if (written_bytes(w, address, 2) != 3) {
                fault(static_cast<int>(lane), "the LDS bytes at {} were never written", address);
            }
            std::memcpy(&half[n], w.group->lds + address, 2);
        }
        result[0][lane] = half[0] | u32{half[1]} << 16;
        result[1][lane] = half[2] | u32{half[3]} << 16;
    }
    for (unsigned n = 0; n < 2; ++n) {
        std::memcpy(w.rows[i.dst.index + n], result[n], sizeof result[n]);
        w.defined[i.dst.index + n] = ~u64{0};
    }
    count_read(w, a.lanes, 8);
}

constexpr Opcode op(std::string_view name, std::string_view form, Handler handler, std::uint32_t parameter) {
    return {name, form, handler, Category::lds, 0, nullptr, 0, parameter};
}
constexpr Opcode reads(std::string_view name, DataShape shape) {
    return op(name, "!ds_read", read, pack_shape(shape));
}
constexpr Opcode writes(std::string_view name, DataShape shape) {
    return op(name, "!ds_write", write, pack_shape(shape));
}

#define KILN_DS_ATOMIC(name, kind, suffix, bytes)                                            \
    op("ds_" name "_" suffix, "!ds_atomic", atomic, pack_atomic({AtomicKind::kind, bytes})), \
        op("ds_" name "_rtn_" suffix, "!ds_atomic_rtn", atomic, pack_atomic({AtomicKind::kind, bytes}))
#define KILN_DS_BOTH(name, kind, letter) \
    KILN_DS_ATOMIC(name, kind, letter "32", 4), KILN_DS_ATOMIC(name, kind, letter "64", 8)

constexpr Opcode kOpcodes[] = {
    reads("ds_read_b32", {4}),
    reads("ds_read_b64", {8}),
    reads("ds_read_b96", {12}),
    reads("ds_read_b128", {16}),
    reads("ds_read_u8", {1}),
    reads("ds_read_i8", {1, true}),
    reads("ds_read_u16", {2}),
    reads("ds_read_i16", {2, true}),
    reads("ds_read_u8_d16", {1, false, true}),
    reads("ds_read_u8_d16_hi", {1, false, true, true}),
    reads("ds_read_i8_d16", {1, true, true}),
    reads("ds_read_i8_d16_hi", {1, true, true, true}),
    reads("ds_read_u16_d16", {2, false, true}),
    reads("ds_read_u16_d16_hi", {2, false, true, true}),
    writes("ds_write_b32", {4}),
    writes("ds_write_b64", {8}),
    writes("ds_write_b96", {12}),
    writes("ds_write_b128", {16}),
    writes("ds_write_b8", {1}),
    writes("ds_write_b16", {2}),
    writes("ds_write_b8_d16_hi", {1, false, false, true}),
    writes("ds_write_b16_d16_hi", {2, false, false, true}),
    op("ds_read2_b32", "!ds_read2", read2<4, 1>, 4),
    op("ds_read2_b64", "!ds_read2", read2<8, 1>, 8),
    op("ds_read2st64_b32", "!ds_read2", read2<4, 64>, 4),
    op("ds_read2st64_b64", "!ds_read2", read2<8, 64>, 8),
    op("ds_write2_b32", "!ds_write2", write2<4, 1>, 4),
    op("ds_write2_b64", "!ds_write2", write2<8, 1>, 8),
    op("ds_write2st64_b32", "!ds_write2", write2<4, 64>, 4),
    op("ds_write2st64_b64", "!ds_write2", write2<8, 64>, 8),
    op("ds_read_b64_tr_b16", "!ds_read", read_transposed, pack_shape({8})),
    KILN_DS_BOTH("add", add, "u"),
    KILN_DS_BOTH("sub", sub, "u"),
    KILN_DS_BOTH("rsub", rsub, "u"),
    KILN_DS_BOTH("inc", inc, "u"),
    KILN_DS_BOTH("dec", dec, "u"),
    KILN_DS_BOTH("min", smin, "i"),
    KILN_DS_BOTH("max", smax, "i"),
    KILN_DS_BOTH("min", umin, "u"),
    KILN_DS_BOTH("max", umax, "u"),
    KILN_DS_BOTH("and", logic_and, "b"),
    KILN_DS_BOTH("or", logic_or, "b"),
    KILN_DS_BOTH("xor", logic_xor, "b"),
    KILN_DS_BOTH("cmpst", cmpswap, "b"),
    op("ds_wrxchg_rtn_b32", "!ds_atomic_rtn", atomic, pack_atomic({AtomicKind::swap, 4})),
    op("ds_wrxchg_rtn_b64", "!ds_atomic_rtn", atomic, pack_atomic({AtomicKind::swap, 8})),
    KILN_DS_ATOMIC("add", add_f32, "f32", 4),
    KILN_DS_ATOMIC("min", min_f32, "f32", 4),
    KILN_DS_ATOMIC("max", max_f32, "f32", 4),
    KILN_DS_ATOMIC("add", add_f64, "f64", 8),
    KILN_DS_ATOMIC("pk_add", pk_add_f16, "f16", 4),
    KILN_DS_ATOMIC("pk_add", pk_add_bf16, "bf16", 4),
};

}  // namespace

std::span<const Opcode> lds_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
