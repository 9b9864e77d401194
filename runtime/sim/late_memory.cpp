#include "runtime/sim/late_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln::sim {
namespace {

using u8 = std::uint8_t;
using u64 = std::uint64_t;

// What the hardware can count as outstanding; a further instruction waits for the first.
constexpr u64 kOutstanding = 63;
// Of one line. Without the oldest, loads see a newer value than they could, which is legal too.
constexpr std::size_t kChangesKept = 512;

template <class Mask, class Visit>
void for_bytes(Mask mask, Visit&& visit) {
    for (unsigned half = 0; half < 2; ++half) {
        for (auto bits = static_cast<u64>(mask >> (64 * half)); bits != 0; bits &= bits - 1) {
            visit(64 * half + static_cast<unsigned>(std::countr_zero(bits)));
        }
    }
}

template <class Mask>
void copy_bytes(u8* to, const u8* from, Mask mask) {
    for_bytes(mask, [&](unsigned n) { to[n] = from[n]; });
}

}  // namespace

template <class Visit>
void LateMemory::for_parts(u64 address, unsigned bytes, Visit&& visit) {
    for (unsigned done = 0; done < bytes;) {
        const auto first = static_cast<unsigned>((address + done) % kLineBytes);
        const unsigned count = std::min(bytes - done, kLineBytes - first);
        visit(Part{address + done - first, first, count}, done);
        done += count;
    }
}

LateMemory::Mask LateMemory::mask_of(const Part& part) {
    return ((Mask{1} << part.count) - 1) << part.first;
}

LateMemory::Line* LateMemory::find(u64 address) {
    if (last_found_ != address) {
        const auto found = lines_.find(address);
        last_found_ = address;
        last_line_ = found == lines_.end() ? nullptr : &found->second;
    }
    return last_line_;
}

LateMemory::Line& LateMemory::make(u64 address) {
    if (Line* const line = find(address)) {
        return *line;
    }
    last_line_ = &lines_[address];
    last_line_->address = address;
    return *last_line_;
}

void LateMemory::start_group(WorkGroup& group) const {
    group.acquired = acquired_[group.xcc];
    group.scalar_acquired = 0;
}

void LateMemory::end_group(WorkGroup& group) {
    for (auto queue = queues_.begin(); queue != queues_.end();) {
        if (queue->second.group == &group) {
            arrive_all(queue->second);
            queue = queues_.erase(queue);
        } else {
            ++queue;
        }
    }
}

void LateMemory::tick() {
    ++tick_;
    for (auto& [wave, queue] : queues_) {
        while (!queue.stores.empty() && queue.stores.front().tick + 1 < tick_) {
            arrive(*queue.group, queue.stores.front());
            queue.stores.pop_front();
        }
    }
}

void LateMemory::finish() {
    for (auto& [wave, queue] : queues_) {
        arrive_all(queue);
    }
    for (unsigned die = 0; die < kDies; ++die) {
        for (Line* const line : dirty_lines_[die]) {
            for (const Dirty& dirty : line->dirty) {
                if (dirty.die == die) {
                    copy_bytes(reinterpret_cast<u8*>(line->address), dirty.data, dirty.mask);
                }
            }
            std::erase_if(line->dirty, [&](const Dirty& dirty) { return dirty.die == die; });
        }
        dirty_lines_[die].clear();
    }
}

// Of `bytes`, which hold what memory has now: makes those `wanted` what they were at `since`, but for what
// the own die changed.
void LateMemory::undo(const Line& line, Mask wanted, u64 since, int own_die, u8* bytes) const {
    for (auto change = line.changes.rbegin(); change != line.changes.rend() && wanted != 0; ++change) {
        if (change->time <= since) {
            return;
        }
        if (static_cast<int>(change->die) == own_die) {
            wanted &= ~change->mask;
        } else {
            copy_bytes(bytes, change->data, change->mask & wanted);
        }
    }
}

void LateMemory::load(const Wave& w, u64 address, unsigned bytes, bool device, void* to) {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    for_parts(address, bytes, [&](const Part& part, unsigned done) {
        const Line* const line = find(part.line);
        if (line == nullptr) {
            return;
        }
        const Mask wanted = mask_of(part);
        u8 seen[kLineBytes];
        u8* const result = static_cast<u8*>(to) + done;
        std::memcpy(seen + part.first, result, part.count);
        if (!device) {
            undo(*line, wanted, w.group->acquired, static_cast<int>(w.group->xcc), seen);
        }
        for (const Dirty& dirty : line->dirty) {
            if (dirty.die == w.group->xcc) {
                copy_bytes(seen, dirty.data, dirty.mask & wanted);
            }
        }
        for (const InFlight& flight : line->in_flight) {
            if (flight.group == w.group) {
                copy_bytes(seen, flight.data, flight.mask & wanted);
            }
        }
        std::memcpy(result, seen + part.first, part.count);
    });
}

void LateMemory::scalar_load(const Wave& w, u64 address, unsigned bytes, void* to) {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    for_parts(address, bytes, [&](const Part& part, unsigned done) {
        if (const Line* const line = find(part.line)) {
            u8 seen[kLineBytes];
            std::memcpy(seen + part.first, static_cast<u8*>(to) + done, part.count);
            undo(*line, mask_of(part), w.group->scalar_acquired, -1, seen);
            std::memcpy(static_cast<u8*>(to) + done, seen + part.first, part.count);
        }
    });
}

void LateMemory::store(const Wave& w, u64 address, unsigned bytes, bool device, const void* from) {
    const u64 number = w.executed[static_cast<int>(Category::vmem)];
    Queue& queue = queues_[&w];
    queue.group = w.group;
    while (!queue.stores.empty() && queue.stores.front().number + kOutstanding < number) {
        arrive(*w.group, queue.stores.front());
        queue.stores.pop_front();
    }
    for_parts(address, bytes, [&](const Part& part, unsigned done) {
        Line& line = make(part.line);
        auto flight = std::ranges::find(line.in_flight, w.group, &InFlight::group);
        if (flight == line.in_flight.end()) {
            flight = line.in_flight.emplace(line.in_flight.end());
            flight->group = w.group;
        }
        const Mask mask = mask_of(part);
        flight->mask |= mask;
        flight->device |= device ? mask : 0;
        std::memcpy(flight->data + part.first, static_cast<const u8*>(from) + done, part.count);
        if (!queue.stores.empty() && queue.stores.back().line == &line &&
            queue.stores.back().number == number) {
            queue.stores.back().mask |= mask;
        } else {
            queue.stores.push_back({&line, mask, number, tick_});
        }
    });
}

// The newest bytes of the work-group's go, so that two stores to one place leave the later one's value
// whichever is waited for first.
void LateMemory::arrive(const WorkGroup& group, const Store& store) {
    Line& line = *store.line;
    const auto flight = std::ranges::find(line.in_flight, &group, &InFlight::group);
    if (flight == line.in_flight.end()) {
        return;
    }
    const Mask bytes = flight->mask & store.mask;
    to_memory(line, group.xcc, bytes & flight->device, flight->data);
    to_l2(line, group.xcc, bytes & ~flight->device, flight->data);
    flight->mask &= ~bytes;
    flight->device &= ~bytes;
    if (flight->mask == 0) {
        line.in_flight.erase(flight);
    }
}

void LateMemory::arrive_all(Queue& queue) {
    for (const Store& store : queue.stores) {
        arrive(*queue.group, store);
    }
    queue.stores.clear();
}

void LateMemory::to_l2(Line& line, unsigned die, Mask bytes, const u8* data) {
    if (bytes == 0) {
        return;
    }
    auto dirty = std::ranges::find(line.dirty, die, &Dirty::die);
    if (dirty == line.dirty.end()) {
        dirty = line.dirty.emplace(line.dirty.end());
        dirty->die = die;
        dirty_lines_[die].push_back(&line);
    }
    dirty->mask |= bytes;
    copy_bytes(dirty->data, data, bytes);
}

void LateMemory::to_memory(Line& line, unsigned die, Mask bytes, const u8* data) {
    if (bytes == 0) {
        return;
    }
    auto* const memory = reinterpret_cast<u8*>(line.address);
    u8 old[kLineBytes];
    copy_bytes(old, memory, bytes);
    note_change(line, die, bytes, old);
    copy_bytes(memory, data, bytes);
    // What the die held there is older.
    for (Dirty& dirty : line.dirty) {
        dirty.mask &= dirty.die == die ? ~bytes : ~Mask{0};
    }
}

void LateMemory::note_change(Line& line, unsigned die, Mask bytes, const u8* old) {
    ++now_;
    // No work-group can have looked between the last change and this one: they are one.
    if (!line.changes.empty() && line.changes.back().die == die && line.changes.back().time > last_acquire_) {
        Change& last = line.changes.back();
        copy_bytes(last.data, old, bytes & ~last.mask);
        last.mask |= bytes;
        return;
    }
    if (line.changes.size() == kChangesKept) {
        line.changes.erase(line.changes.begin());
    }
    Change& change = line.changes.emplace_back();
    change.time = now_;
    change.die = die;
    change.mask = bytes;
    copy_bytes(change.data, old, bytes);
}

void LateMemory::before_update(const Wave& w, u64 address, unsigned bytes) {
    for_parts(address, bytes, [&](const Part& part, unsigned) {
        Line& line = make(part.line);
        const Mask mask = mask_of(part);
        arrive(*w.group, {&line, mask, 0, 0});
        for (const Dirty& dirty : line.dirty) {
            if (dirty.die == w.group->xcc) {
                to_memory(line, dirty.die, dirty.mask & mask, dirty.data);
                break;
            }
        }
    });
}

void LateMemory::after_update(const Wave& w, u64 address, unsigned bytes, const void* old) {
    for_parts(address, bytes, [&](const Part& part, unsigned done) {
        u8 before[kLineBytes];
        std::memcpy(before + part.first, static_cast<const u8*>(old) + done, part.count);
        note_change(make(part.line), w.group->xcc, mask_of(part), before);
    });
}

void LateMemory::release(const Wave& w) {
    if (const auto queue = queues_.find(&w); queue != queues_.end()) {
        arrive_all(queue->second);
    }
    const unsigned die = w.group->xcc;
    for (Line* const line : dirty_lines_[die]) {
        const auto dirty = std::ranges::find(line->dirty, die, &Dirty::die);
        const Dirty written = *dirty;
        line->dirty.erase(dirty);
        to_memory(*line, die, written.mask, written.data);
    }
    dirty_lines_[die].clear();
}

void LateMemory::acquire(const Wave& w) {
    w.group->acquired = acquired_[w.group->xcc] = last_acquire_ = now_;
}

void LateMemory::acquire_scalar(const Wave& w) {
    w.group->scalar_acquired = last_acquire_ = now_;
}

void LateMemory::wait(const Wave& w, unsigned left) {
    const auto found = queues_.find(&w);
    if (found == queues_.end()) {
        return;
    }
    const u64 issued = w.executed[static_cast<int>(Category::vmem)];
    auto& stores = found->second.stores;
    while (!stores.empty() && stores.front().number + left <= issued) {
        arrive(*w.group, stores.front());
        stores.pop_front();
    }
}

}  // namespace kiln::sim
