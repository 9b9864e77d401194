// What the kernels and those who launch them must agree on.
#pragma once

#include "device/types.h"

namespace kiln::moe_sort {

using device::u32;

inline constexpr u32 kWaves = 4;
inline constexpr u32 kThreads = 64 * kWaves;  // of every work-group

// Pairs that these templates hold.
inline constexpr u32 kCompactPairs = 64;
inline constexpr u32 kDistributedPairs = kThreads;

// A piece of a token is what a work-group zeroes or quantises at once.
inline constexpr u32 kPieceElements = 8 * kThreads;
// Work-groups of general for pieces; they stride over what is more.
inline constexpr u32 kMostPieceGroups = 65536;

// Experts whose rows without a pair one work-group writes.
inline constexpr u32 kPaddedTogether = 64;

}  // namespace kiln::moe_sort
