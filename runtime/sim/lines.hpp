// Which lines of memory a launch touches, each counted once however often it is touched: what it must move at
// the least.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/sim/access.hpp"

namespace kiln::sim {

inline constexpr unsigned kLineShift = 7;  // 128 bytes

// Of one launch. Thread safe.
class LinesTouched {
  public:
    static constexpr unsigned kRegionShift = 18;
    static constexpr std::size_t kLines = std::size_t{1} << (kRegionShift - kLineShift);
    // A byte a line, of which each bit is a die.
    struct Region {
        std::array<std::atomic<std::uint8_t>, kLines> read{}, written{};
    };
    // Of addresses >> kRegionShift. Lives as long as this.
    [[nodiscard]] Region& region(std::uint64_t number);

  private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Region>> regions_;  // protected by mutex_
};

// One thread's way to them, which remembers some regions.
struct LineCounter {
    explicit LineCounter(LinesTouched& of) : touched(&of) {}
    LinesTouched::Region& region(std::uint64_t number) {
        Entry& entry = entries[number % std::size(entries)];
        if (entry.region == nullptr || entry.number != number) [[unlikely]] {
            entry = {number, &touched->region(number)};
        }
        return *entry.region;
    }

    struct Entry {
        std::uint64_t number = 0;
        LinesTouched::Region* region = nullptr;
    };
    LinesTouched* touched;
    Entry entries[16];
};

// Adds to the wave's counts the lines that an access touches; nothing where its work-group has no counter.
void count_lines(Wave& wave, const Addresses& addresses, unsigned bytes, AccessKind kind);
void count_lines_of_scalar_load(Wave& wave, std::uint64_t address, unsigned bytes);

}  // namespace kiln::sim
