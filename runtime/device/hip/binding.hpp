// HIP as a driver family, and the simulator's look-alike, which is bound as HIP is.
//
// The rules are those of driver/binding.hpp; by rule 3 libamdhip64.so.7, libamdhip64.so.6, then the same in
// /opt/rocm/lib are loaded. Whether a hipRTC is in the process plays no part: kiln's compiler runs elsewhere.
//
// The simulator's look-alike is loaded by its full path, so the loader does not take a libamdhip64 of the
// same soname for it. The reverse does happen: what asks for "libamdhip64.so.7" by bare name after that gets
// the look-alike. A process that wants both opens its own HIP first. If the one copy that the process already
// holds is a look-alike (it was linked or preloaded in place of HIP), every driver choice but CUDA uses that
// copy.
#pragma once

#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/driver/binding.hpp"
#include "runtime/device/hip/api.hpp"

namespace kiln::device::hip {

struct Library final : driver::Library {
    Api api;  // constant once bound
};

[[nodiscard]] const driver::Family& family();

// The look-alike that the configuration names, else the one in place of HIP, else one that is found.
// environment says what was tried and why each failed.
[[nodiscard]] Result<driver::LibraryPointer> bind_simulator(const DriverConfig& config);

// Where the look-alike is looked for, in order: the folder sim of kiln's private folder, seen from the file
// that holds this code: from libkiln, from a program in bin/, from a program of the build tree.
[[nodiscard]] std::vector<std::filesystem::path> simulator_candidates();

}  // namespace kiln::device::hip
