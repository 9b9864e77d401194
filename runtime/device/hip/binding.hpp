// Which libamdhip64 this process uses, decided at the first use of a device.
//
// Two copies of the HIP runtime in one process do not know each other's streams (launches fail with error
// 709), so:
// clang-format off
//  1. A library that DriverConfig::hip_library or KILN_HIP_LIBRARY names is used. If the process already
//     holds other copies and not this one, that is refused by name.
//  2. Else, if the process holds exactly one copy, that copy is used; if it holds several, that is refused
//     by name.
//  3. Else one is loaded: libamdhip64.so.7, libamdhip64.so.6, then the same in /opt/rocm/lib.
//  4. A copy that the process loads after kiln has bound another by rule 2 or 3: plans made before keep
//     working, the next load of a code object is refused by name, and so is the next service by rule 2.
//  5. What a process bound is of no use to a child forked from it, and refused there by name.
// clang-format on
// What a copy is, copies.hpp says: no matter how and where it was loaded. The tests' README lists the cases.
//
// `automatic` loads a copy (3) only where the AMD kernel driver is present (/dev/kfd), and goes on to the
// simulator when no copy is found, or the one that the process holds reports no device. It never goes on past
// a library that was asked for by name, or a choice that nobody made. Whether a hipRTC is in the process
// plays no part: kiln's compiler runs elsewhere.
//
// The simulator's look-alike is loaded by its full path, so the loader does not take a libamdhip64 of the
// same soname for it. The reverse does happen: what asks for "libamdhip64.so.7" by bare name after that gets
// the look-alike. A process that wants both opens its own HIP first. If the one copy that the process already
// holds is a look-alike (it was linked or preloaded in place of HIP), every driver choice uses that copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/hip/api.hpp"
#include "runtime/device/hip/copies.hpp"

namespace kiln::device::hip {

// One bound copy. Never unloaded, because drivers do not survive it.
struct Library {
    // Constant once bound.
    std::filesystem::path path;
    LibraryHandle handle;
    Api api;
    int num_devices = 0;
    std::uint32_t generation = 0;  // of forks: of no use in another
    bool named = false;            // by rule 1: other copies do not make it ambiguous

    mutable std::atomic<std::uint64_t> checked_at{0};  // num_libraries_loaded() when it was last found alone
};

// What was considered on the way to a library, a sentence each.
using Steps = std::vector<std::string>;

// Applies the rules above. The result has at least one device. environment says what was tried and why each
// failed.
[[nodiscard]] Result<std::shared_ptr<const Library>> bind(const DriverConfig& config, Steps* steps = nullptr);

// Rule 4: environment names the copies that came after this one. Cheap while the process loads no library.
[[nodiscard]] Result<void> check_alone(const Library& library);

// Where the look-alike is looked for, in order: the folder sim of kiln's private folder, seen from the file
// that holds this code: from libkiln, from a program in bin/, from a program of the build tree.
[[nodiscard]] std::vector<std::filesystem::path> simulator_candidates();

}  // namespace kiln::device::hip
