// The search for CUDA's run-time compiler, and for the programs of a toolkit (toolchain.hpp).

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "runtime/compile/toolchain_search.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kOldestNvrtc = 12;
constexpr int kMostIncludes = 8;  // of a file that ld.so.conf includes in one that it includes ...

std::optional<Toolchain> look_in(const fs::path& folder) {
    Toolchain toolchain;
    toolchain.family = Family::cuda;
    toolchain.rtc = newest_version(folder, "libnvrtc.so.", kOldestNvrtc);
    if (toolchain.rtc.empty()) {
        return std::nullopt;
    }
    // It asks for the builtins of its own version, major and minor.
    const std::string major = toolchain.rtc.extension().string().substr(1);
    toolchain.companion = newest_version(folder, "libnvrtc-builtins.so." + major + ".", 0);
    if (toolchain.companion.empty()) {
        return std::nullopt;
    }
    return toolchain;
}

void look_below(ToolchainSearch& search, const fs::path& given, const char* origin) {
    std::error_code error;
    const fs::path prefix = fs::absolute(given, error);
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"}) {
        search.folder(prefix / folder, origin);
    }
}

std::vector<fs::path> files_like(const std::string& pattern) {
    std::vector<fs::path> paths;
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
    return paths;
}

// "cuda-13.0" is newer than "cuda-9.2".
std::pair<unsigned, unsigned> version_of(const fs::path& toolkit) {
    const std::string name = toolkit.filename().string();
    const char* const end = name.data() + name.size();
    std::pair<unsigned, unsigned> version{};
    const auto [at, fault] = std::from_chars(
        name.data() + std::min(name.size(), std::string_view("cuda-").size()), end, version.first);
    if (fault == std::errc() && at != end && *at == '.') {
        std::from_chars(at + 1, end, version.second);
    }
    return version;
}

// The toolkits of this machine, in the order of the search.
std::vector<fs::path> toolkits() {
    std::vector<fs::path> versioned = files_like("/usr/local/cuda-*");
    std::stable_sort(versioned.begin(), versioned.end(),
                     [](const auto& a, const auto& b) { return version_of(a) > version_of(b); });
    versioned.insert(versioned.begin(), "/usr/local/cuda");
    return versioned;
}

// The folders that a file in the form of ld.so.conf names.
void add_loader_folders(const fs::path& file, int includes_left, std::vector<fs::path>& folders) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        if (!(words >> word)) {
            continue;
        }
        if (word == "include") {
            while (includes_left > 0 && words >> word) {
                for (const fs::path& included : files_like((file.parent_path() / word).string())) {
                    add_loader_folders(included, includes_left - 1, folders);
                }
            }
        } else if (word.front() == '/') {
            folders.emplace_back(word);
        }
    }
}

Result<Toolchain> result_of(const ToolchainSearch& search, const std::string& named) {
    return search.result("no CUDA run-time compiler", named,
                         fmt::format("libnvrtc.so.{0} or newer and its libnvrtc-builtins", kOldestNvrtc),
                         "a CUDA toolkit brings them, KILN_CUDA_PREFIX names one elsewhere");
}

// The prefix that is the only place to look, and by what it is named; empty where none is.
struct Named {
    fs::path prefix;
    const char* origin = "";
    const char* by = "";
};

Named named_prefix(const CompilerConfig& config) {
    if (!config.cuda_prefix.empty()) {
        return {config.cuda_prefix, "configuration", "the configuration"};
    }
    if (const char* prefix = variable("KILN_CUDA_PREFIX")) {
        return {prefix, "KILN_CUDA_PREFIX", "KILN_CUDA_PREFIX"};
    }
    return {};
}

}  // namespace

Result<Toolchain> find_cuda(const CompilerConfig& config) {
    ToolchainSearch search(look_in);
    if (const Named named = named_prefix(config); !named.prefix.empty()) {
        look_below(search, named.prefix, named.origin);
        return result_of(search, fmt::format(" in {} (from {})", named.prefix.string(), named.by));
    }
    for (const fs::path& toolkit : toolkits()) {
        look_below(search, toolkit, "native");
    }
    std::vector<fs::path> folders{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"};
    add_loader_folders("/etc/ld.so.conf", kMostIncludes, folders);
    for (const fs::path& folder : folders) {
        search.folder(folder, "native");
    }
    return result_of(search, {});
}

std::vector<fs::path> cuda_program_folders(const CompilerConfig& config) {
    std::vector<fs::path> folders;
    if (const Named named = named_prefix(config); !named.prefix.empty()) {
        std::error_code error;
        folders.push_back(fs::absolute(named.prefix, error) / "bin");
    } else {
        for (const fs::path& toolkit : toolkits()) {
            folders.push_back(toolkit / "bin");
        }
        folders.insert(folders.end(), {"/usr/bin", "/usr/local/bin"});
    }
    return folders;
}

}  // namespace kiln::compile
