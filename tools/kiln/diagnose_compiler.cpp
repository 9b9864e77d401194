// Of kiln doctor: everything that a compile needs.

#include <cstdlib>

#include <fmt/format.h>

#include "runtime/compile/compiler.hpp"
#include "runtime/compile/toolchain.hpp"
#include "runtime/compile/worker_process.hpp"
#include "tools/kiln/diagnosis.hpp"

namespace kiln::cli {

void diagnose_compiler(const service::Settings& settings, Findings& findings) {
    bool complete = true;
    const auto report = [&](std::string what, const auto& result, std::string found, std::string expected,
                            std::string advice) {
        if (result) {
            findings.push_back({Verdict::ok, std::move(what), std::move(found), "", ""});
            return;
        }
        complete = false;
        // Where nothing is to be compiled, nothing that compiles needs to be there.
        findings.push_back({settings.jit ? Verdict::wrong : Verdict::note, std::move(what),
                            result.error().message, std::move(expected), std::move(advice),
                            result.error().code});
    };
    const compile::CompilerConfig config{.worker = settings.worker, .toolchain_prefix = {}, .workers = 1};

    const char* const named = std::getenv("TMPDIR");
    auto scratch = compile::ScratchFolder::make();
    if (!scratch && named != nullptr) {
        scratch.error().message = fmt::format("TMPDIR is {}: {}", named, scratch.error().message);
    }
    report("temporary files", scratch, scratch ? scratch->path().parent_path().string() : "",
           "a folder that can be written", "free some room there, or name another one with TMPDIR");
    const auto worker = compile::find_worker(config);
    report("worker", worker, worker ? worker->string() : "", "kiln-compile of this installation",
           "correct or unset KILN_WORKER, or install kiln whole");
    const char* const prefix = std::getenv("KILN_ROCM_PREFIX");
    const auto toolchain = compile::find_toolchain(config);
    report("toolchain", toolchain,
           toolchain ? fmt::format("{}, {}", toolchain->origin, toolchain->folder.string()) : "",
           "a HIP run-time compiler, ROCm 7 or newer",
           prefix != nullptr && *prefix != '\0'
               ? "correct or unset KILN_ROCM_PREFIX, or run tools/setup, which makes that prefix"
               : "run tools/setup, or name a prefix with KILN_ROCM_PREFIX");
    if (!complete) {
        return;
    }
    const auto compiler = compile::Compiler::create(config);
    if (!compiler) {
        report("compiler", compiler, "", "one that can be used", "run tools/setup again");
        return;
    }
    for (const auto& [what, where] : (*compiler)->findings()) {
        if (what != "worker" && what != "toolchain") {
            findings.push_back({Verdict::ok, what, where, "", ""});
        }
    }
    const auto identity = (*compiler)->identity();
    report("compiler identity", identity, identity ? identity->document : "",
           "libraries that can be read and told apart", "run tools/setup again");
    // A whole round trip, since a compiler that is there may still not know the target.
    const auto& target = settings.target.text();
    report("compiles for " + target, (*compiler)->probe(target), "yes", "a kernel of one line compiled",
           "correct KILN_TARGET, or install a ROCm that knows it (tools/setup)");
}

}  // namespace kiln::cli
