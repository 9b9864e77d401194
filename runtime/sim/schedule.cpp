#include "runtime/sim/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/sim/counts.hpp"
#include "runtime/sim/late_memory.hpp"
#include "runtime/sim/program.hpp"

namespace kiln::sim {
namespace {

// Instructions of one turn: alone, and of one among several in flight.
constexpr std::uint32_t kTurn = 1u << 16, kSharedTurn = 1u << 10;
// Interleaved: a wave goes on for 1, 2, 4 .. instructions, each as likely, so that waves keep abreast as well
// as fall behind; so many work-groups at first, as long as their waves fit.
constexpr unsigned kRunLengths = 9;
constexpr std::uint64_t kFirstGroups = 16, kFirstWaves = 256;
// Interleaved: between two looks at stores in flight.
constexpr std::uint64_t kTick = 1u << 12;
// Looks at the device's memory, and instructions of a wave, after which those in flight seem to wait; and
// instructions after which it is worth a try anyway.
constexpr std::uint64_t kManyPolls = 64, kPatience = 1u << 12, kLongPatience = 1u << 26;
// Once a work-group broke a rule: so often do others seem to wait before they are taken to wait for that one.
constexpr unsigned kStrandedAfter = 16;

}  // namespace

Schedule::Schedule(const Launch& launch, const Memory& memory, const MachineConfig& config, Groups& groups,
                   LinesTouched& lines, LateMemory* late, Races* races, std::uint64_t max_in_flight)
    : launch_(launch),
      memory_(memory),
      config_(config),
      groups_(groups),
      lines_(lines),
      late_(late),
      races_(races),
      max_in_flight_(max_in_flight),
      num_waves_(launch.num_waves()),
      generation_(memory.generation()),
      dice_(config.order.seed) {}

device::ExecutionCounts Schedule::run() {
    if (config_.order.kind == RunOrder::interleave) {
        interleave();
    } else {
        take_turns();
    }
    return counts_;
}

void Schedule::take_turns() {
    for (fill(); !flights_.empty(); fill()) {
        if (late_ != nullptr) {
            late_->tick();
        }
        const std::uint32_t turn = flights_.size() == 1 ? kTurn : kSharedTurn;
        for (std::size_t n = 0; n < flights_.size();) {
            if (pass(*flights_[n], turn)) {
                ++n;
            } else {
                recycle(n);
            }
        }
        consider_more();
    }
}

void Schedule::interleave() {
    wanted_ = std::clamp<std::uint64_t>(kFirstWaves / num_waves_, 1, 2 + dice_.below(kFirstGroups - 1));
    std::vector<Ready> ready;
    const auto gather = [&] {
        ready.clear();
        for (const auto& flight : flights_) {
            for (unsigned wave = 0; wave < num_waves_; ++wave) {
                if (!flight->waves[wave].stopped) {
                    ready.push_back({flight.get(), wave});
                }
            }
        }
    };
    std::uint64_t next_tick = 0, steps = 0;
    for (fill(), gather(); !ready.empty();) {
        const std::size_t pick = dice_.below(ready.size());
        const auto [flight, wave] = ready[pick];
        const std::uint32_t length = 1u << dice_.below(kRunLengths);
        steps += length;
        if (steps >= next_tick) {
            next_tick = steps + kTick;
            if (late_ != nullptr) {
                late_->tick();
            }
            const std::size_t before = flights_.size();
            consider_more();
            fill();
            if (flights_.size() != before) {
                gather();
                continue;
            }
        }
        const bool goes_on = turn_of(*flight, wave, length);
        if (goes_on && !flight->waves[wave].stopped) {
            continue;
        }
        const GroupState state =
            goes_on ? settle_group({flight->waves.get(), num_waves_}) : GroupState::ended;
        if (state == GroupState::running) {
            ready[pick] = ready.back();
            ready.pop_back();
            continue;
        }
        if (state == GroupState::ended) {
            recycle(static_cast<std::size_t>(
                std::ranges::find(flights_, flight, &std::unique_ptr<Flight>::get) - flights_.begin()));
            fill();
        }
        gather();
    }
}

void Schedule::fill() {
    while (flights_.size() < wanted_) {
        const auto start = groups_.next();
        if (!start) {
            return;
        }
        if (free_.empty()) {
            free_.push_back(make_flight());
        }
        flights_.push_back(std::move(free_.back()));
        free_.pop_back();
        begin(*flights_.back(), *start);
    }
}

std::unique_ptr<Schedule::Flight> Schedule::make_flight() {
    auto flight = std::make_unique<Flight>();
    flight->waves.reset(new Wave[num_waves_]);
    // Never empty, so that there is an address.
    flight->lds.resize(launch_.lds_bytes() + 1);
    flight->written.resize(launch_.lds_bytes() + 1);
    flight->group.lds = flight->lds.data();
    flight->group.lds_written = flight->written.data();
    flight->group.memory = &memory_;
    flight->group.matrix_order = config_.matrix_order;
    flight->group.late = late_;
    flight->group.lines = &lines_;
    flight->order.resize(num_waves_);
    std::iota(flight->order.begin(), flight->order.end(), 0u);
    if (config_.order.kind == RunOrder::descending) {
        std::ranges::reverse(flight->order);
    }
    return flight;
}

void Schedule::begin(Flight& flight, Groups::Start start) {
    flight.place = start.place;
    launch_.start_group(start.index, flight.group);
    for (unsigned n = 0; n < num_waves_; ++n) {
        launch_.start_wave(flight.group, n, flight.waves[n]);
        flight.waves[n].group = &flight.group;
    }
    if (late_ != nullptr) {
        late_->start_group(flight.group);
    }
    if (races_ != nullptr) {
        races_->start(flight.races, start.index);
        flight.group.races = &flight.races;
    }
}

bool Schedule::pass(Flight& flight, std::uint32_t turn) {
    if (config_.order.kind == RunOrder::shuffle) {
        for (unsigned n = num_waves_; n > 1; --n) {
            std::swap(flight.order[n - 1], flight.order[dice_.below(n)]);
        }
    }
    for (const unsigned wave : flight.order) {
        if (!flight.waves[wave].stopped && !turn_of(flight, wave, turn)) {
            return false;
        }
    }
    return settle_group({flight.waves.get(), num_waves_}) != GroupState::ended;
}

bool Schedule::turn_of(Flight& flight, unsigned wave, std::uint32_t limit) {
    const std::string& kernel = launch_.kernel().name;
    if (stranded_) [[unlikely]] {
        return false;
    }
    if (groups_.unwanted(flight.place)) [[unlikely]] {
        groups_.fail(flight.place, {{ErrorCode::device_failed, Stage::device,
                                     fmt::format("kernel {}: stopped before its end", kernel)}});
        return false;
    }
    if (const std::uint64_t now = memory_.generation(); now != generation_) [[unlikely]] {
        generation_ = now;
        forget_ranges();
    }
    auto executed = run_wave_turn(flight.waves[wave], limit, kernel);
    if (!executed) {
        groups_.fail(flight.place, std::move(executed.error()));
        return false;
    }
    executed_ += *executed;
    return true;
}

void Schedule::forget_ranges() {
    for (const auto& flight : flights_) {
        for (unsigned wave = 0; wave < num_waves_; ++wave) {
            std::fill(flight->waves[wave].ranges + Wave::kFixedRanges, std::end(flight->waves[wave].ranges),
                      Range{});
        }
    }
}

void Schedule::recycle(std::size_t n) {
    Flight& flight = *flights_[n];
    if (late_ != nullptr) {
        late_->end_group(flight.group);
    }
    for (unsigned wave = 0; wave < num_waves_; ++wave) {
        add(counts_, flight.waves[wave]);
    }
    ++counts_.work_groups;
    flight.group.polls = 0;
    executed_ = polls_ = waits_ = 0;
    free_.push_back(std::move(flights_[n]));
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(n));
}

void Schedule::consider_more() {
    for (const auto& flight : flights_) {
        polls_ += std::exchange(flight->group.polls, 0);
    }
    const bool seem_to_wait = polls_ >= kManyPolls && executed_ >= kPatience * num_waves_ * flights_.size();
    if (!seem_to_wait && executed_ < kLongPatience) {
        return;
    }
    executed_ = polls_ = 0;
    if (groups_.failed() && seem_to_wait) {
        stranded_ = ++waits_ >= kStrandedAfter;
    } else if (flights_.size() == wanted_) {
        wanted_ = std::min(seem_to_wait ? 2 * wanted_ : wanted_ + 1, max_in_flight_);
    }
}

}  // namespace kiln::sim
