// The search for ROCm (toolchain.hpp).

#include <fmt/format.h>

#include "runtime/compile/toolchain_search.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kOldestHiprtc = 7;
constexpr unsigned kOldestComgr = 3;
constexpr const char* kMultiarch = "x86_64-linux-gnu";
constexpr const char* kLoader = "ld-linux-x86-64.so.2";

std::optional<Toolchain> look_in(const fs::path& folder) {
    Toolchain toolchain{.family = Family::amdgpu,
                        .origin = {},
                        .folder = {},
                        .rtc = newest_version(folder, "libhiprtc.so.", kOldestHiprtc),
                        .companion = newest_version(folder, "libamd_comgr.so.", kOldestComgr),
                        .hip_builtins = newest_version(folder, "libhiprtc-builtins.so.", kOldestHiprtc),
                        .loader = {}};
    if (toolchain.rtc.empty() || toolchain.companion.empty()) {
        return std::nullopt;
    }
    return toolchain;
}

void look_below(ToolchainSearch& search, const fs::path& given, const char* origin) {
    std::error_code error;
    const fs::path prefix = fs::absolute(given, error);
    const fs::path own = prefix / "usr" / "lib" / kMultiarch;
    const bool was_found = search.found().has_value();
    search.folder(own, origin);
    if (!was_found && search.found() && fs::is_regular_file(own / kLoader, error)) {
        search.found()->loader = own / kLoader;
    }
    search.folder(prefix / "lib", origin);
    search.folder(prefix / "lib64", origin);
}

Result<Toolchain> result_of(const ToolchainSearch& search, const std::string& named) {
    return search.result(
        "no HIP run-time compiler", named,
        fmt::format("libhiprtc.so.{} or newer and libamd_comgr.so.{} or newer", kOldestHiprtc, kOldestComgr),
        "tools/setup installs them");
}

Result<Toolchain> only_in(const fs::path& prefix, const char* origin, const char* named_by) {
    ToolchainSearch search(look_in);
    look_below(search, prefix, origin);
    return result_of(search, fmt::format(" in {} (from {})", prefix.string(), named_by));
}

}  // namespace

Result<Toolchain> find_rocm(const CompilerConfig& config) {
    if (!config.toolchain_prefix.empty()) {
        return only_in(config.toolchain_prefix, "configuration", "the configuration");
    }
    if (const char* prefix = variable("KILN_ROCM_PREFIX")) {
        return only_in(prefix, "KILN_ROCM_PREFIX", "KILN_ROCM_PREFIX");
    }
    ToolchainSearch search(look_in);
    if (const char* data = variable("XDG_DATA_HOME"); data != nullptr && *data == '/') {
        look_below(search, fs::path(data) / "kiln" / "rocm", "private prefix");
    } else if (const char* home = variable("HOME"); home != nullptr && *home == '/') {
        look_below(search, fs::path(home) / ".local" / "share" / "kiln" / "rocm", "private prefix");
    }
    for (const char* folder : {"/opt/rocm/lib", "/opt/rocm/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                               "/usr/lib", "/usr/local/lib"}) {
        search.folder(folder, "native");
    }
    return result_of(search, {});
}

}  // namespace kiln::compile
