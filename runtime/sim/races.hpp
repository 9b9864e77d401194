// Races: two accesses to the same bytes of LDS or of memory by different waves, of which at least one writes,
// at least one is plain, and which nothing orders.
//
// Order, the memory model's as the hardware keeps it (a thread is a wave). Access A precedes access B when
//   - one wave made both, A first;
//   - both waves are of one work-group and a barrier lies between;
//   - both waves are of one work-group, and after A one of them did an atomic operation that the other's,
//     before B, saw;
//   - or, for any waves: after A its wave released at device scope (buffer_wbl2 sc1); then it, or a wave that
//     a barrier put after the release, wrote an address atomically; a wave read what was written there
//     atomically; then it, or a wave that a barrier put after it, acquired (buffer_inv sc1), before B;
//   - and by chains of these.
// Atomic are read-modify-write operations, and loads and stores with sc1; those with sc0 alone are so among
// waves of one work-group. Two atomic accesses do not race. In LDS only read-modify-write is told from plain
// access: a flag in LDS that is set by an atomic store is reported.
//
// One launch is watched by itself: its start comes after everything before, its end before everything after.
// What is forgotten (of many readers of a dword two are kept, of many writers of its parts two) may hide a
// race, never invent one. Not thread safe: such a launch runs on one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/sim/access.hpp"
#include "runtime/sim/pages.hpp"

namespace kiln::sim {

// Waves of a work-group: 1024 work-items in 64 lanes.
inline constexpr unsigned kMaxWaves = 16;

// A wave's accesses carry its time, which moves on whenever something learns of those before.
using WaveTimes = std::array<std::uint32_t, kMaxWaves>;
using OtherGroups = std::map<std::uint32_t, WaveTimes>;

// Accesses, by the times up to which those of each wave are meant.
struct Known {
    WaveTimes own{};  // of the work-group itself
    std::shared_ptr<const OtherGroups> others;
};
// What was released, by a wave of that work-group.
struct Release {
    std::uint32_t group = 0;
    Known known;
};
using ReleasePointer = std::shared_ptr<const Release>;

// An address that was written atomically: what had been released by those who wrote, in order.
struct SyncAddress {
    std::vector<ReleasePointer> releases;
};

// Who accessed the dwords of a stretch of LDS or memory last: stamps, a plane for each of two writers and two
// readers. Planes of which nothing is known yet are not looked at, so that they take no pages: most memory is
// only ever read, and most of that by one.
struct Stamps {
    std::uint64_t *writer = nullptr, *writer2 = nullptr, *reader = nullptr, *reader2 = nullptr;
    bool has_writer = false, has_writer2 = false, has_reader2 = false;
    Pages pages;

    // Zeroed. Throws Fault when the system has no pages.
    static Stamps make(std::size_t bytes);
};

class Races;

// Of one work-group in flight.
struct GroupRaces {
    struct WaveClock {
        std::uint32_t time = 1;
        std::uint64_t segment = 0;  // number of (group, wave, time); 0: not given yet
        Known before;               // what comes before the wave's next access
        ReleasePointer released;    // null: nothing
        struct Seen {
            const SyncAddress* address;
            std::size_t releases;  // of the address, that were read
            std::size_t acquired;  // of those
        };
        std::vector<Seen> seen;
    };

    Races* launch = nullptr;
    std::uint32_t index = 0;
    unsigned num_waves = 0;
    std::array<WaveClock, kMaxWaves> waves;
    std::uint64_t before_barrier = 1;  // segments below it that are this group's come before everything now
    Stamps lds;
    // By address, of LDS or of memory: what atomic operations of this group on it have seen of its waves.
    std::unordered_map<std::uint64_t, WaveTimes> sync;
};

// Of one launch. Calls that find a race throw Fault.
class Races {
  public:
    Races(device::Dim3 grid, unsigned num_waves, std::uint32_t lds_bytes)
        : grid_(grid), num_waves_(num_waves), lds_bytes_(lds_bytes) {}

    // `group` may have been another before.
    void start(GroupRaces& group, std::uint64_t index);
    void barrier(GroupRaces& group);

    // What wave `w` does. LDS addresses and those of memory were checked.
    void lds(Wave& w, const Instruction& i, std::uint64_t lanes, const std::uint32_t* address, unsigned bytes,
             AccessKind kind);
    void memory(Wave& w, const Instruction& i, const Addresses& addresses, unsigned bytes, AccessKind kind);
    void scalar_load(Wave& w, std::uint64_t address, unsigned bytes);
    void release(Wave& w);
    void acquire(Wave& w);

  private:
    struct Segment {
        std::uint32_t group, time;
        std::uint8_t wave;
    };
    struct Watched {
        std::uintptr_t begin, end;
        Stamps stamps;
    };
    struct Access;

    Access begin(Wave& w, AccessKind kind, unsigned bytes, std::uint64_t atomicity);
    Watched& watched_at(Wave& w, std::uint64_t address);
    void touch_memory(Access& access, std::uint64_t address, std::size_t length);
    // Consecutive bytes: whole dwords, or less than one.
    void touch(Access& access, Stamps& stamps, std::size_t offset, std::size_t length);
    void touch_dword(const Access& access, Stamps& stamps, std::size_t dword, unsigned mask);
    void check(const Access& access, std::uint64_t stamp, unsigned mask) const;
    [[noreturn]] void report(const Access& access, std::uint64_t stamp) const;

    void synchronise(Wave& w, const Instruction& i, const Addresses& addresses, AccessKind kind);
    void synchronise_lds(Wave& w, const Instruction& i, std::uint64_t lanes, const std::uint32_t* address);
    void meet(GroupRaces& group, unsigned wave, std::uint64_t address, bool reads, bool writes) const;
    [[nodiscard]] bool ordered(const Access& access, std::uint64_t stamp) const;
    [[nodiscard]] bool can_replace(Access& access, std::uint64_t stamp) const;
    [[nodiscard]] static bool ordered(const GroupRaces& group, unsigned wave, const Segment& other);

    const device::Dim3 grid_;
    const unsigned num_waves_;
    const std::uint32_t lds_bytes_;
    std::vector<Segment> segments_{Segment{}};             // 0 is nobody's
    std::vector<Watched> watched_;                         // the last one used first
    std::unordered_map<std::uint64_t, SyncAddress> sync_;  // by address
};

}  // namespace kiln::sim
