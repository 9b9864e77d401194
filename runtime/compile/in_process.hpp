// Compiling inside the calling process: for programs that may start no other.
//
// The libraries stay loaded for as long as the process lives, and there is one copy of each, so that all
// compilers of the process share them and take turns; hipRTC and NVRTC each for itself. What a worker is
// protected from by an environment of its own is refused here by name: a variable that steers the compiler,
// another copy of its libraries that the process has loaded already, a library on disk that is no longer the
// one that was loaded.
#pragma once

#include <memory>

#include "runtime/compile/exchange.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {

// Loads nothing yet.
[[nodiscard]] std::unique_ptr<Exchange> make_in_process_exchange(const Toolchain& toolchain);

}  // namespace kiln::compile
