// The copies of a driver's library that this process holds, however they came in: linked, preloaded, opened
// with either scope, under another name, in another link namespace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::device::driver {

// One more reference to a library that is loaded: it goes with the last owner.
using LibraryHandle = std::shared_ptr<void>;

struct Copy {
    std::string path;  // as the dynamic loader has it
    LibraryHandle handle;
    bool simulated = false;
};

// A copy is a loaded file whose name or soname begins with the stem ("libamdhip64", "libcuda.so") and has
// ".so" in it, a name that a packager has mangled included. One file counts once, whatever paths lead to it;
// a second file of the same bytes is a second copy. In other link namespaces than the caller's only files of
// that name are seen.
[[nodiscard]] std::vector<Copy> find_copies(std::string_view stem);

// Those that stand for the driver here: all but a look-alike that is not in the global scope. One that kiln
// opened for a simulated device is seen by nobody else; one that the program linked or preloaded is in the
// driver's place.
[[nodiscard]] std::vector<Copy> driver_copies(std::string_view stem);

// Whether what is behind a handle is the simulator's look-alike.
[[nodiscard]] bool is_simulator(void* handle);

// Comma between.
[[nodiscard]] std::string list_paths(const std::vector<Copy>& copies);

// The file behind a handle, as the dynamic loader has it.
[[nodiscard]] std::string file_of(void* handle);

// Grows whenever the process loads a library: while it stands still, so do the copies.
[[nodiscard]] std::uint64_t num_libraries_loaded();

}  // namespace kiln::device::driver
