// Whose turn it is: runs work-groups on one host thread, several at a time where they wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/sim/groups.hpp"
#include "runtime/sim/launch.hpp"
#include "runtime/sim/lines.hpp"
#include "runtime/sim/machine.hpp"
#include "runtime/sim/races.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

// Everything is a function of the launch and the order (on one thread), so a run that failed can be repeated.
//
// At first one work-group is in flight (interleaved: a few), and it is run to its end. When none ends
// although waves keep looking at the device's memory, more join, until as many are in flight as the machine
// holds.
class Schedule {
  public:
    // `lines` are the launch's. `late`, `races`: null, or the launch's. `max_in_flight`: at most, on this
    // thread.
    Schedule(const Launch& launch, const Memory& memory, const MachineConfig& config, Groups& groups,
             LinesTouched& lines, LateMemory* late, Races* races, std::uint64_t max_in_flight);

    // Until no work-group is left to start and none is in flight. What they executed.
    device::ExecutionCounts run();

  private:
    // A work-group in flight, and the room for it, which others have after it.
    struct Flight {
        WorkGroup group;
        std::unique_ptr<Wave[]> waves;
        std::vector<std::uint8_t> lds, written;
        GroupRaces races;
        std::uint64_t place = 0;
        std::vector<unsigned> order;  // of its waves
    };
    // A wave that can go on.
    struct Ready {
        Flight* flight;
        unsigned wave;
    };

    void take_turns();
    void interleave();
    // Starts work-groups until enough are in flight.
    void fill();
    [[nodiscard]] std::unique_ptr<Flight> make_flight();
    void begin(Flight& flight, Groups::Start start);
    // One turn of each of its waves. False when it has ended, by itself or not.
    bool pass(Flight& flight, std::uint32_t turn);
    // One turn of one wave. False when the work-group must not go on.
    bool turn_of(Flight& flight, unsigned wave, std::uint32_t limit);
    // Ranges that waves remember may be over.
    void forget_ranges();
    // Takes one that ended out of flights_.
    void recycle(std::size_t flight);
    // Lets more join when those in flight seem to wait for one that has not started.
    void consider_more();

    // Constant after construction.
    const Launch& launch_;
    const Memory& memory_;
    const MachineConfig& config_;
    Groups& groups_;
    LineCounter lines_;
    LateMemory* const late_;
    Races* const races_;
    const std::uint64_t max_in_flight_;
    const unsigned num_waves_;

    std::uint64_t generation_;  // of the memory, that the waves' ranges are of
    Dice dice_;
    std::uint64_t wanted_ = 1;  // in flight
    std::vector<std::unique_ptr<Flight>> flights_, free_;
    std::uint64_t executed_ = 0, polls_ = 0;  // since one last ended or joined
    unsigned waits_ = 0;
    bool stranded_ = false;  // those in flight wait for one that broke a rule
    device::ExecutionCounts counts_;
};

}  // namespace kiln::sim
