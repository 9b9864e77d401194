// Memory of one launch as late as it may be: what a kernel relies on without having asked for it, it does not
// get.
//
// Eight dies with an L2 each; work-group id % 8 is the die. Invariants, where "device" stands for sc1:
//  1. A store is in flight until its wave waits for it (s_waitcnt vmcnt). Only its own work-group sees it.
//  2. Then a plain store lies dirty in its die's L2: work-groups of that die see it, no others.
//     `buffer_wbl2 sc1` writes all dirty bytes of the die to memory; so does the end of the launch. It takes
//     the wave's own stores in flight along, not those of other waves.
//  3. A device store goes to memory, when it is waited for.
//  4. A plain load does not see what other dies changed in memory since the work-group's last acquire
//     (`buffer_inv sc1`); a work-group that made none starts with the last one of its die, or with the start
//     of the launch. So every line counts as stale that could be.
//  5. A device load sees memory, or what its own die or work-group has not written back yet.
//  6. A read-modify-write acts on memory, at once; bytes of its own die that are dirty there arrive before.
//  7. A scalar load sees memory as it was at the start of the launch, or at the work-group's last
//     s_dcache_inv: buffer_inv does not touch the scalar cache.
//  8. What a store leaves in flight arrives sooner or later without being waited for: tick().
// Every wave sees its own stores in their order, and nothing older than what it was promised.
//
// A launch that uses this runs on one host thread. What other streams do to the same memory meanwhile goes
// through no cache.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/sim/launch.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

class LateMemory {
  public:
    void start_group(WorkGroup& group) const;
    // Stores that are still in flight arrive.
    void end_group(WorkGroup& group);
    // To be called now and then. What was in flight at the last but one call arrives.
    void tick();
    // The end of the launch: everything reaches memory. Work-groups that have not ended must still be there.
    void finish();

    // `bytes` are at most 16; those of one lane.
    void load(const Wave& wave, std::uint64_t address, unsigned bytes, bool device, void* to);
    void store(const Wave& wave, std::uint64_t address, unsigned bytes, bool device, const void* from);
    void scalar_load(const Wave& wave, std::uint64_t address, unsigned bytes, void* to);
    // Around a read-modify-write of memory, whose bytes were `old` before.
    void before_update(const Wave& wave, std::uint64_t address, unsigned bytes);
    void after_update(const Wave& wave, std::uint64_t address, unsigned bytes, const void* old);

    void release(const Wave& wave);
    void acquire(const Wave& wave);
    void acquire_scalar(const Wave& wave);
    // Until no more than `left` of the wave's vector memory instructions are outstanding.
    void wait(const Wave& wave, unsigned left);

  private:
    static constexpr unsigned kLineBytes = 128;
    __extension__ using Mask = unsigned __int128;  // a bit a byte of a line
    struct Bytes {
        Mask mask = 0;
        std::uint8_t data[kLineBytes];
    };
    struct Dirty : Bytes {
        unsigned die = 0;
    };
    struct InFlight : Bytes {
        const WorkGroup* group = nullptr;
        Mask device = 0;  // bytes that go on to memory
    };
    struct Change : Bytes {  // what was in memory before
        std::uint64_t time = 0;
        unsigned die = 0;
    };
    struct Line {
        std::uint64_t address = 0;
        std::vector<Dirty> dirty;         // at most one a die
        std::vector<InFlight> in_flight;  // at most one a work-group
        std::vector<Change> changes;      // of memory, the oldest first
    };
    // Part of a store; bytes of the line that are no longer in flight have arrived already.
    struct Store {
        Line* line = nullptr;
        Mask mask = 0;
        std::uint64_t number = 0;  // of the instruction among the wave's vector memory instructions
        std::uint64_t tick = 0;
    };
    struct Queue {
        WorkGroup* group = nullptr;
        std::deque<Store> stores;
    };
    struct Part {
        std::uint64_t line;
        unsigned first, count;  // bytes of it
    };

    template <class Visit>
    static void for_parts(std::uint64_t address, unsigned bytes, Visit&& visit);
    static Mask mask_of(const Part& part);
    Line* find(std::uint64_t address);
    Line& make(std::uint64_t address);
    void to_l2(Line& line, unsigned die, Mask bytes, const std::uint8_t* data);
    void to_memory(Line& line, unsigned die, Mask bytes, const std::uint8_t* data);
    void note_change(Line& line, unsigned die, Mask bytes, const std::uint8_t* old);
    void arrive(const WorkGroup& group, const Store& store);
    void arrive_all(Queue& queue);
    void undo(const Line& line, Mask wanted, std::uint64_t since, int own_die, std::uint8_t* bytes) const;

    std::unordered_map<std::uint64_t, Line> lines_;  // by address
    std::uint64_t last_found_ = ~std::uint64_t{0};   // where the last search was, and what it found
    Line* last_line_ = nullptr;
    std::unordered_map<const Wave*, Queue> queues_;
    std::vector<Line*> dirty_lines_[kDies];
    std::uint64_t now_ = 0;            // counts changes of memory
    std::uint64_t last_acquire_ = 0;   // of any work-group
    std::uint64_t acquired_[kDies]{};  // when a work-group of the die last did
    std::uint64_t tick_ = 0;
};

}  // namespace kiln::sim
