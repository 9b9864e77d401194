// Where hipRTC, its companions and the worker are, found by looking at files: nothing is loaded, nothing is
// started.
//
// The toolchain, first match wins:
// clang-format off
//   1. CompilerConfig::toolchain_prefix, and nothing else when it is set
//   2. the prefix that KILN_ROCM_PREFIX names, likewise: who pins a compiler never gets another one
//   3. the private prefix of tools/setup: $XDG_DATA_HOME/kiln/rocm, else $HOME/.local/share/kiln/rocm;
//      it exists only where the native toolchain can not build for gfx950
//   4. natively: /opt/rocm, then the system's library folders
// clang-format on
// A folder holds a toolchain when it has libhiprtc.so.N (N >= 7) and libamd_comgr.so.N (N >= 3); unversioned
// names are a developer's and are not looked at. A prefix that brings its own dynamic loader is used through
// that loader.
//
// The worker, first match wins: CompilerConfig::worker, and nothing else when it is set; KILN_WORKER
// likewise; then the folders around the file that holds this code (libkiln, or a program that it is linked
// into).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile {

struct Toolchain {
    std::string origin;              // "configuration", "KILN_ROCM_PREFIX", "native", "private prefix"
    std::filesystem::path folder;    // that holds the libraries; absolute, as is everything here
    std::filesystem::path hiprtc;    // libhiprtc.so.N
    std::filesystem::path comgr;     // libamd_comgr.so.N
    std::filesystem::path builtins;  // libhiprtc-builtins.so.N; empty when there is none
    std::filesystem::path loader;    // dynamic loader to start the worker with; empty means the system's
};

// environment lists where it was looked for; of a prefix that was named, also by what.
[[nodiscard]] Result<Toolchain> find_toolchain(const CompilerConfig& config);
[[nodiscard]] Result<std::filesystem::path> find_worker(const CompilerConfig& config);

}  // namespace kiln::compile
