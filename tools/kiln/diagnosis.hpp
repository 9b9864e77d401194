// What kiln doctor looks at, a function for each thing that may be refused. None of them needs another to
// have gone well: a broken table does not hide a missing compiler.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/settings.hpp"

namespace kiln::cli {

enum class Verdict {
    ok,
    note,   // nothing is wrong, and somebody may wonder at it
    wrong,  // kiln does without something, or refuses to work
};
[[nodiscard]] std::string_view to_text(Verdict verdict);  // "ok", "note", "wrong"

struct Finding {
    Verdict verdict = Verdict::ok;
    std::string what;      // "cache", "worker", "KILN_JIT", ...
    std::string found;     // what is there
    std::string expected;  // what should be; of a wrong one only
    std::string advice;    // what to do; of a wrong one and some notes
    // What kind of fault a wrong one is.
    ErrorCode code = ErrorCode::environment;
};
using Findings = std::vector<Finding>;

// Variables that can not be meant are findings, and left out of the settings that come back. An error is the
// command line's own fault.
[[nodiscard]] Result<service::Settings> diagnose_settings(const service::Overrides& overrides,
                                                          Findings& findings);

// Every layer of the shape tables, every fault in them.
void diagnose_tables(const service::Settings& settings, Findings& findings);

// The user's store, tried with an entry that is put, read and erased again; then the read-only layers. Every
// entry of each is read: how many are refused or damaged, and the first of each kind.
void diagnose_cache(const service::Settings& settings, Findings& findings);

// Folder for temporary files, worker, and of each toolchain where it is, its identity, and a kernel of one
// line. No more than a note is what is missing where KILN_JIT is off, and of a toolchain that nobody needs:
// neither the devices, by their targets, nor a KILN_TARGET that is set, nor the variable that names its
// prefix.
void diagnose_compiler(const service::Settings& settings, const std::vector<std::string>& device_targets,
                       Findings& findings);

// Which driver library this process is bound to and why, and its devices, whose targets come back.
std::vector<std::string> diagnose_devices(const service::Settings& settings, Findings& findings);

}  // namespace kiln::cli
