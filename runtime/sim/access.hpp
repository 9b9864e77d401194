// Addresses of memory instructions, checked against what the device may touch.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/sim/undefined.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

// The live range in which `bytes` at `address` lie; null when there is none. Remembers ranges, so that most
// calls take no lock; the next call may overwrite what it points to.
const Range* find_range(Wave& wave, std::uint64_t address, std::uint64_t bytes);
inline const Range* range_of(Wave& w, std::uint64_t address, std::uint64_t bytes) {
    for (const Range& range : w.ranges) {
        if (range.contains(address, bytes)) [[likely]] {
            return &range;
        }
    }
    return find_range(w, address, bytes);
}
// The error of an access that lies in none.
[[noreturn]] void fault_address(const Wave& wave, int lane, std::uint64_t bytes, std::uint64_t address);

// One address a lane. Those of lanes that take no part are not defined.
struct Addresses {
    std::uint64_t lanes;  // that take part
    alignas(64) std::uint64_t address[kLanes];
};

enum class AccessKind : std::uint8_t { load, store, atomic };

// Every vector instruction that touches global memory comes through here before its data move, once for each
// set of lanes that moves the same number of bytes. Throws unless every lane's `bytes` lie in a live range
// and are aligned to `align`. (Scalar loads: scalar_memory.cpp.)
//
// True when some of the bytes may never have been written, which finish_load() and finish_atomic() look into.
bool begin_access(Wave& wave, const Instruction& instruction, const Addresses& addresses, unsigned bytes,
                  unsigned align, AccessKind kind);

// Then one lane's data move through these, from memory or to it.
void read_late(Wave& wave, const Instruction& instruction, std::uint64_t address, unsigned bytes, void* to);
void write_late(Wave& wave, const Instruction& instruction, std::uint64_t address, unsigned bytes,
                const void* from);
inline void read_global(Wave& w, const Instruction& i, std::uint64_t address, unsigned bytes, void* to) {
    if (w.group->late != nullptr) [[unlikely]] {
        return read_late(w, i, address, bytes, to);
    }
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
}
inline void write_global(Wave& w, const Instruction& i, std::uint64_t address, unsigned bytes,
                         const void* from) {
    if (w.group->late != nullptr) [[unlikely]] {
        return write_late(w, i, address, bytes, from);
    }
    std::memcpy(reinterpret_cast<void*>(address), from, bytes);
}

// Fences and waits, as far as the instruction's bits make it one.
void release(Wave& wave, const Instruction& instruction);
void acquire(Wave& wave, const Instruction& instruction);
void wait_for_memory(Wave& wave, const Instruction& instruction);

// How an instruction's data are laid out in registers.
struct DataShape {
    unsigned bytes;     // in memory, of one lane
    bool sign = false;  // of 8 and 16 bits: sign-extended, else zero-extended
    bool d16 = false;   // into 16 bits; the other half is kept
    bool high = false;  // d16: the upper half; of stores: from the upper half
    unsigned dwords() const { return bytes < 4 ? 1 : bytes / 4; }
    // Bytes of the first row that a load changes: bit n = byte n.
    unsigned row_bytes() const { return !d16 ? 0xf : high ? 0xc : 0x3; }
};
// Packed into Opcode::parameter.
constexpr std::uint32_t pack_shape(DataShape s) {
    return s.bytes | s.sign << 8 | s.d16 << 9 | s.high << 10;
}
constexpr DataShape unpack_shape(std::uint32_t p) {
    return {p & 0xff, (p >> 8 & 1) != 0, (p >> 9 & 1) != 0, (p >> 10 & 1) != 0};
}
// Marks what such a load left in the rows: bytes that nothing wrote are undefined.
void finish_load(Wave& wave, const Instruction& instruction, unsigned row, const Addresses& from,
                 DataShape shape);

// The same of a read-modify-write operation that returns. What it computes from bytes that nothing wrote is
// not written either, unless the new value replaces them.
void finish_atomic(Wave& wave, const Instruction& instruction, const Addresses& at, unsigned bytes,
                   bool replaces);

// Memory instructions need dwords to be aligned, not more, as the hardware's do.
constexpr unsigned alignment(unsigned bytes) {
    return bytes < 4 ? bytes : 4;
}

// Moves data of the lanes between memory and the rows of `data`.
void load_lanes(Wave& wave, const Instruction& instruction, const Operand& data, const Addresses& from,
                DataShape shape);
void store_lanes(Wave& wave, const Instruction& instruction, const Operand& data, const Addresses& to,
                 DataShape shape);

// Moves `active` lanes' data from memory straight to LDS: to the base in M0, plus the immediate, plus a
// lane's share times its number. Those that are not in `from` bring zeros.
void load_lanes_to_lds(Wave& wave, const Instruction& instruction, const Addresses& from,
                       std::uint64_t active, DataShape shape);

// For lanes: writes a narrow value as the shape says.
void write_narrow(Wave& wave, const Instruction& instruction, unsigned row, unsigned lane,
                  std::uint32_t value, DataShape shape);
void finish_narrow(Wave& wave, const Instruction& instruction, unsigned row, std::uint64_t lanes,
                   DataShape shape);

// Calls visit(lane) for every set bit.
template <class Visit>
inline void for_lanes(std::uint64_t lanes, Visit&& visit) {
    if (lanes == ~std::uint64_t{0}) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            visit(lane);
        }
        return;
    }
    for (; lanes != 0; lanes &= lanes - 1) {
        visit(static_cast<unsigned>(std::countr_zero(lanes)));
    }
}

}  // namespace kiln::sim
