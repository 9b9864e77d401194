#include "runtime/sim/access.hpp"

#include "runtime/sim/fault.hpp"
#include "runtime/sim/late_memory.hpp"

namespace kiln::sim {

bool find_range(Wave& w, std::uint64_t address, std::uint64_t bytes) {
    if (w.group->memory == nullptr) {
        return false;
    }
    const Memory::Range range = w.group->memory->find(address);
    if (!range.contains(address, bytes)) {
        return false;
    }
    w.ranges[w.next_range] = range;
    w.next_range = (w.next_range + 1) % Wave::kCachedRanges;
    return true;
}

namespace {

void check_addresses(Wave& w, const Addresses& a, unsigned bytes, unsigned align) {
    std::uint64_t low = ~std::uint64_t{0}, high = 0, bits = 0;
    for_lanes(a.lanes, [&](unsigned lane) {
        const std::uint64_t address = a.address[lane];
        low = address < low ? address : low;
        high = address > high ? address : high;
        bits |= address;
    });
    // Almost always all lanes are in one range.
    if ((bits & (align - 1)) == 0 && high - low < (std::uint64_t{1} << 47) &&
        may_touch(w, low, high - low + bytes)) {
        return;
    }
    for_lanes(a.lanes, [&](unsigned lane) {
        const std::uint64_t address = a.address[lane];
        if (!may_touch(w, address, bytes)) {
            fault_address(static_cast<int>(lane), bytes, address);
        }
        if ((address & (align - 1)) != 0) {
            fault(static_cast<int>(lane), "{} bytes at {:#x} are misaligned: {} is wanted", bytes, address,
                  align);
        }
    });
}

}  // namespace

void begin_access(Wave& w, const Instruction& i, const Addresses& a, unsigned bytes, unsigned align,
                  AccessKind kind) {
    if (a.lanes == 0) {
        return;
    }
    check_addresses(w, a, bytes, align);
    if (kind == AccessKind::atomic || (kind == AccessKind::load && i.sc1)) {
        const std::uint64_t address = a.address[std::countr_zero(a.lanes)];
        w.group->polls += address == w.last_poll ? 1 : 0;
        w.last_poll = address;
    }
}

void read_late(Wave& w, const Instruction& i, std::uint64_t address, unsigned bytes, void* to) {
    w.group->late->load(w, address, bytes, i.sc1, to);
}

void write_late(Wave& w, const Instruction& i, std::uint64_t address, unsigned bytes, const void* from) {
    w.group->late->store(w, address, bytes, i.sc1, from);
}

void release(Wave& w, const Instruction& i) {
    if (i.sc1 && w.group->late != nullptr) {
        w.group->late->release(w);
    }
}

void acquire(Wave& w, const Instruction& i) {
    if (i.sc1 && w.group->late != nullptr) {
        w.group->late->acquire(w);
    }
}

void wait_for_memory(Wave& w, const Instruction& i) {
    if (i.offset >= 0 && w.group->late != nullptr) {
        w.group->late->wait(w, static_cast<unsigned>(i.offset));
    }
}

void write_narrow(Wave& w, const Instruction&, unsigned row, unsigned lane, std::uint32_t value,
                  DataShape shape) {
    if (shape.sign) {
        value = shape.bytes == 1 ? static_cast<std::uint32_t>(static_cast<std::int8_t>(value))
                                 : static_cast<std::uint32_t>(static_cast<std::int16_t>(value));
    }
    std::uint32_t& dword = w.rows[row][lane];
    if (!shape.d16) {
        dword = value;
    } else if (shape.high) {
        dword = (dword & 0xffff) | value << 16;
    } else {
        dword = (dword & 0xffff0000u) | (value & 0xffff);
    }
}

void finish_narrow(Wave& w, const Instruction& i, unsigned row, std::uint64_t lanes, DataShape shape) {
    mark_bytes(w, i, row, !shape.d16 ? 0xf : shape.high ? 0xc : 0x3, lanes, 0);
}

namespace {

template <unsigned Dwords>
void load_dwords(Wave& w, const Instruction& i, unsigned row, const Addresses& from) {
    std::uint32_t(*d)[kLanes] = w.rows + row;
    for_lanes(from.lanes, [&](unsigned lane) {
        std::uint32_t value[Dwords];
        read_global(w, i, from.address[lane], sizeof value, value);
        for (unsigned n = 0; n < Dwords; ++n) {
            d[n][lane] = value[n];
        }
    });
    for (unsigned n = 0; n < Dwords; ++n) {
        w.defined[row + n] |= from.lanes;
    }
}

template <unsigned Dwords>
void store_dwords(Wave& w, const Instruction& i, unsigned row, const Addresses& to) {
    const std::uint32_t(*d)[kLanes] = w.rows + row;
    for_lanes(to.lanes, [&](unsigned lane) {
        std::uint32_t value[Dwords];
        for (unsigned n = 0; n < Dwords; ++n) {
            value[n] = d[n][lane];
        }
        write_global(w, i, to.address[lane], sizeof value, value);
    });
}

}  // namespace

void load_lanes(Wave& w, const Instruction& i, const Operand& data, const Addresses& from, DataShape shape) {
    begin_access(w, i, from, shape.bytes, alignment(shape.bytes), AccessKind::load);
    switch (shape.bytes) {
        case 4:
            return load_dwords<1>(w, i, data.index, from);
        case 8:
            return load_dwords<2>(w, i, data.index, from);
        case 12:
            return load_dwords<3>(w, i, data.index, from);
        case 16:
            return load_dwords<4>(w, i, data.index, from);
        default:
            for_lanes(from.lanes, [&](unsigned lane) {
                std::uint16_t value = 0;
                read_global(w, i, from.address[lane], shape.bytes, &value);
                write_narrow(w, i, data.index, lane, value, shape);
            });
            finish_narrow(w, i, data.index, from.lanes, shape);
    }
}

void store_lanes(Wave& w, const Instruction& i, const Operand& data, const Addresses& to, DataShape shape) {
    begin_access(w, i, to, shape.bytes, alignment(shape.bytes), AccessKind::store);
    const unsigned first = shape.high ? 2 : 0;
    for (unsigned n = 0; n < shape.dwords(); ++n) {
        require_row(w, i, data.index + n, to.lanes,
                    shape.bytes < 4 ? ((1u << shape.bytes) - 1) << first : 0xf, "the data to store");
    }
    switch (shape.bytes) {
        case 4:
            return store_dwords<1>(w, i, data.index, to);
        case 8:
            return store_dwords<2>(w, i, data.index, to);
        case 12:
            return store_dwords<3>(w, i, data.index, to);
        case 16:
            return store_dwords<4>(w, i, data.index, to);
        default:
            for_lanes(to.lanes, [&](unsigned lane) {
                const auto value = static_cast<std::uint16_t>(w.rows[data.index][lane] >> (8 * first));
                write_global(w, i, to.address[lane], shape.bytes, &value);
            });
    }
}

}  // namespace kiln::sim
