// Where the run-time compilers, their companions and the worker are, found by looking at files: nothing is
// loaded, nothing is started.
//
// clang-format off
// ROCm, for gfx targets, first match wins:
//   1. CompilerConfig::toolchain_prefix, and nothing else when it is set
//   2. the prefix that KILN_ROCM_PREFIX names, likewise: who pins a compiler never gets another one
//   3. the private prefix of tools/setup: $XDG_DATA_HOME/kiln/rocm, else $HOME/.local/share/kiln/rocm;
//      it exists only where the native toolchain can not build for gfx950
//   4. natively: /opt/rocm, then the system's library folders
// CUDA, for sm_ targets, likewise:
//   1. CompilerConfig::cuda_prefix    2. KILN_CUDA_PREFIX
//   3. natively: /usr/local/cuda, then /usr/local/cuda-* from the newest on, then the system's library
//      folders, then those that /etc/ld.so.conf names
// clang-format on
// A folder holds a ROCm toolchain when it has libhiprtc.so.N (N >= 7) and libamd_comgr.so.N (N >= 3), a CUDA
// toolchain when it has libnvrtc.so.N (N >= 12) and libnvrtc-builtins.so.N.M of the same N; unversioned names
// are a developer's and are not looked at. A ROCm prefix that brings its own dynamic loader is used through
// that loader; NVRTC is always loaded natively.
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
#include "runtime/compile/target_family.hpp"

namespace kiln::compile {

struct Toolchain {
    Family family = Family::amdgpu;
    std::string
        origin;  // "configuration", "KILN_ROCM_PREFIX", "KILN_CUDA_PREFIX", "native", "private prefix"
    std::filesystem::path folder;  // that holds the libraries; absolute, as is everything here
    std::filesystem::path rtc;     // libhiprtc.so.N, libnvrtc.so.N
    // What the run-time compiler asks for by its bare name: libamd_comgr.so.N, libnvrtc-builtins.so.N.M.
    std::filesystem::path companion;
    std::filesystem::path hip_builtins;  // libhiprtc-builtins.so.N; empty when there is none
    std::filesystem::path loader;        // dynamic loader to start the worker with; empty: the system's
};

// environment lists where it was looked for; of a prefix that was named, also by what.
[[nodiscard]] Result<Toolchain> find_toolchain(const CompilerConfig& config, Family family);
[[nodiscard]] Result<std::filesystem::path> find_worker(const CompilerConfig& config);

// Where the programs of a CUDA toolkit may be, by the same rules, the likeliest first.
[[nodiscard]] std::vector<std::filesystem::path> cuda_program_folders(const CompilerConfig& config);

}  // namespace kiln::compile
