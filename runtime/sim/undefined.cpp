#include "runtime/sim/undefined.hpp"

#include <bit>

#include "runtime/sim/fault.hpp"

namespace kiln::sim {
namespace {

// Bits of a dword from bits for its bytes.
std::uint32_t spread(unsigned bytes) {
    std::uint32_t bits = 0;
    for (unsigned n = 0; n < 4; ++n) {
        bits |= (bytes >> n & 1 ? 0xffu : 0) << (8 * n);
    }
    return bits;
}
unsigned whole_bytes(std::uint32_t bits) {
    unsigned bytes = 0;
    for (unsigned n = 0; n < 4; ++n) {
        bytes |= ((bits >> (8 * n) & 0xff) == 0xff ? 1u : 0) << n;
    }
    return bytes;
}

struct LaneSource {
    std::uint32_t value = 0;
    std::uint32_t defined = ~0u;  // bits
};

LaneSource lane_source(const Wave& w, const Operand& o, unsigned lane) {
    LaneSource s;
    if (o.kind == Operand::vgpr) {
        s.value = w.rows[o.index][lane];
        unsigned bytes = 0;
        for (unsigned n = 0; n < 4; ++n) {
            bytes |= static_cast<unsigned>(w.byte_defined(o.index, n) >> lane & 1) << n;
        }
        s.defined = spread(bytes);
    } else if (o.kind == Operand::sgpr) {
        s.value = w.sgprs[o.index];
        s.defined = w.sgprs_defined[o.index];
    } else if (o.kind == Operand::constant) {
        s.value = o.row[lane];
    }
    return s;
}

// Sixteen-bit sources are read in their low half only.
std::uint32_t bits_read(std::string_view form, unsigned source) {
    const char letter = form[form.find(':') + 1 + source];
    return letter == 'i' || letter == 'h' || letter == 'b' ? 0xffffu : ~0u;
}

unsigned num_sources(std::string_view form) {
    return static_cast<unsigned>(form.size() - form.find(':') - 1);
}

// Tries both values of every undefined bit at once: where each result bit depends on one bit a source, two
// patterns a source with undefined bits are all there is.
unsigned bitwise_bytes(const Instruction& i, const LaneSource (&s)[3], unsigned count) {
    std::uint32_t same = ~0u;
    const auto evaluate = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
        if (i.opcode->bitwise != nullptr) {
            return i.opcode->bitwise(x, y, z);
        }
        std::uint32_t value = 0;
        for (unsigned n = 0; n < 8; ++n) {
            if (i.offset >> n & 1) {
                value |= (n & 4 ? x : ~x) & (n & 2 ? y : ~y) & (n & 1 ? z : ~z);
            }
        }
        return value;
    };
    std::uint32_t first = 0;
    for (unsigned pattern = 0; pattern < 1u << count; ++pattern) {
        std::uint32_t v[3] = {};
        for (unsigned n = 0; n < count; ++n) {
            v[n] = (s[n].value & s[n].defined) | (pattern >> n & 1 ? ~s[n].defined : 0);
        }
        const std::uint32_t result = evaluate(v[0], v[1], v[2]);
        first = pattern == 0 ? result : first;
        same &= ~(first ^ result);
    }
    return whole_bytes(same);
}

}  // namespace

void follow_undefined(Wave& w, const Instruction& i, std::uint64_t lanes) {
    const Origin origin = origin_of(w, i, lanes);
    const std::string_view form = i.opcode->form;
    const unsigned count = num_sources(form);
    const bool table = (i.opcode->flags & kBitTable) != 0;
    const unsigned row = i.dst.index;
    std::uint64_t bytes_of_lanes[4] = {};
    for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
        const unsigned lane = static_cast<unsigned>(std::countr_zero(left));
        LaneSource s[3];
        bool whole = true, exact_ok = true;
        for (unsigned n = 0; n < count && n < 3; ++n) {
            s[n] = lane_source(w, i.src[n], lane);
            const bool used_ok = (~s[n].defined & bits_read(form, n)) == 0;
            whole &= used_ok;
            exact_ok &= used_ok || (i.opcode->exact_operands >> n & 1) == 0;
        }
        unsigned bytes = 0;
        if (whole) {
            bytes = 0xf;
        } else if ((i.opcode->bitwise != nullptr || table) && exact_ok) {
            bytes = bitwise_bytes(i, s, count);
        }
        for (unsigned n = 0; n < 4; ++n) {
            bytes_of_lanes[n] |= static_cast<std::uint64_t>(bytes >> n & 1) << lane;
        }
    }
    w.defined[row] &= ~lanes;
    w.defined[row] |= bytes_of_lanes[0] & bytes_of_lanes[1] & bytes_of_lanes[2] & bytes_of_lanes[3];
    for (unsigned n = 0; n < 4; ++n) {
        w.bytes_defined[row][n] = (w.bytes_defined[row][n] & ~lanes) | bytes_of_lanes[n];
    }
    w.origins[row] = origin;
}

void mark_undefined(Wave& w, const Instruction&, unsigned row, std::uint64_t lanes) {
    w.defined[row] &= ~lanes;
    for (auto& mask : w.bytes_defined[row]) {
        mask &= ~lanes;
    }
}

void mark_bytes(Wave& w, const Instruction& i, unsigned row, unsigned bytes, std::uint64_t written,
                std::uint64_t undefined) {
    if (undefined == 0 && (written & ~w.defined[row]) == 0) {
        return;
    }
    if (undefined != 0) {
        w.origins[row] = origin_of(w, i, undefined);
    }
    std::uint64_t all = ~std::uint64_t{0};
    for (unsigned n = 0; n < 4; ++n) {
        std::uint64_t mask = w.byte_defined(row, n);
        if (bytes >> n & 1) {
            mask = (mask & ~written) | (written & ~undefined);
        }
        w.bytes_defined[row][n] = mask;
        all &= mask;
    }
    w.defined[row] = all;
}

void mark_loaded(Wave& w, unsigned row, std::uint64_t lanes, const std::uint8_t* const (&written)[kLanes],
                 unsigned bytes, unsigned row_bytes, Origin origin) {
    for (unsigned dword = 0; dword < (bytes + 3) / 4; ++dword) {
        std::uint64_t ok[4] = {};
        for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            const unsigned count = bytes < 4 ? bytes : 4;
            unsigned mask = 0;
            for (unsigned n = 0; n < count; ++n) {
                mask |= (written[lane][4 * dword + n] != 0 ? 1u : 0) << n;
            }
            if (bytes < 4) {
                mask = mask == (1u << bytes) - 1 ? 0xf : 0;
            }
            for (unsigned n = 0; n < 4; ++n) {
                ok[n] |= static_cast<std::uint64_t>(mask >> n & 1) << lane;
            }
        }
        std::uint64_t all = ~std::uint64_t{0};
        for (unsigned n = 0; n < 4; ++n) {
            std::uint64_t mask = w.byte_defined(row + dword, n);
            if (row_bytes >> n & 1) {
                mask = (mask & ~lanes) | ok[n];
            }
            w.bytes_defined[row + dword][n] = mask;
            all &= mask;
        }
        w.defined[row + dword] = all;
        w.origins[row + dword] = origin;
    }
}

Origin origin_of_row(const Wave& w, const Instruction& i, unsigned row) {
    const Origin origin = w.origins[row];
    return origin.reader != nullptr ? origin : Origin{&i, static_cast<std::uint16_t>(row)};
}

Origin origin_of_sgpr(const Wave& w, const Instruction& i, unsigned number) {
    const Origin origin = w.sgpr_origins[number];
    return origin.reader != nullptr ? origin : Origin{&i, static_cast<std::uint16_t>(kOriginSgpr + number)};
}

Origin origin_of(const Wave& w, const Instruction& i, std::uint64_t lanes) {
    for (const Operand& o : i.src) {
        for (unsigned n = 0; n < o.dwords; ++n) {
            if (o.kind == Operand::vgpr && (lanes & ~w.defined[o.index + n])) {
                return origin_of_row(w, i, o.index + n);
            }
            if (o.kind == Operand::sgpr && w.sgprs_defined[o.index + n] != ~0u) {
                return origin_of_sgpr(w, i, o.index + n);
            }
        }
    }
    return {};
}

void fault_undefined(const Wave&, const Instruction& i, const char* what, int lane, Origin origin) {
    if (origin.reader == nullptr) {
        fault(lane, "{} is undefined: it depends on what nothing wrote", what);
    }
    std::string name;
    if (origin.what >= kOriginMemory) {
        name = fmt::format("memory at {:#x}", std::uint64_t{origin.address});
    } else if (origin.what >= kOriginLds) {
        name = "LDS bytes";
    } else if (origin.what >= kOriginSgpr) {
        const unsigned number = origin.what - kOriginSgpr;
        name = number == kM0                         ? "m0"
               : number >= kVcc && number < kVcc + 2 ? "vcc"
                                                     : fmt::format("s{}", number);
    } else if (origin.what < kAccRow) {
        name = fmt::format("v{}", origin.what);
    } else if (origin.what < kScratchRow) {
        name = fmt::format("a{}", origin.what - kAccRow);
    } else {
        name = "an operand";
    }
    if (origin.reader == &i) {
        fault(lane, "{} is undefined: {} was never written", what, name);
    }
    fault(lane, "{} is undefined: it depends on {}, never written, which '{}' at offset {} read", what, name,
          origin.reader->text, origin.reader->text_offset);
}

void require_row_slowly(const Wave& w, const Instruction& i, unsigned row, std::uint64_t lanes,
                        unsigned bytes, const char* what) {
    for (unsigned n = 0; n < 4; ++n) {
        const std::uint64_t missing = bytes >> n & 1 ? lanes & ~w.byte_defined(row, n) : 0;
        if (missing != 0) {
            fault_undefined(w, i, what, std::countr_zero(missing), origin_of_row(w, i, row));
        }
    }
}

}  // namespace kiln::sim
