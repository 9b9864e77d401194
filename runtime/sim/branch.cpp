// Control flow, barriers, waits and the hardware registers.
#include <fmt/format.h>

#include "runtime/sim/access.hpp"
#include "runtime/sim/code.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

using u64 = std::uint64_t;

void jump(Wave& w, const Instruction& i) {
    if (i.target < 0) {
        fault(-1, "the branch leads to where no instruction starts");
    }
    w.pc = static_cast<std::uint32_t>(i.target);
}

template <bool Expected>
void branch_scc(Wave& w, const Instruction& i) {
    if (!w.scc_defined) [[unlikely]] {
        fault_undefined(w, i, "SCC", -1, w.scc_origin);
    }
    if (w.scc == Expected) {
        jump(w, i);
    }
}

template <bool Zero>
void branch_vcc(Wave& w, const Instruction& i) {
    const u64 vcc = w.sgpr64(kVcc), defined = w.sgpr64_defined(kVcc);
    if (~defined != 0 && (vcc & defined) == 0) [[unlikely]] {
        fault_undefined(w, i, "VCC", -1, origin_of_sgpr(w, i, ~w.sgprs_defined[kVcc] != 0 ? kVcc : kVcc + 1));
    }
    if ((vcc == 0) == Zero) {
        jump(w, i);
    }
}

template <bool Zero>
void branch_exec(Wave& w, const Instruction& i) {
    if ((w.exec() == 0) == Zero) {
        jump(w, i);
    }
}

void nothing(Wave&, const Instruction&) {}

void end_program(Wave& w, const Instruction&) {
    w.ended = true;
    w.stopped = true;
}

void barrier(Wave& w, const Instruction&) {
    w.at_barrier = true;
    w.stopped = true;
}

void trap(Wave&, const Instruction&) {
    fault(-1, "the kernel trapped");
}

void jump_to(Wave& w, u64 address) {
    const std::int32_t index = w.code->index_of(address - w.code->text_address);
    if (index < 0) {
        fault(-1, "the jump leads to {:#x}, where no instruction starts", address);
    }
    w.pc = static_cast<std::uint32_t>(index);
}

// offset1 is the offset of the instruction that follows.
void getpc(Wave& w, const Instruction& i) {
    write_scalar(w, i, i.dst, w.code->text_address + static_cast<std::uint32_t>(i.offset1));
}
void setpc(Wave& w, const Instruction& i) {
    jump_to(w, require_scalar(w, i, i.src[0], "the address to jump to"));
}
void swappc(Wave& w, const Instruction& i) {
    const u64 to = require_scalar(w, i, i.src[0], "the address to jump to");
    getpc(w, i);
    jump_to(w, to);
}

constexpr unsigned kModeRegister = 1, kXccRegister = 20;

struct Field {
    unsigned id, shift, bits;
};
Field field_of(const Instruction& i) {
    const auto packed = static_cast<std::uint32_t>(i.offset);
    return {packed & 63, packed >> 6 & 31, (packed >> 11 & 31) + 1};
}

void getreg(Wave& w, const Instruction& i) {
    const Field field = field_of(i);
    u64 value = 0;
    if (field.id == kModeRegister) {
        value = w.mode;
    } else if (field.id == kXccRegister) {
        value = w.group->xcc;
    } else {
        fault(-1, "hardware register {} is not known", field.id);
    }
    write_scalar(w, i, i.dst, value >> field.shift & ((u64{1} << field.bits) - 1));
}

void setreg(Wave& w, const Instruction& i) {
    const Field field = field_of(i);
    if (field.id != kModeRegister) {
        fault(-1, "hardware register {} can not be set", field.id);
    }
    const u64 mask = ((u64{1} << field.bits) - 1) << field.shift;
    const u64 value = require_scalar(w, i, i.src[0], "MODE");
    const auto mode = static_cast<std::uint32_t>((w.mode & ~mask) | (value << field.shift & mask));
    if ((mode ^ w.mode) != 0) {
        fault(-1, "MODE would become {:#x}; only {:#x} is known", mode, w.mode);
    }
}

constexpr Opcode op(std::string_view name, std::string_view form, Handler handler,
                    Category category = Category::salu) {
    return {name, form, handler, category, 0, nullptr, 0, 0};
}

constexpr Opcode kOpcodes[] = {
    op("s_branch", "!branch", jump, Category::branch),
    op("s_cbranch_scc0", "!branch", branch_scc<false>, Category::branch),
    op("s_cbranch_scc1", "!branch", branch_scc<true>, Category::branch),
    op("s_cbranch_vccz", "!branch", branch_vcc<true>, Category::branch),
    op("s_cbranch_vccnz", "!branch", branch_vcc<false>, Category::branch),
    op("s_cbranch_execz", "!branch", branch_exec<true>, Category::branch),
    op("s_cbranch_execnz", "!branch", branch_exec<false>, Category::branch),
    op("s_getpc_b64", "d:", getpc),
    op("s_setpc_b64", ":U", setpc, Category::branch),
    op("s_swappc_b64", "d:U", swappc, Category::branch),
    op("s_endpgm", ":", end_program, Category::wait),
    op("s_barrier", ":", barrier, Category::wait),
    op("s_trap", ":k", trap, Category::wait),
    op("s_nop", ":k", nothing, Category::wait),
    op("s_sleep", ":k", nothing, Category::wait),
    op("s_setprio", ":k", nothing, Category::wait),
    op("s_icache_inv", ":", nothing, Category::wait),
    op("s_waitcnt", "!waits", wait_for_memory, Category::wait),
    op("s_getreg_b32", "!hwreg", getreg),
    op("s_setreg_b32", "!hwreg", setreg),
    op("s_setreg_imm32_b32", "!hwreg", setreg),
};

}  // namespace

std::span<const Opcode> branch_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
