// Scalar loads, directly and through a buffer descriptor, and the clocks.
#include <cstring>

#include "runtime/sim/access.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/late_memory.hpp"
#include "runtime/sim/lines.hpp"
#include "runtime/sim/races.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

// src[1] is a scalar offset or none.
u64 scalar_offset(const Wave& w, const Instruction& i) {
    u64 offset = static_cast<u64>(static_cast<std::int64_t>(i.offset));
    if (i.src[1].kind != Operand::none) {
        offset += static_cast<u32>(require_scalar(w, i, i.src[1], "the offset"));
    }
    return offset;
}

// The range in which the bytes lie.
const Range& check(Wave& w, u64 address, unsigned bytes) {
    const Range* const range = range_of(w, address, bytes);
    if (range == nullptr) {
        fault_address(w, -1, bytes, address);
    }
    if (address % 4 != 0) {
        fault(-1, "{} bytes at {:#x} are misaligned: 4 is wanted", bytes, address);
    }
    if (range - w.ranges >= Wave::kFixedRanges) {
        count_lines_of_scalar_load(w, address, bytes);
    }
    if (w.group->races != nullptr) [[unlikely]] {
        w.group->races->launch->scalar_load(w, address, bytes);
        return *range_of(w, address, bytes);
    }
    return *range;
}

void read(const Wave& w, u64 address, unsigned bytes, void* to) {
    if (w.group->late != nullptr) [[unlikely]] {
        return w.group->late->scalar_load(w, address, bytes, to);
    }
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
}

// One dword has arrived, from where the map has `written`; null: it was written.
void finish_dword(Wave& w, const Instruction& i, unsigned number, u64 address, const std::uint8_t* written) {
    u32 defined = ~0u;
    if (written != nullptr) {
        std::memcpy(&defined, written, sizeof defined);
        if (defined != ~0u) {
            address += static_cast<unsigned>(std::countr_one(defined)) / 8;
            w.sgpr_origins[number] = {&i, kOriginMemory, address & ((u64{1} << 48) - 1)};
        }
    }
    w.sgprs_defined[number] = defined;
}

void load(Wave& w, const Instruction& i) {
    const unsigned bytes = i.opcode->parameter;
    const u64 address = require_scalar(w, i, i.src[0], "the address") + scalar_offset(w, i);
    const Range& range = check(w, address, bytes);
    read(w, address, bytes, w.sgprs + i.dst.index);
    for (unsigned n = 0; n < bytes / 4; ++n) {
        finish_dword(w, i, i.dst.index + n, address + 4 * n,
                     range.written != nullptr ? range.written_at(address + 4 * n) : nullptr);
    }
    w.scalar_read += bytes;
}

// Dwords past the end of the buffer read as zero.
void buffer_load(Wave& w, const Instruction& i) {
    const unsigned bytes = i.opcode->parameter, first = i.src[0].index;
    for (unsigned n = 0; n < 3; ++n) {
        if (w.sgprs_defined[first + n] != ~0u) {
            fault_undefined(w, i, "the buffer descriptor", -1, origin_of_sgpr(w, i, first + n));
        }
    }
    if (w.sgprs[first + 1] >> 16 != 0) {
        fault(-1, "the buffer descriptor has a stride or a swizzle");
    }
    const u64 base = w.sgprs[first] | static_cast<u64>(w.sgprs[first + 1] & 0xffff) << 32;
    const u64 offset = scalar_offset(w, i), limit = w.sgprs[first + 2];
    for (unsigned n = 0; n < bytes / 4; ++n) {
        const u64 address = base + offset + 4 * n;
        const std::uint8_t* written = nullptr;
        u32 value = 0;
        if (offset + 4 * n + 4 <= limit) {
            const Range& range = check(w, address, 4);
            written = range.written != nullptr ? range.written_at(address) : nullptr;
            read(w, address, 4, &value);
        }
        w.sgprs[i.dst.index + n] = value;
        finish_dword(w, i, i.dst.index + n, address, written);
    }
    w.scalar_read += bytes;
}

// Counts the wave's own instructions: monotonic, and the same in every run.
void clock(Wave& w, const Instruction& i) {
    u64 ticks = 0;
    for (const u64 executed : w.executed) {
        ticks += executed;
    }
    write_scalar(w, i, i.dst, ticks);
}

void invalidate(Wave& w, const Instruction&) {
    if (w.group->late != nullptr) {
        w.group->late->acquire_scalar(w);
    }
}

// Nothing writes through the scalar cache.
void nothing(Wave&, const Instruction&) {}

constexpr Opcode op(std::string_view name, std::string_view form, Handler handler, std::uint32_t bytes) {
    return {name, form, handler, Category::smem, 0, nullptr, 0, bytes};
}

constexpr Opcode kOpcodes[] = {
    op("s_load_dword", "!smem", load, 4),
    op("s_load_dwordx2", "!smem", load, 8),
    op("s_load_dwordx4", "!smem", load, 16),
    op("s_load_dwordx8", "!smem", load, 32),
    op("s_load_dwordx16", "!smem", load, 64),
    op("s_buffer_load_dword", "!smem", buffer_load, 4),
    op("s_buffer_load_dwordx2", "!smem", buffer_load, 8),
    op("s_buffer_load_dwordx4", "!smem", buffer_load, 16),
    op("s_buffer_load_dwordx8", "!smem", buffer_load, 32),
    op("s_buffer_load_dwordx16", "!smem", buffer_load, 64),
    op("s_memtime", "d:", clock, 0),
    op("s_memrealtime", "d:", clock, 0),
    op("s_dcache_inv", ":", invalidate, 0),
    op("s_dcache_wb", ":", nothing, 0),
};

}  // namespace

std::span<const Opcode> scalar_memory_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
