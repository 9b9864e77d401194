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
    for_lanes(lanes, [&](unsigned lane) {
        access.lane = static_cast<int>(lane);
        access.address = address[lane];
        touch(access, access.group->lds, address[lane], bytes);
    });
    if (kind == AccessKind::atomic && num_waves_ > 1) {
        synchronise_lds(w, i, lanes, address);
    }
}

void Races::memory(Wave& w, const Instruction& i, const Addresses& a, unsigned bytes, AccessKind kind) {
    const u64 atomicity = kind == AccessKind::atomic || i.sc1 ? kOnDevice : i.sc0 ? kInGroup : kPlain;
    Access access = begin(w, kind, bytes, atomicity);
    for_lanes(a.lanes, [&](unsigned lane) {
        access.lane = static_cast<int>(lane);
        access.address = a.address[lane];
        Watched& watched = watched_at(w, a.address[lane], bytes);
        touch(access, watched.stamps, a.address[lane] - watched.begin, bytes);
    });
    if (atomicity != kPlain) {
        synchronise(w, i, a, kind);
    }
}

void Races::scalar_load(Wave& w, u64 address, unsigned bytes) {
    Access access = begin(w, AccessKind::load, bytes, kPlain);
    access.address = address;
    Watched& watched = watched_at(w, address, bytes);
    touch(access, watched.stamps, address - watched.begin, bytes);
}

Races::Watched& Races::watched_at(Wave& w, u64 address, unsigned bytes) {
    for (Watched& watched : watched_) {
        if (address >= watched.begin && address < watched.end) {
            if (&watched != watched_.data()) {
                std::swap(watched, watched_.front());
            }
            return watched_.front();
        }
    }
    const Memory::Range range = *range_of(w, address, bytes);
    // Dwords are counted from an aligned address, whatever the range's own is.
    const std::uintptr_t begin = range.begin & ~std::uintptr_t{3};
    watched_.push_back({begin, range.end, Stamps::make(range.end - begin)});
    std::swap(watched_.back(), watched_.front());
    return watched_.front();
}

void Races::touch(const Access& access, Stamps& stamps, std::size_t offset, unsigned bytes) {
    const std::size_t first = offset / 4;
    if (bytes < 4) {
        touch_dword(access, stamps, first, ((1u << bytes) - 1) << (offset & 3));
        return;
    }
    // Nearly always nobody else was here since the last barrier.
    const u64 own = access.clock->segment, mine = access.stamp | 0xf, first_live = access.first_live;
    const auto is_free = [&](u64 stamp) { return stamp < first_live || segment_of(stamp) == own; };
    const std::size_t end = first + bytes / 4;
    bool free = !stamps.has_writer2;
    for (std::size_t n = first; n < end; ++n) {
        free &= is_free(stamps.writer[n]);
        if (access.writes) {
            free &= is_free(stamps.reader[n]) && is_free(stamps.reader2[n]);
        }
    }
    for (std::size_t n = first; n < end; ++n) {
        if (!free) {
            touch_dword(access, stamps, n, 0xf);
        } else if (access.writes) {
            stamps.writer[n] = mine;
        } else if (is_free(stamps.reader[n])) {
            stamps.reader[n] = mine;
        } else if (is_free(stamps.reader2[n])) {
            stamps.reader2[n] = mine;
        } else if (!access.in_lds) {
            touch_dword(access, stamps, n, 0xf);
        }
    }
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
        return;
    }
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
