// What comes before what: races.hpp has the rule.
#include <algorithm>

#include "runtime/sim/races.hpp"

namespace kiln::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using OthersPointer = std::shared_ptr<const OtherGroups>;

void later(WaveTimes& times, const WaveTimes& other) {
    for (unsigned n = 0; n < kMaxWaves; ++n) {
        times[n] = std::max(times[n], other[n]);
    }
}

void join(OthersPointer& known, const OthersPointer& more) {
    if (more == nullptr || more == known) {
        return;
    }
    if (known == nullptr) {
        known = more;
        return;
    }
    auto joined = std::make_shared<OtherGroups>(*known);
    for (const auto& [group, times] : *more) {
        later((*joined)[group], times);
    }
    known = std::move(joined);
}

void join(Known& known, const Known& more) {
    later(known.own, more.own);
    join(known.others, more.others);
}

using Seen = GroupRaces::WaveClock::Seen;

void add(std::vector<Seen>& all, const Seen& more) {
    const auto known = std::ranges::find(all, more.address, &Seen::address);
    if (known == all.end()) {
        all.push_back(more);
        return;
    }
    known->releases = std::max(known->releases, more.releases);
    known->acquired = std::max(known->acquired, more.acquired);
}

void advance(GroupRaces::WaveClock& wave) {
    ++wave.time;
    wave.segment = 0;
}

// Work that a wave waits for in a loop releases the same again and again.
constexpr std::size_t kLookBack = 16;

}  // namespace

void Races::start(GroupRaces& group, u64 index) {
    group.launch = this;
    group.index = static_cast<u32>(index);
    group.num_waves = num_waves_;
    std::fill_n(group.waves.begin(), num_waves_, GroupRaces::WaveClock{});
    group.before_barrier = segments_.size();
    if (group.lds.writer == nullptr) {
        group.lds = Stamps::make(lds_bytes_);
    }
    group.sync.clear();
}

void Races::barrier(GroupRaces& group) {
    Known before;
    ReleasePointer released;
    bool several = false;  // different releases
    std::vector<Seen> seen;
    for (unsigned n = 0; n < num_waves_; ++n) {
        GroupRaces::WaveClock& wave = group.waves[n];
        join(before, wave.before);
        before.own[n] = std::max(before.own[n], wave.time);
        several |= released != nullptr && wave.released != nullptr && wave.released != released;
        released = wave.released != nullptr ? wave.released : released;
        for (const Seen& one : wave.seen) {
            add(seen, one);
        }
    }
    if (several) {
        auto joined = std::make_shared<Release>();
        joined->group = group.index;
        for (unsigned n = 0; n < num_waves_; ++n) {
            if (group.waves[n].released != nullptr) {
                join(joined->known, group.waves[n].released->known);
            }
        }
        released = std::move(joined);
    }
    for (unsigned n = 0; n < num_waves_; ++n) {
        GroupRaces::WaveClock& wave = group.waves[n];
        wave.before = before;
        wave.released = released;
        wave.seen = seen;
        advance(wave);
    }
    group.before_barrier = segments_.size();
}

void Races::release(Wave& w) {
    GroupRaces& group = *w.group->races;
    GroupRaces::WaveClock& wave = group.waves[w.number];
    auto released = std::make_shared<Release>();
    released->group = group.index;
    released->known = wave.before;
    released->known.own[w.number] = wave.time;
    wave.released = std::move(released);
    advance(wave);
}

void Races::acquire(Wave& w) {
    GroupRaces& group = *w.group->races;
    GroupRaces::WaveClock& wave = group.waves[w.number];
    std::shared_ptr<OtherGroups> others;  // made when there is news
    const auto learn = [&](u32 of, const WaveTimes& times) {
        if (of == group.index) {
            later(wave.before.own, times);
            return;
        }
        if (others == nullptr) {
            others = wave.before.others != nullptr ? std::make_shared<OtherGroups>(*wave.before.others)
                                                   : std::make_shared<OtherGroups>();
        }
        later((*others)[of], times);
    };
    const OtherGroups* last = wave.before.others.get();  // whose entries are known
    for (Seen& seen : wave.seen) {
        for (; seen.acquired < seen.releases; ++seen.acquired) {
            const Release& release = *seen.address->releases[seen.acquired];
            learn(release.group, release.known.own);
            if (release.known.others != nullptr && release.known.others.get() != last) {
                last = release.known.others.get();
                for (const auto& [of, times] : *last) {
                    learn(of, times);
                }
            }
        }
    }
    if (others != nullptr) {
        wave.before.others = std::move(others);
    }
}

void Races::synchronise(Wave& w, const Instruction& i, const Addresses& a, AccessKind kind) {
    GroupRaces& group = *w.group->races;
    GroupRaces::WaveClock& wave = group.waves[w.number];
    const bool reads = kind == AccessKind::load || (kind == AccessKind::atomic && i.returns);
    const bool writes = kind != AccessKind::load;
    const bool on_device = kind == AccessKind::atomic || i.sc1;
    u64 last = 0;
    for_lanes(a.lanes, [&](unsigned lane) {
        const u64 address = a.address[lane];
        if (address == last) {
            return;
        }
        last = address;
        meet(group, w.number, address, reads, writes);
        if (!on_device) {
            return;
        }
        if (reads) {
            if (const auto found = sync_.find(address); found != sync_.end()) {
                add(wave.seen, {&found->second, found->second.releases.size(), 0});
            }
        }
        if (writes && wave.released != nullptr) {
            auto& releases = sync_[address].releases;
            const auto recent = releases.size() > kLookBack ? releases.end() - kLookBack : releases.begin();
            if (std::find(recent, releases.end(), wave.released) == releases.end()) {
                releases.push_back(wave.released);
            }
        }
    });
    if (writes) {
        advance(wave);
    }
}

void Races::meet(GroupRaces& group, unsigned number, u64 address, bool reads, bool writes) const {
    if (num_waves_ == 1) {
        return;
    }
    GroupRaces::WaveClock& wave = group.waves[number];
    if (reads) {
        if (const auto found = group.sync.find(address); found != group.sync.end()) {
            later(wave.before.own, found->second);
        }
    }
    if (writes) {
        WaveTimes& there = group.sync[address];
        later(there, wave.before.own);
        there[number] = std::max(there[number], wave.time);
    }
}

void Races::synchronise_lds(Wave& w, const Instruction& i, u64 lanes, const u32* address) {
    GroupRaces& group = *w.group->races;
    for_lanes(lanes, [&](unsigned lane) {
        meet(group, w.number, address[lane], i.opcode->form.ends_with("_rtn"), true);
    });
    advance(group.waves[w.number]);
}

bool Races::ordered(const GroupRaces& group, unsigned number, const Segment& other) {
    const Known& before = group.waves[number].before;
    if (other.group == group.index) {
        return other.wave == number || before.own[other.wave] >= other.time;
    }
    const OthersPointer& others = before.others;
    if (others == nullptr) {
        return false;
    }
    const auto known = others->find(other.group);
    return known != others->end() && known->second[other.wave] >= other.time;
}

}  // namespace kiln::sim
