// The form in which an instruction is executed: decoded once from its line in the listing.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::sim {

struct Wave;
struct Instruction;
struct MatrixInstruction;

// Executes one instruction on one wave. Throws Fault (fault.hpp) when a rule is broken.
using Handler = void (*)(Wave&, const Instruction&);

// What an instruction is counted as; device::ExecutionCounts says what belongs where.
enum class Category : std::uint8_t { valu, transcendental, mfma, salu, branch, wait, smem, vmem, lds };
inline constexpr int kNumCategories = 9;
constexpr bool is_vector_alu(Category category) {
    return category == Category::valu || category == Category::transcendental;
}

// Rows of a wave's vector register file: v0..v255, a0..a255, then rows that wrappers use to hold operands.
inline constexpr unsigned kLanes = 64;
inline constexpr unsigned kAccRow = 256;
inline constexpr unsigned kScratchRow = 512;
inline constexpr unsigned kRows = 520;

// Numbers of the scalar registers, as the encoding has them.
inline constexpr unsigned kNumSgprs = 102;
inline constexpr unsigned kFlatScratch = 102;
inline constexpr unsigned kVcc = 106;
inline constexpr unsigned kM0 = 124;
inline constexpr unsigned kExec = 126;
inline constexpr unsigned kScalarRegisters = 128;

struct Operand {
    enum Kind : std::uint8_t { none, vgpr, sgpr, constant, scc, vccz, execz, off };
    static constexpr std::uint8_t kNeg = 1, kAbs = 2, kSext = 4;

    Kind kind = none;
    std::uint8_t dwords = 1;
    std::uint8_t modifiers = 0;
    std::uint16_t index = 0;  // row of a vgpr, number of an sgpr
    union {
        std::uint64_t value = 0;  // of a constant in a scalar or memory instruction
        const std::uint32_t*
            row;  // in a vector instruction: the same in 64 lanes, then the high dword in 64 lanes
    };
};

// Selection of a part of a dword, as SDWA has it.
enum class Select : std::uint8_t { byte0, byte1, byte2, byte3, word0, word1, dword };
enum class Unused : std::uint8_t { pad, sext, preserve };

// One mnemonic, without its encoding suffix. The tables in table.hpp hold them.
struct Opcode {
    std::string_view name;
    // Destinations, a colon, sources; a letter each (see decode.hpp). Memory instructions have forms of their
    // own.
    std::string_view form;
    Handler handler = nullptr;
    Category category = Category::valu;
    std::uint32_t flags = 0;
    // For instructions in which a bit of the result depends on one bit of each source: computes one lane, so
    // that undefined bits can be followed exactly. `exact_operands`: sources (bit n = source n) of which that
    // is not true, shift amounts and selectors.
    std::uint32_t (*bitwise)(std::uint32_t, std::uint32_t, std::uint32_t) = nullptr;
    std::uint8_t exact_operands = 0;
    std::uint32_t parameter = 0;  // for handlers shared by several mnemonics: a width, a condition
};

// Opcode::flags: what the decoder may accept besides the operands.
enum : std::uint32_t {
    kSourceModifiers = 1u << 0,  // neg and abs
    kClampOmod = 1u << 1,        // float clamp and output multiplier
    kOpSel = 1u << 2,            // op_sel and op_sel_hi, handled by the instruction itself
    kNegPacked = 1u << 3,        // neg_lo and neg_hi
    kNoDpp = 1u << 4,            // neither DPP nor SDWA
    kIntClamp = 1u << 5,         // clamp means saturate: a table entry named "MNEMONIC clamp"
    kHalf = 1u << 6,             // 16-bit sources and result: op_sel selects halves
    kBitTable = 1u << 9,         // result bits come from a table of eight, in Instruction::offset
};

// DPP and SDWA, for those instructions that have them.
struct LaneControl {
    enum Kind : std::uint8_t { dpp, sdwa } kind = dpp;
    // DPP
    enum Pattern : std::uint8_t {
        quad_perm,
        row_shl,
        row_shr,
        row_ror,
        wave_shl,
        wave_rol,
        wave_shr,
        wave_ror,
        row_mirror,
        row_half_mirror,
        row_bcast15,
        row_bcast31,
        row_newbcast
    } pattern = quad_perm;
    std::uint8_t amount = 0;  // quad_perm: four times two bits
    std::uint8_t row_mask = 0xf, bank_mask = 0xf;
    bool bound_ctrl = false;
    std::uint8_t source[kLanes] = {};  // the lane that each lane reads
    std::uint64_t has_source = 0, selected = 0;
    // SDWA
    Select dst_sel = Select::dword, src_sel[2] = {Select::dword, Select::dword};
    Unused unused = Unused::pad;
};

struct Instruction {
    Handler run = nullptr;
    Operand dst, dst2, src[4];
    std::int32_t target = -1;  // of a branch: index of an instruction
    std::int32_t offset = 0;   // of a memory instruction, the sum of what the text states
    std::int32_t offset1 = 0;
    std::uint32_t needs_v = 0, needs_a = 0, needs_s = 0;  // one past the highest register that is named
    Category category = Category::salu;
    std::uint8_t op_sel = 0, op_sel_hi = 0, neg_lo = 0, neg_hi = 0;  // a bit an operand
    std::uint8_t clamp = 0, omod = 0;
    std::uint8_t cbsz = 0, blgp = 0;
    bool offen = false;    // of a buffer instruction: src[0] holds offsets
    bool returns = false;  // of an atomic: the old value goes to dst
    bool to_lds = false;   // of a buffer load: the data go to LDS
    bool sc0 = false;      // of a memory instruction; for atomics see `returns`
    bool sc1 = false;      // of a memory instruction: reaches past the die's L2
    const Opcode* opcode = nullptr;
    const Instruction* inner = nullptr;  // of a wrapper: what it wraps
    const MatrixInstruction* matrix = nullptr;
    LaneControl control;
    std::uint32_t text_offset = 0;  // bytes from the start of .text
    std::string_view text;
    std::string_view reason;  // of one that can not be executed: why
};

}  // namespace kiln::sim
