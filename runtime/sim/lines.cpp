#include "runtime/sim/lines.hpp"

namespace kiln::sim {
namespace {

using u8 = std::uint8_t;
using u64 = std::uint64_t;

// What was there before.
u8 mark(std::atomic<u8>& line, u8 die) {
    const u8 before = line.load(std::memory_order_relaxed);
    return (before & die) != 0 ? before : line.fetch_or(die, std::memory_order_relaxed);
}

void touch(Wave& w, u64 line, bool reads, bool writes) {
    constexpr unsigned kShift = LinesTouched::kRegionShift - kLineShift;
    LinesTouched::Region& region = w.group->lines->region(line >> kShift);
    const std::size_t n = line % LinesTouched::kLines;
    const auto die = static_cast<u8>(1u << w.group->xcc);
    if (reads) {
        const u8 before = mark(region.read[n], die);
        w.lines_read += before == 0 ? 1 : 0;
        w.die_lines_read += (before & die) == 0 ? 1 : 0;
    }
    if (writes) {
        w.lines_written += mark(region.written[n], die) == 0 ? 1 : 0;
    }
}

}  // namespace

LinesTouched::Region& LinesTouched::region(u64 number) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Region>& region = regions_[number];
    if (region == nullptr) {
        region = std::make_unique<Region>();
    }
    return *region;
}

void count_lines(Wave& w, const Addresses& a, unsigned bytes, AccessKind kind) {
    if (w.group->lines == nullptr) {
        return;
    }
    u64 lines[2 * kLanes];  // of this access
    unsigned count = 0;
    u64 last = ~u64{0};
    const auto add = [&](u64 line) {
        if (line == last) {
            return;
        }
        last = line;
        for (unsigned n = count; n > 0; --n) {
            if (lines[n - 1] == line) {
                return;
            }
        }
        lines[count++] = line;
    };
    for_lanes(a.lanes, [&](unsigned lane) {
        add(a.address[lane] >> kLineShift);
        add((a.address[lane] + bytes - 1) >> kLineShift);
    });
    w.line_requests += count;
    for (unsigned n = 0; n < count; ++n) {
        touch(w, lines[n], kind != AccessKind::store, kind != AccessKind::load);
    }
}

void count_lines_of_scalar_load(Wave& w, u64 address, unsigned bytes) {
    if (w.group->lines == nullptr) {
        return;
    }
    for (u64 line = address >> kLineShift; line <= (address + bytes - 1) >> kLineShift; ++line) {
        touch(w, line, true, false);
    }
}

}  // namespace kiln::sim
