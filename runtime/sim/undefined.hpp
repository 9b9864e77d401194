// Values that nothing wrote: how they are followed, and when they are an error.
//
// The rule (memcheck's): a register lane, an SGPR bit, an LDS byte or (Checks::uninitialised) a byte of an
// allocation is undefined until it is written. Reading one is no error in itself, because compilers do it
// where the result can not matter: the old value of a conversion that fills one half of a register after the
// other, lanes that a matrix instruction reads although EXEC masks them, the high half of an addend, the copy
// of a structure with padding, speculated arithmetic. An undefined input makes what depends on it undefined
// (exactly, bit by bit, for moves, logic, shifts and permutations; the whole result for everything else). It
// is an error when it comes to matter:
//   - it is stored to memory (LDS excepted: those bytes stay undefined),
//   - it is part of an address or of M0 in use,
//   - a branch depends on it, or a bit of EXEC does,
//   - a scalar load, buffer descriptor, barrier or jump uses it.
// The error names the instruction at which it came to matter and the one that first read what was never
// written, with its offset and register.
//
// Vector registers are followed a byte a lane, scalar registers and lane masks a bit.
#pragma once

#include <cstdint>

#include "runtime/sim/wave.hpp"

namespace kiln::sim {

// For a vector instruction with one 32-bit destination and ordinary sources, `lanes` of whose sources are not
// wholly defined: marks what becomes of the destination in those lanes. Called before the result is written;
// the caller adds the lanes that are defined.
void follow_undefined(Wave& wave, const Instruction& instruction, std::uint64_t lanes);

// The same for a destination row of which nothing finer than a lane is known: all four bytes become undefined
// there.
void mark_undefined(Wave& wave, const Instruction& instruction, unsigned row, std::uint64_t lanes);

// Marks bytes (bit n = byte n) of a row as written by `written` lanes, of which those in `undefined` hold
// undefined values.
void mark_bytes(Wave& wave, const Instruction& instruction, unsigned row, unsigned bytes,
                std::uint64_t written, std::uint64_t undefined);

// What a load of `bytes` a lane into `row` and those after it leaves there, where written[lane][n] is 0xff
// for each byte that is defined and 0 for the others. `row_bytes` (bit n = byte n of the row): what a load
// of less than a dword changes; such a load is defined as a whole or not at all.
void mark_loaded(Wave& wave, unsigned row, std::uint64_t lanes, const std::uint8_t* const (&written)[kLanes],
                 unsigned bytes, unsigned row_bytes, Origin origin);

// The origin of an undefined value that `instruction` reads through its sources.
Origin origin_of(const Wave& wave, const Instruction& instruction, std::uint64_t lanes);
// Of one row; of one scalar register.
Origin origin_of_row(const Wave& wave, const Instruction& instruction, unsigned row);
Origin origin_of_sgpr(const Wave& wave, const Instruction& instruction, unsigned number);

// Throws the error. `what`: "the address", "the data to store", "EXEC".
[[noreturn]] void fault_undefined(const Wave& wave, const Instruction& instruction, const char* what,
                                  int lane, Origin origin);

// Throws when one of `lanes` is undefined in any of the bytes (bit n = byte n) of the row.
KILN_INLINE void require_row(const Wave& wave, const Instruction& instruction, unsigned row,
                             std::uint64_t lanes, unsigned bytes, const char* what);
void require_row_slowly(const Wave& wave, const Instruction& instruction, unsigned row, std::uint64_t lanes,
                        unsigned bytes, const char* what);

KILN_INLINE void require_row(const Wave& wave, const Instruction& instruction, unsigned row,
                             std::uint64_t lanes, unsigned bytes, const char* what) {
    if (lanes & ~wave.defined[row]) [[unlikely]] {
        require_row_slowly(wave, instruction, row, lanes, bytes, what);
    }
}

}  // namespace kiln::sim
