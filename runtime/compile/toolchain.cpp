#include "runtime/compile/toolchain.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kOldestHiprtc = 7;
constexpr unsigned kOldestComgr = 3;
constexpr const char* kMultiarch = "x86_64-linux-gnu";
constexpr const char* kLoader = "ld-linux-x86-64.so.2";

// The file FOLDER/STEM.N with the greatest N, at least `oldest`; empty when there is none.
fs::path newest_version(const fs::path& folder, std::string_view stem, unsigned oldest) {
    fs::path newest;
    unsigned newest_version = oldest;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(stem)) {
            continue;
        }
        unsigned version = 0;
        const char* const digits = name.data() + stem.size();
        const char* const name_end = name.data() + name.size();
        const auto [rest, fault] = std::from_chars(digits, name_end, version);
        std::error_code ignored;
        if (fault == std::errc() && rest == name_end && version >= newest_version &&
            fs::is_regular_file(it->path(), ignored)) {
            newest = it->path();
            newest_version = version;
        }
    }
    return newest;
}

std::optional<Toolchain> look_in(const fs::path& folder, const char* origin) {
    Toolchain toolchain{.origin = origin,
                        .folder = folder,
                        .hiprtc = newest_version(folder, "libhiprtc.so.", kOldestHiprtc),
                        .comgr = newest_version(folder, "libamd_comgr.so.", kOldestComgr),
                        .builtins = newest_version(folder, "libhiprtc-builtins.so.", kOldestHiprtc),
                        .loader = {}};
    if (toolchain.hiprtc.empty() || toolchain.comgr.empty()) {
        return std::nullopt;
    }
    return toolchain;
}

// Collects where it looked, for the message of a failure.
class Search {
  public:
    void folder(const fs::path& folder, const char* origin) {
        if (!found_) {
            looked_in_.push_back(folder.string());
            found_ = look_in(folder, origin);
        }
    }
    void prefix(const fs::path& given, const char* origin) {
        std::error_code error;
        const fs::path prefix = fs::absolute(given, error);
        const fs::path own = prefix / "usr" / "lib" / kMultiarch;
        const bool was_found = found_.has_value();
        folder(own, origin);
        if (!was_found && found_ && fs::is_regular_file(own / kLoader, error)) {
            found_->loader = own / kLoader;
        }
        folder(prefix / "lib", origin);
        folder(prefix / "lib64", origin);
    }
    // `named` says which prefix was the only place to look; empty where none was named.
    Result<Toolchain> result(const std::string& named) const {
        if (found_) {
            return *found_;
        }
        return fail(
            ErrorCode::environment, Stage::compile,
            fmt::format("no HIP run-time compiler{}: expected libhiprtc.so.{} or newer and "
                        "libamd_comgr.so.{} or newer in one of {}; {}",
                        named, kOldestHiprtc, kOldestComgr, fmt::join(looked_in_, ", "),
                        named.empty() ? "tools/setup installs them" : "no other place was looked at"));
    }

  private:
    std::optional<Toolchain> found_;
    std::vector<std::string> looked_in_;
};

// The value of a variable that is set and not empty.
const char* environment(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

Result<Toolchain> only_in(const fs::path& prefix, const char* origin, const char* named_by) {
    Search search;
    search.prefix(prefix, origin);
    return search.result(fmt::format(" in {} (from {})", prefix.string(), named_by));
}

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

Result<Toolchain> find_toolchain(const CompilerConfig& config) {
    if (!config.toolchain_prefix.empty()) {
        return only_in(config.toolchain_prefix, "configuration", "the configuration");
    }
    if (const char* prefix = environment("KILN_ROCM_PREFIX")) {
        return only_in(prefix, "KILN_ROCM_PREFIX", "KILN_ROCM_PREFIX");
    }
    Search search;
    if (const char* data = environment("XDG_DATA_HOME"); data != nullptr && *data == '/') {
        search.prefix(fs::path(data) / "kiln" / "rocm", "private prefix");
    } else if (const char* home = environment("HOME"); home != nullptr && *home == '/') {
        search.prefix(fs::path(home) / ".local" / "share" / "kiln" / "rocm", "private prefix");
    }
    for (const char* folder : {"/opt/rocm/lib", "/opt/rocm/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                               "/usr/lib", "/usr/local/lib"}) {
        search.folder(folder, "native");
    }
    return search.result({});
}

Result<fs::path> find_worker(const CompilerConfig& config) {
    if (!config.worker.empty()) {
        return named_worker(config.worker, "from the configuration");
    }
    if (const char* path = environment("KILN_WORKER")) {
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
