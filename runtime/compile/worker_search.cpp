// The search for the worker (toolchain.hpp).

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/compile/toolchain_search.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// The folder of the file that holds this code, links resolved.
fs::path own_folder() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&is_program), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    std::error_code error;
    fs::path file = fs::canonical(info.dli_fname, error);
    if (error) {  // a program may be known by a name that was relative to a folder long left
        file = fs::canonical("/proc/self/exe", error);
    }
    return file.parent_path();
}

Result<fs::path> named_worker(const fs::path& path, const char* by) {
    std::error_code error;
    if (!is_program(path)) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("expected a program as the compile worker, found none at {} ({})",
                                path.string(), by));
    }
    return fs::absolute(path, error);
}

}  // namespace

Result<fs::path> find_worker(const CompilerConfig& config) {
    if (!config.worker.empty()) {
        return named_worker(config.worker, "from the configuration");
    }
    if (const char* path = variable("KILN_WORKER")) {
        return named_worker(path, "from KILN_WORKER");
    }
    // In libkiln's private folder, or around whatever else carries this code: a program in bin/, a library in
    // a folder below the private one, a test in the build tree.
    const fs::path own = own_folder();
    std::vector<std::string> looked_at;
    for (const auto& folder : {own / "kiln", own, own / "..", own / ".." / KILN_PRIVATE_FOLDER,
                               own / ".." / "lib" / "kiln", own / ".." / ".." / "lib" / "kiln"}) {
        const fs::path candidate = (folder / "kiln-compile").lexically_normal();
        if (is_program(candidate)) {
            return candidate;
        }
        looked_at.push_back(candidate.string());
    }
    return fail(ErrorCode::environment, Stage::compile,
                fmt::format("no compile worker: expected kiln-compile at one of {}, or named by KILN_WORKER",
                            fmt::join(looked_at, ", ")));
}

}  // namespace kiln::compile
