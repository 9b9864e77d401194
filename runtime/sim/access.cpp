#include "runtime/sim/access.hpp"

#include "runtime/sim/fault.hpp"
#include "runtime/sim/late_memory.hpp"
#include "runtime/sim/lds_banks.hpp"
#include "runtime/sim/lines.hpp"
#include "runtime/sim/memory.hpp"
#include "runtime/sim/races.hpp"

namespace kiln::sim {

const Range* find_range(Wave& w, std::uint64_t address, std::uint64_t bytes) {
    if (w.group->memory == nullptr) {
        return nullptr;
    }
    const Range range = w.group->memory->find(address);
    if (!range.contains(address, bytes)) {
        return nullptr;
    }
    Range& kept = w.ranges[w.next_range];
    kept = range;
    w.next_range = w.next_range + 1 == Wave::kCachedRanges ? Wave::kFixedRanges : w.next_range + 1;
    return &kept;
}

void fault_address(const Wave& w, int lane, std::uint64_t bytes, std::uint64_t address) {
    const auto freed = w.group->memory != nullptr ? w.group->memory->find_freed(address) : std::nullopt;
    throw Fault{freed ? fmt::format("{} bytes at {:#x} are inside of an allocation that was freed: {} bytes "
                                    "at {:#x}",
                                    bytes, address, freed->end - freed->begin, freed->begin)
                      : fmt::format("{} bytes at {:#x} are outside every allocation", bytes, address),
                lane, true};
}

namespace {

// The range in which all lanes lie; null when there are several.
const Range* check_addresses(Wave& w, const Addresses& a, unsigned bytes, unsigned align) {
    std::uint64_t low = ~std::uint64_t{0}, high = 0, bits = 0;
    for_lanes(a.lanes, [&](unsigned lane) {
        const std::uint64_t address = a.address[lane];
        low = address < low ? address : low;
        high = address > high ? address : high;
        bits |= address;
    });
    if ((bits & (align - 1)) == 0 && high - low < (std::uint64_t{1} << 47)) {
        // Almost always all lanes are in one range.
        if (const Range* range = range_of(w, low, high - low + bytes)) [[likely]] {
            return range;
        }
    }
    for_lanes(a.lanes, [&](unsigned lane) {
        const std::uint64_t address = a.address[lane];
        if (range_of(w, address, bytes) == nullptr) {
            fault_address(w, static_cast<int>(lane), bytes, address);
        }
        if ((address & (align - 1)) != 0) {
            fault(static_cast<int>(lane), "{} bytes at {:#x} are misaligned: {} is wanted", bytes, address,
                  align);
        }
    });
    return nullptr;
}

// Calls visit(lane, map) for every lane: where the map of its range has the lane's first byte, or null when
// the range has none.
template <class Visit>
void for_maps(Wave& w, const Addresses& a, unsigned bytes, Visit&& visit) {
    Range range;
    for_lanes(a.lanes, [&](unsigned lane) {
        const std::uint64_t address = a.address[lane];
        if (!range.contains(address, bytes)) {
            range = *range_of(w, address, bytes);
        }
        visit(lane, range.written != nullptr ? range.written_at(address) : nullptr);
    });
}

bool all_written(const std::uint8_t* map, unsigned bytes) {
    unsigned all = 0xff;
    for (unsigned n = 0; n < bytes; ++n) {
        all &= map[n];
    }
    return all == 0xff;
}

void note_writes(Wave& w, const Addresses& a, unsigned bytes) {
    for_maps(w, a, bytes, [&](unsigned, std::uint8_t* map) {
        if (map != nullptr) {
            std::memset(map, 0xff, bytes);
        }
    });
}

constexpr std::uint8_t kWritten[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

}  // namespace

bool begin_access(Wave& w, const Instruction& i, const Addresses& a, unsigned bytes, unsigned align,
                  AccessKind kind) {
    if (a.lanes == 0) {
        return false;
    }
    const Range* const range = check_addresses(w, a, bytes, align);
    const bool mapped = range == nullptr || range->written != nullptr;
    count_lines(w, a, bytes, kind);
    if (mapped && kind == AccessKind::store) {
        note_writes(w, a, bytes);
    }
    if (kind == AccessKind::atomic || (kind == AccessKind::load && i.sc1)) {
        const std::uint64_t address = a.address[std::countr_zero(a.lanes)];
        w.group->polls += address == w.last_poll ? 1 : 0;
        w.last_poll = address;
    }
    if (w.group->races != nullptr) [[unlikely]] {
        w.group->races->launch->memory(w, i, a, bytes, kind);
    }
    return mapped;
}

void finish_load(Wave& w, const Instruction& i, unsigned row, const Addresses& from, DataShape shape) {
    const std::uint8_t* written[kLanes];
    std::uint64_t missing = 0;
    for_maps(w, from, shape.bytes, [&](unsigned lane, const std::uint8_t* map) {
        written[lane] = map != nullptr ? map : kWritten;
        if (map != nullptr && !all_written(map, shape.bytes)) {
            missing |= std::uint64_t{1} << lane;
        }
    });
    if (missing == 0) {
        return;
    }
    const auto lane = static_cast<unsigned>(std::countr_zero(missing));
    std::uint64_t first = from.address[lane];
    for (const std::uint8_t* byte = written[lane]; *byte != 0; ++byte) {
        ++first;
    }
    mark_loaded(w, row, from.lanes, written, shape.bytes, shape.row_bytes(),
                {&i, kOriginMemory, first & ((std::uint64_t{1} << 48) - 1)});
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
    if (i.sc1 && w.group->races != nullptr) {
        w.group->races->launch->release(w);
    }
}

void acquire(Wave& w, const Instruction& i) {
    if (i.sc1 && w.group->late != nullptr) {
        w.group->late->acquire(w);
    }
    if (i.sc1 && w.group->races != nullptr) {
        w.group->races->launch->acquire(w);
    }
}

void wait_for_memory(Wave& w, const Instruction& i) {
    if (i.offset >= 0 && w.group->late != nullptr) {
        w.group->late->wait(w, static_cast<unsigned>(i.offset));
    }
}

void finish_atomic(Wave& w, const Instruction& i, const Addresses& a, unsigned bytes, bool replaces) {
    if (i.returns) {
        finish_load(w, i, i.dst.index, a, {bytes});
    }
    if (replaces) {
        note_writes(w, a, bytes);
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

namespace {

void move_to_rows(Wave& w, const Instruction& i, unsigned row, const Addresses& from, DataShape shape) {
    switch (shape.bytes) {
        case 4:
            return load_dwords<1>(w, i, row, from);
        case 8:
            return load_dwords<2>(w, i, row, from);
        case 12:
            return load_dwords<3>(w, i, row, from);
        case 16:
            return load_dwords<4>(w, i, row, from);
        default:
            for_lanes(from.lanes, [&](unsigned lane) {
                std::uint16_t value = 0;
                read_global(w, i, from.address[lane], shape.bytes, &value);
                write_narrow(w, i, row, lane, value, shape);
            });
            finish_narrow(w, i, row, from.lanes, shape);
    }
}

}  // namespace

void load_lanes(Wave& w, const Instruction& i, const Operand& data, const Addresses& from, DataShape shape) {
    const bool mapped = begin_access(w, i, from, shape.bytes, alignment(shape.bytes), AccessKind::load);
    move_to_rows(w, i, data.index, from, shape);
    if (mapped) {
        finish_load(w, i, data.index, from, shape);
    }
}

void load_lanes_to_lds(Wave& w, const Instruction& i, const Addresses& from, std::uint64_t active,
                       DataShape shape) {
    if (~w.sgprs_defined[kM0] != 0) {
        fault_undefined(w, i, "M0", -1, origin_of_sgpr(w, i, kM0));
    }
    const bool mapped = begin_access(w, i, from, shape.bytes, alignment(shape.bytes), AccessKind::load);
    const std::uint64_t base =
        (w.sgprs[kM0] & 0x3ffffu) + static_cast<std::uint64_t>(static_cast<std::int64_t>(i.offset));
    const unsigned stride = shape.bytes < 4 ? 4 : shape.bytes;
    const auto target = [&](unsigned lane) { return base + std::uint64_t{lane} * stride; };
    for_lanes(active, [&](unsigned lane) {
        const std::uint64_t to = target(lane);
        if (to + stride > w.group->lds_bytes) {
            fault(static_cast<int>(lane), "{} bytes at {} are outside of the {} bytes of LDS", stride, to,
                  w.group->lds_bytes);
        }
        std::uint32_t value[4] = {};
        if (from.lanes >> lane & 1) {
            read_global(w, i, from.address[lane], shape.bytes, value);
        }
        std::memcpy(w.group->lds + to, value, stride);
        std::memset(w.group->lds_written + to, 0xff, stride);
    });
    std::uint32_t address[kLanes] = {};
    for_lanes(active, [&](unsigned lane) { address[lane] = static_cast<std::uint32_t>(target(lane)); });
    count_lds(w, active, address, stride, AccessKind::store);
    if (w.group->races != nullptr) [[unlikely]] {
        w.group->races->launch->lds(w, i, active, address, stride, AccessKind::store);
    }
    if (mapped) {
        for_maps(w, from, shape.bytes, [&](unsigned lane, const std::uint8_t* map) {
            if (map != nullptr) {
                std::memcpy(w.group->lds_written + target(lane), map, shape.bytes);
            }
        });
    }
    w.global_read += static_cast<std::uint64_t>(std::popcount(from.lanes)) * shape.bytes;
    w.lds_written += static_cast<std::uint64_t>(std::popcount(active)) * stride;
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
