// The accesses: who touched which dword last, and the error. Their order is race_order.cpp's.
#include "runtime/sim/races.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/sim/code.hpp"
#include "runtime/sim/fault.hpp"

namespace kiln::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A stamp, from its low end: bytes of the dword (a bit each), atomicity, instruction, segment.
constexpr unsigned kAtomicityShift = 4, kInstructionShift = 6, kSegmentShift = 24;
constexpr u64 kMaxInstruction = (u64{1} << (kSegmentShift - kInstructionShift)) - 1;

constexpr unsigned bytes_of(u64 stamp) {
    return stamp & 0xf;
}
constexpr u64 atomicity_of(u64 stamp) {
    return stamp >> kAtomicityShift & 3;
}
constexpr u64 instruction_of(u64 stamp) {
    return stamp >> kInstructionShift & kMaxInstruction;
}
constexpr u64 segment_of(u64 stamp) {
    return stamp >> kSegmentShift;
}

// Calls visit(lane, address, length) for the lanes, neighbours that access consecutive bytes together: the
// first one's number and address, and the bytes of all. Accesses of less than a dword stay alone.
template <class Address, class Visit>
void for_runs(u64 lanes, const Address* address, unsigned bytes, Visit&& visit) {
    while (lanes != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(lanes));
        unsigned end = first + 1;
        while (end < kLanes && bytes >= 4 && (lanes >> end & 1) != 0 &&
               address[end] == address[end - 1] + bytes) {
            ++end;
        }
        visit(first, u64{address[first]}, std::size_t{end - first} * bytes);
        lanes &= end == kLanes ? 0 : ~u64{0} << end;
    }
}

// How far an access is atomic.
enum : u64 { kPlain = 0, kInGroup = 1, kOnDevice = 2 };

}  // namespace

// One access of a wave while it is compared and recorded.
struct Races::Access {
    Wave* wave;
    GroupRaces* group;
    GroupRaces::WaveClock* clock;
    u64 stamp;       // without bytes
    u64 first_live;  // stamps below it are nobody's, or come before
    bool writes;
    bool in_lds;
    unsigned bytes;
    // Of the lane at hand, for the message.
    int lane = -1;
    u64 address = 0;
    // Whether other segments come before: the last two that were asked for.
    struct Known {
        u64 segment = 0;
        bool ordered = false;
    };
    Known known[2] = {};
    unsigned next_known = 0;
};

Stamps Stamps::make(std::size_t bytes) {
    const std::size_t dwords = bytes / 4 + 2;  // an allocation may end within a dword
    Stamps stamps;
    stamps.pages = Pages::map(4 * dwords * sizeof(u64));
    if (stamps.pages.data() == nullptr) {
        fault(-1, "the host has no {} bytes of memory to look for races with", 4 * dwords * sizeof(u64));
    }
    u64* const first = static_cast<u64*>(stamps.pages.data());
    stamps.writer = first;
    stamps.reader = first + dwords;
    stamps.writer2 = first + 2 * dwords;
    stamps.reader2 = first + 3 * dwords;
    return stamps;
}

Races::Access Races::begin(Wave& w, AccessKind kind, unsigned bytes, u64 atomicity) {
    GroupRaces& group = *w.group->races;
    GroupRaces::WaveClock& clock = group.waves[w.number];
    if (clock.segment == 0) {
        clock.segment = segments_.size();
        segments_.push_back({group.index, clock.time, static_cast<std::uint8_t>(w.number)});
    }
    const u64 instruction = std::min<u64>(w.pc - 1, kMaxInstruction);  // pc is at the next one
    Access access{};
    access.wave = &w;
    access.group = &group;
    access.clock = &clock;
    access.stamp =
        clock.segment << kSegmentShift | instruction << kInstructionShift | atomicity << kAtomicityShift;
    access.first_live = u64{1} << kSegmentShift;
    access.writes = kind != AccessKind::load;
    access.bytes = bytes;
    return access;
}

void Races::lds(Wave& w, const Instruction& i, u64 lanes, const u32* address, unsigned bytes,
                AccessKind kind) {
    Access access = begin(w, kind, bytes, kind == AccessKind::atomic ? kOnDevice : kPlain);
    access.first_live = access.group->before_barrier << kSegmentShift;
    access.in_lds = true;
    for_runs(lanes, address, bytes, [&](unsigned lane, u64 first, std::size_t length) {
        access.lane = static_cast<int>(lane);
        access.address = first;
        touch(access, access.group->lds, first, length);
    });
    if (kind == AccessKind::atomic && num_waves_ > 1) {
        synchronise_lds(w, i, lanes, address);
    }
}

void Races::memory(Wave& w, const Instruction& i, const Addresses& a, unsigned bytes, AccessKind kind) {
    const u64 atomicity = kind == AccessKind::atomic || i.sc1 ? kOnDevice : i.sc0 ? kInGroup : kPlain;
    Access access = begin(w, kind, bytes, atomicity);
    for_runs(a.lanes, a.address, bytes, [&](unsigned lane, u64 first, std::size_t length) {
        access.lane = static_cast<int>(lane);
        touch_memory(access, first, length);
    });
    if (atomicity != kPlain) {
        synchronise(w, i, a, kind);
    }
}

void Races::scalar_load(Wave& w, u64 address, unsigned bytes) {
    Access access = begin(w, AccessKind::load, bytes, kPlain);
    touch_memory(access, address, bytes);
}

// Bytes that follow each other may lie in several ranges.
void Races::touch_memory(Access& access, u64 address, std::size_t length) {
    for (int lane = access.lane; length != 0;) {
        Watched& watched = watched_at(*access.wave, address);
        const std::size_t here = std::min<std::size_t>(length, watched.end - address);
        access.lane = lane;
        access.address = address;
        touch(access, watched.stamps, address - watched.begin, here);
        address += here;
        length -= here;
        lane += static_cast<int>(here / access.bytes);
    }
}

Races::Watched& Races::watched_at(Wave& w, u64 address) {
    for (Watched& watched : watched_) {
        if (address >= watched.begin && address < watched.end) {
            if (&watched != watched_.data()) {
                std::swap(watched, watched_.front());
            }
            return watched_.front();
        }
    }
    const Range range = *range_of(w, address, 1);
    // Dwords are counted from an aligned address, whatever the range's own is.
    const std::uintptr_t begin = range.begin & ~std::uintptr_t{3};
    watched_.push_back({begin, range.end, Stamps::make(range.end - begin)});
    std::swap(watched_.back(), watched_.front());
    return watched_.front();
}

namespace {

// Whether all of them are of one segment.
bool alike(const u64* stamps, std::size_t count) {
    u64 differences = 0;
    for (std::size_t n = 1; n < count; ++n) {
        differences |= stamps[n] ^ stamps[0];
    }
    return segment_of(differences) == 0;
}

}  // namespace

void Races::touch(Access& access, Stamps& stamps, std::size_t offset, std::size_t length) {
    const std::size_t first = offset / 4;
    if (length < 4) {
        touch_dword(access, stamps, first, ((1u << length) - 1) << (offset & 3));
        return;
    }
    const std::size_t count = length / 4;
    u64 *const writer = stamps.writer + first, *const reader = stamps.reader + first,
               *const reader2 = stamps.reader2 + first;
    const u64 own = access.clock->segment, mine = access.stamp | 0xf, first_live = access.first_live;
    const auto is_free = [&](u64 stamp) { return stamp < first_live || segment_of(stamp) == own; };
    const auto write = [&](std::size_t n, std::size_t dwords) {
        std::fill_n(writer + n, dwords, mine);
        stamps.has_writer = true;
    };
    const auto read = [&](std::size_t n, std::size_t dwords) {
        if (is_free(reader[n])) {
            std::fill_n(reader + n, dwords, mine);
        } else if (is_free(reader2[n]) || can_replace(access, reader2[n])) {
            std::fill_n(reader2 + n, dwords, mine);
            stamps.has_reader2 = true;
        } else if (can_replace(access, reader[n])) {
            std::fill_n(reader + n, dwords, mine);
        }
    };
    const auto is_unwritten = [&](std::size_t n) { return !stamps.has_writer || is_free(writer[n]); };
    const auto is_unread = [&](std::size_t n) {
        return is_free(reader[n]) && (!stamps.has_reader2 || is_free(reader2[n]));
    };
    // Nearly always neighbours have the same past, and nobody else wrote here since the last barrier.
    if (!stamps.has_writer2 && (!stamps.has_writer || alike(writer, count)) && alike(reader, count) &&
        (!stamps.has_reader2 || alike(reader2, count)) && is_unwritten(0)) {
        if (!access.writes) {
            return read(0, count);
        }
        if (is_unread(0)) {
            return write(0, count);
        }
    }
    const u64 address = access.address;
    const int lane = access.lane;
    for (std::size_t n = 0; n < count; ++n) {
        const bool unwritten = !stamps.has_writer2 && is_unwritten(n);
        if (unwritten && !access.writes) {
            read(n, 1);
        } else if (unwritten && is_unread(n)) {
            write(n, 1);
        } else {
            // The lane whose dword it is, for the message.
            const std::size_t lanes = 4 * n / access.bytes;
            access.address = address + lanes * access.bytes;
            access.lane = lane < 0 ? lane : lane + static_cast<int>(lanes);
            touch_dword(access, stamps, first + n, 0xf);
        }
    }
}

// Whether what a live reader of another segment did comes before, so that it need not be kept. Asked again
// and again of a few: of many work-groups that read the same, the first two stay.
bool Races::can_replace(Access& access, u64 stamp) const {
    if (access.in_lds) {
        return false;
    }
    const u64 segment = segment_of(stamp);
    for (const Access::Known& known : access.known) {
        if (known.segment == segment) {
            return known.ordered;
        }
    }
    const bool before = ordered(access, stamp);
    access.known[access.next_known] = {segment, before};
    access.next_known ^= 1;
    return before;
}

namespace {

// Records `mine` where `kept` is the same segment's, adding the bytes; false when it is another's.
bool merge(u64& kept, u64 mine) {
    if (segment_of(kept) != segment_of(mine)) {
        return false;
    }
    const u64 atomicity = std::min(atomicity_of(kept), atomicity_of(mine));
    kept = (mine & ~(u64{3} << kAtomicityShift)) | atomicity << kAtomicityShift | bytes_of(kept);
    return true;
}

}  // namespace

void Races::touch_dword(const Access& access, Stamps& stamps, std::size_t n, unsigned mask) {
    const u64 mine = access.stamp | mask;
    check(access, stamps.writer[n], mask);
    check(access, stamps.writer2[n], mask);
    if (access.writes) {
        check(access, stamps.reader[n], mask);
        check(access, stamps.reader2[n], mask);
        if (merge(stamps.writer[n], mine)) {
            return;
        }
        // Another writer's bytes beside these stay known.
        if (stamps.writer[n] >= access.first_live && (bytes_of(stamps.writer[n]) & ~mask) != 0) {
            stamps.writer2[n] = stamps.writer[n];
            stamps.has_writer2 = true;
        }
        stamps.writer[n] = mine;
        stamps.has_writer = true;
        return;
    }
    stamps.has_reader2 = true;
    for (u64* reader : {&stamps.reader[n], &stamps.reader2[n]}) {
        if (merge(*reader, mine)) {
            return;
        }
        if (*reader < access.first_live || ordered(access, *reader)) {
            *reader = mine;
            return;
        }
    }
}

bool Races::ordered(const Access& access, u64 stamp) const {
    return ordered(*access.group, access.wave->number, segments_[segment_of(stamp)]);
}

void Races::check(const Access& access, u64 stamp, unsigned mask) const {
    if (stamp < access.first_live || (bytes_of(stamp) & mask) == 0 || ordered(access, stamp)) {
        return;
    }
    const Segment& other = segments_[segment_of(stamp)];
    const u64 enough = other.group == access.group->index ? kInGroup : kOnDevice;
    if (atomicity_of(stamp) >= enough && atomicity_of(access.stamp) >= enough) {
        return;
    }
    report(access, stamp);
}

void Races::report(const Access& access, u64 stamp) const {
    const Segment& other = segments_[segment_of(stamp)];
    const Code& code = *access.wave->code;
    const u64 index = instruction_of(stamp);
    const Instruction* const instruction = index < std::min<u64>(code.instructions.size(), kMaxInstruction)
                                               ? &code.instructions[index]
                                               : nullptr;
    const std::string who =
        other.group == access.group->index
            ? fmt::format("wave {} of the same work-group", other.wave)
            : fmt::format("work-group ({}, {}, {}), wave {}", other.group % grid_.x,
                          other.group / grid_.x % grid_.y, other.group / grid_.x / grid_.y, other.wave);
    fault(
        access.lane, "a race: {} bytes at {} are touched by '{}' at offset {} of {} too; {}", access.bytes,
        access.in_lds ? fmt::format("LDS address {}", access.address) : fmt::format("{:#x}", access.address),
        instruction != nullptr ? instruction->text : "an instruction far down",
        instruction != nullptr ? instruction->text_offset : 0, who,
        other.group == access.group->index
            ? "no barrier lies between"
            : "no release, atomic access and acquire at device scope put one before the other");
}

}  // namespace kiln::sim
