// Which copy of a driver's library this process uses: the rules that are the same for every vendor, decided
// at the first use of a device.
//
// Two copies of a driver's library in one process do not know each other's streams (HIP's launches fail with
// error 709), so:
// clang-format off
//  1. A library that the configuration or the family's variable names is used. If the process already holds
//     other copies and not this one, that is refused by name.
//  2. Else, if the process holds exactly one copy, that copy is used; if it holds several, that is refused
//     by name.
//  3. Else one is loaded, by the family's list of names.
//  4. A copy that the process loads after kiln has bound another by rule 2 or 3: plans made before keep
//     working, the next load of a code object is refused by name, and so is the next service by rule 2.
//  5. What a process bound is of no use to a child forked from it, and refused there by name.
// clang-format on
// What a copy is, copies.hpp says: no matter how and where it was loaded. The tests' README lists the cases.
//
// Not thread safe by itself: whoever chooses a driver (choose.hpp) holds a lock, so that two threads that
// bind at once do not load two copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/copies.hpp"

namespace kiln::device::driver {

struct Family;

// One bound copy; a family's own adds its entry points. Never unloaded, because drivers do not survive it.
struct Library {
    virtual ~Library() = default;

    // Constant once bound.
    const Family* family = nullptr;
    std::filesystem::path path;
    LibraryHandle handle;
    int num_devices = 0;
    bool simulated = false;
    std::uint32_t generation = 0;  // of forks: of no use in another
    bool named = false;            // by rule 1: other copies do not make it ambiguous

    mutable std::atomic<std::uint64_t> checked_at{0};  // num_libraries_loaded() when it was last found alone
};
using LibraryPointer = std::shared_ptr<const Library>;

// A vendor's driver: constant for the process.
struct Family {
    std::string_view what;                   // "HIP runtime"
    std::string_view variable;               // "KILN_HIP_LIBRARY"
    std::string_view stem;                   // of a copy's name, as copies.hpp has it
    std::span<const char* const> installed;  // names to load where the process holds no copy, in order
    // What the configuration says in place of the variable; empty: nothing.
    std::filesystem::path DriverConfig::*configured;
    // Resolves the entry points and counts the devices: at least one. environment says what is missing.
    Result<std::shared_ptr<Library>> (*start)(void* handle, const std::string& path);
    Result<std::shared_ptr<Device>> (*open)(LibraryPointer library, int ordinal, const DriverConfig& config);
};

// What was considered on the way to a library, a sentence each.
using Steps = std::vector<std::string>;

// The library that rule 1 would use; empty where none is named.
[[nodiscard]] std::string asked_for(const Family& family, const DriverConfig& config);

// Rules 1 and 2; nothing when neither applies. The library has at least one device.
[[nodiscard]] std::optional<Result<LibraryPointer>> bind_settled(const Family& family,
                                                                 const DriverConfig& config, Steps& steps);
// Rule 3. environment says what was tried and why each failed. The first that loads is the one, even if it
// has no device then: a second copy beside it would be no better.
[[nodiscard]] Result<LibraryPointer> load_installed(const Family& family, Steps& steps);
// All three.
[[nodiscard]] Result<LibraryPointer> bind(const Family& family, const DriverConfig& config, Steps& steps);

// One that kiln itself picks: a copy that the process holds, or a file to load.
[[nodiscard]] Result<LibraryPointer> adopt(const Family& family, LibraryHandle handle);
[[nodiscard]] Result<LibraryPointer> load(const Family& family, const std::string& name);

// Rule 4: environment names the copies that came after this one. Cheap while the process loads no library.
[[nodiscard]] Result<void> check_alone(const Library& library);

}  // namespace kiln::device::driver
