#include "runtime/sim/lds_banks.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace kiln::sim {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Lanes in the order in which phases take them.
using Order = std::array<u8, kLanes>;

constexpr Order neighbours() {
    Order order{};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        order[lane] = static_cast<u8>(lane);
    }
    return order;
}

constexpr Order phases_of_wide_reads() {
    Order order{};
    unsigned next = 0;
    for (unsigned half = 0; half < kLanes; half += 32) {
        for (const bool first : {true, false}) {
            for (unsigned lane = 0; lane < 32; ++lane) {
                const bool in_first = lane < 4 || (lane >= 12 && lane < 16) || (lane >= 20 && lane < 28);
                if (in_first == first) {
                    order[next++] = static_cast<u8>(half + lane);
                }
            }
        }
    }
    return order;
}

constexpr Order kNeighbours = neighbours(), kWideReads = phases_of_wide_reads();

// Of `count` lanes, the most different words that fall on one of `Slots` slots, a slot being the banks that
// one word takes. A word is 4 << Shift - 2 bytes.
template <unsigned Shift, unsigned Slots>
unsigned deepest(u64 lanes, const u32* address, const u8* order, unsigned count, unsigned words,
                 bool shared) {
    u32 kept[Slots][3 * kLanes];
    u8 number[Slots] = {};
    unsigned most = 0;
    for (unsigned n = 0; n < count; ++n) {
        if ((lanes >> order[n] & 1) == 0) {
            continue;
        }
        for (unsigned part = 0; part < words; ++part) {
            const u32 word = (address[order[n]] >> Shift) + part, slot = word % Slots;
            u32* const there = kept[slot];
            if (shared && std::find(there, there + number[slot], word) != there + number[slot]) {
                continue;
            }
            there[number[slot]++] = word;
            most = std::max<unsigned>(most, number[slot]);
        }
    }
    return most;
}

// Phases of `Count` lanes whose accesses take one word each.
template <unsigned Shift, unsigned Slots, unsigned Count>
LdsCost phases(u64 lanes, const u32* address, const Order& order, bool shared) {
    static_assert(Slots <= 32);
    LdsCost cost{kLanes / Count, 0};
    for (unsigned first = 0; first < kLanes; first += Count) {
        // Nearly always every lane of a phase has a slot of its own.
        u32 taken = 0;
        int active = 0;
        for (unsigned n = first; n < first + Count; ++n) {
            const u32 takes_part = lanes >> order[n] & 1;
            taken |= takes_part << (address[order[n]] >> Shift & (Slots - 1));
            active += static_cast<int>(takes_part);
        }
        if (std::popcount(taken) != active) {
            cost.conflicts +=
                deepest<Shift, Slots>(lanes, address, order.data() + first, Count, 1, shared) - 1;
        }
    }
    cost.cycles += cost.conflicts;
    return cost;
}

// Of 96 bits: 8 lanes take three of 32 banks each.
LdsCost phases_of_three(u64 lanes, const u32* address, bool shared) {
    constexpr unsigned kCount = 8;
    LdsCost cost{kLanes / kCount, 0};
    for (unsigned first = 0; first < kLanes; first += kCount) {
        const unsigned most = deepest<2, 32>(lanes, address, kNeighbours.data() + first, kCount, 3, shared);
        cost.conflicts += most > 1 ? most - 1 : 0;
    }
    cost.cycles += cost.conflicts;
    return cost;
}

}  // namespace

LdsCost lds_cost(u64 lanes, const u32* address, unsigned bytes, AccessKind kind) {
    const bool reads = kind == AccessKind::load;
    switch (bytes) {
        case 8:
            return reads ? phases<3, 32, 32>(lanes, address, kNeighbours, true)
                         : phases<3, 16, 16>(lanes, address, kNeighbours, false);
        case 12:
            return phases_of_three(lanes, address, reads);
        case 16:
            return reads ? phases<4, 16, 16>(lanes, address, kWideReads, true)
                         : phases<4, 8, 8>(lanes, address, kNeighbours, false);
        default:
            return phases<2, 32, 32>(lanes, address, kNeighbours, reads);
    }
}

}  // namespace kiln::sim
