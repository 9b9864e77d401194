// Of kiln doctor: everything that a compile needs.

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/compile/compiler.hpp"
#include "runtime/compile/toolchain.hpp"
#include "runtime/compile/worker_process.hpp"
#include "tools/kiln/diagnosis.hpp"

namespace kiln::cli {
namespace {

using compile::Family;

// One way to words for each toolchain.
struct FamilyWords {
    const char* variable;
    const char* expected;
    const char* advice;
    const char* example_target;  // what its compiler is tried with where nobody needs it
};

constexpr FamilyWords words_of(Family family) {
    return family == Family::cuda
               ? FamilyWords{"KILN_CUDA_PREFIX", "a CUDA run-time compiler (NVRTC), CUDA 12 or newer",
                             "install a CUDA toolkit, or name its prefix with KILN_CUDA_PREFIX", "sm_90a"}
               : FamilyWords{"KILN_ROCM_PREFIX", "a HIP run-time compiler, ROCm 7 or newer",
                             "run tools/setup, or name a prefix with KILN_ROCM_PREFIX", "gfx950"};
}

bool is_set(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

class CompilerDiagnosis {
  public:
    CompilerDiagnosis(const service::Settings& settings, const std::vector<std::string>& device_targets,
                      Findings& findings)
        : settings_(settings), device_targets_(device_targets), findings_(findings) {}

    void run() {
        if (!diagnose_surroundings()) {
            return;
        }
        const bool rocm = diagnose_toolchain(Family::amdgpu);
        const bool cuda = diagnose_toolchain(Family::cuda);
        if (!rocm && !cuda) {
            return;
        }
        const auto compiler = compile::Compiler::create(config_);
        if (!compiler) {
            report("compiler", compiler, "", "one that can be used", "run tools/setup again", true);
            return;
        }
        for (const auto& [what, where] : (*compiler)->findings()) {
            if (what != "worker" && !what.ends_with(" toolchain")) {
                findings_.push_back({Verdict::ok, what, where, "", ""});
            }
        }
        for (const auto& [family, found] : {std::pair(Family::amdgpu, rocm), std::pair(Family::cuda, cuda)}) {
            if (found) {
                diagnose_compiles(**compiler, family);
            }
        }
    }

  private:
    // True when `result` is no error. What nobody needs is a note where it is missing.
    template <class T>
    bool report(std::string what, const T& result, std::string found, std::string expected,
                std::string advice, bool needed) {
        if (result) {
            findings_.push_back({Verdict::ok, std::move(what), std::move(found), "", ""});
            return true;
        }
        // Where nothing is to be compiled, nothing that compiles needs to be there.
        findings_.push_back({settings_.jit && needed ? Verdict::wrong : Verdict::note, std::move(what),
                             result.error().message, std::move(expected), std::move(advice),
                             result.error().code});
        return false;
    }

    // One that there is something to compile for: KILN_TARGET where it is set, or where the devices, if there
    // are any, are of its family; else a device's. Empty where there is none of the family.
    [[nodiscard]] std::string wanted_target(Family family) const {
        const auto device =
            std::find_if(device_targets_.begin(), device_targets_.end(),
                         [&](const std::string& target) { return compile::family_of(target) == family; });
        const bool has_device = device != device_targets_.end();
        const bool is_preset = std::any_of(
            settings_.listed.begin(), settings_.listed.end(), [](const service::Setting& setting) {
                return setting.variable == "KILN_TARGET" && setting.origin == service::Origin::preset;
            });
        const std::string& configured = settings_.target.text();
        if (compile::family_of(configured) == family &&
            (!is_preset || has_device || device_targets_.empty())) {
            return configured;
        }
        return has_device ? *device : std::string();
    }

    [[nodiscard]] bool is_needed(Family family) const {
        return !wanted_target(family).empty() || is_set(words_of(family).variable);
    }

    bool diagnose_surroundings() {
        const char* const named = std::getenv("TMPDIR");
        auto scratch = compile::ScratchFolder::make();
        if (!scratch && named != nullptr) {
            scratch.error().message = fmt::format("TMPDIR is {}: {}", named, scratch.error().message);
        }
        const bool has_scratch = report(
            "temporary files", scratch, scratch ? scratch->path().parent_path().string() : "",
            "a folder that can be written", "free some room there, or name another one with TMPDIR", true);
        const auto worker = compile::find_worker(config_);
        const bool has_worker =
            report("worker", worker, worker ? worker->string() : "", "kiln-compile of this installation",
                   "correct or unset KILN_WORKER, or install kiln whole", true);
        return has_scratch && has_worker;
    }

    bool diagnose_toolchain(Family family) {
        const FamilyWords words = words_of(family);
        const auto toolchain = compile::find_toolchain(config_, family);
        return report(fmt::format("{} toolchain", compile::toolchain_name(family)), toolchain,
                      toolchain ? fmt::format("{}, {}", toolchain->origin, toolchain->folder.string()) : "",
                      words.expected,
                      is_set(words.variable)
                          ? fmt::format("correct or unset {}, or {}", words.variable, words.advice)
                          : words.advice,
                      is_needed(family));
    }

    void diagnose_compiles(compile::Compiler& compiler, Family family) {
        const std::string wanted = wanted_target(family);
        const std::string target = wanted.empty() ? words_of(family).example_target : wanted;
        const auto identity = compiler.identity(target);
        report(fmt::format("{} identity", compile::toolchain_name(family)), identity,
               identity ? identity->document : "", "libraries that can be read and told apart",
               words_of(family).advice, is_needed(family));
        // A whole round trip, since a compiler that is there may still not know the target.
        report("compiles for " + target, compiler.probe(target), "yes", "a kernel of one line compiled",
               fmt::format("correct KILN_TARGET, or install a {} that knows it",
                           compile::toolchain_name(family)),
               is_needed(family));
    }

    const service::Settings& settings_;
    const std::vector<std::string>& device_targets_;
    Findings& findings_;
    const compile::CompilerConfig config_{
        .worker = settings_.worker, .toolchain_prefix = {}, .cuda_prefix = {}, .workers = 1};
};

}  // namespace

void diagnose_compiler(const service::Settings& settings, const std::vector<std::string>& device_targets,
                       Findings& findings) {
    CompilerDiagnosis(settings, device_targets, findings).run();
}

}  // namespace kiln::cli
