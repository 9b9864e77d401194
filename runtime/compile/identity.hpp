// What decides the code that a toolchain emits. With ROCm: not libhiprtc alone (under 1 MB) but libamd_comgr
// and the LLVM library that it needs. comgr carries the device bitcode (ocml, ockl, oclc) inside itself, so
// that its build id covers it: a compile was traced and opened no .bc file. With CUDA: libnvrtc, which holds
// the whole way to the machine's code (it needs the C library only), and libnvrtc-builtins.
//
// A component is known by its ELF build id, or by the SHA-256 of its contents where it has none. Version
// numbers that libraries report of themselves are not used: hipRTC 7.2 says 9.0.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {

struct Component {
    std::string name;  // of the file, as programs ask for it: "libamd_comgr.so.3"
    std::filesystem::path path;
    std::string build_id;  // hexadecimal; empty where the file has none
    std::string sha256;    // hexadecimal; empty where there is a build id
};

// Reads files, loads none. What a file said is remembered under its path, device, inode, size and time of
// change, for the life of the process. Thread safe. environment when a component is missing or can not be
// read.
[[nodiscard]] Result<std::vector<Component>> identify(const Toolchain& toolchain);

// Canonical JSON: members sorted, no white space; components by name.
[[nodiscard]] std::string identity_document(const std::vector<Component>& components);

}  // namespace kiln::compile
