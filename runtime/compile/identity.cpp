#include "runtime/compile/identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "base/fork_guard.hpp"
#include "runtime/compile/elf.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

// What one file says of itself.
struct FileFacts {
    std::string build_id;
    std::string sha256;
    std::vector<std::string> needed;
};

auto unusable(const fs::path& path, std::string_view why) {
    return fail(ErrorCode::environment, Stage::compile, fmt::format("identify {}: {}", path.string(), why));
}

Result<FileFacts> read_facts(const fs::path& path, const UniqueFd& fd, std::uint64_t size) {
    const FileSource source(fd.get(), size);
    auto file = ElfFile::read(source);
    if (!file) {
        return unusable(path, file.error().message);
    }
    auto needed = file->needed();
    if (!needed) {
        return unusable(path, needed.error().message);
    }
    FileFacts facts{.build_id = {}, .sha256 = {}, .needed = std::move(*needed)};
    if (const auto note = file->note("GNU", NT_GNU_BUILD_ID)) {
        facts.build_id = hex(*note);
        return facts;
    }
    auto contents = read_file(path, Stage::compile);
    if (!contents) {
        return unusable(path, contents.error().message);
    }
    facts.sha256 = sha256(*contents).hex();
    return facts;
}

class Memory {
  public:
    Result<FileFacts> facts_of(const fs::path& path) {
        const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat info {};
        if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
            return unusable(path, system_message("open", path, errno));
        }
        const Stamp stamp{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
        {
            const std::lock_guard lock(mutex_);
            const auto known = known_.find(path);
            if (known != known_.end() && known->second.first == stamp) {
                return known->second.second;
            }
        }
        auto facts = read_facts(path, fd, static_cast<std::uint64_t>(info.st_size));
        if (facts) {
            const std::lock_guard lock(mutex_);
            known_.insert_or_assign(path, std::pair(stamp, *facts));
        }
        return facts;
    }

  private:
    using Stamp = std::tuple<dev_t, ino_t, off_t, time_t, long>;
    std::mutex mutex_;
    std::map<fs::path, std::pair<Stamp, FileFacts>> known_;  // protected by mutex_
};

Memory& memory() {
    watch_forks();
    return of_this_process<Memory>();
}

bool is_compiler_library(std::string_view name) {
    return name.starts_with("libLLVM") || name.starts_with("libclang") || name.starts_with("liblld");
}

// Where the loader would take a library from that comgr needs: beside it, or in the LLVM folder of a ROCm
// installation.
Result<fs::path> resolve(const Toolchain& toolchain, const std::string& name) {
    std::error_code error;
    for (const auto& folder :
         {toolchain.folder, toolchain.folder / "llvm" / "lib", toolchain.folder / ".." / "llvm" / "lib",
          fs::path("/usr/lib/x86_64-linux-gnu"), fs::path("/usr/lib64")}) {
        if (fs::is_regular_file(folder / name, error)) {
            return folder / name;
        }
    }
    return unusable(toolchain.companion,
                    fmt::format("needs {}, which is not in {}", name, toolchain.folder.string()));
}

}  // namespace

Result<std::vector<Component>> identify(const Toolchain& toolchain) {
    std::vector<fs::path> paths{toolchain.rtc, toolchain.companion};
    if (!toolchain.hip_builtins.empty()) {
        paths.push_back(toolchain.hip_builtins);
    }
    std::vector<Component> components;
    for (std::size_t i = 0; i < paths.size(); ++i) {  // grows by what its members need
        const fs::path path = paths[i];
        auto facts = memory().facts_of(path);
        if (!facts) {
            return fail(facts);
        }
        for (const auto& name : facts->needed) {
            if (!is_compiler_library(name)) {
                continue;
            }
            auto needed = resolve(toolchain, name);
            if (!needed) {
                return fail(needed);
            }
            if (std::find(paths.begin(), paths.end(), *needed) == paths.end()) {
                paths.push_back(*needed);
            }
        }
        components.push_back({.name = path.filename().string(),
                              .path = path,
                              .build_id = std::move(facts->build_id),
                              .sha256 = std::move(facts->sha256)});
    }
    std::sort(components.begin(), components.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return components;
}

std::string identity_document(const std::vector<Component>& components) {
    auto list = nlohmann::json::array();
    for (const auto& component : components) {
        nlohmann::json item{{"name", component.name}};
        if (component.build_id.empty()) {
            item["sha256"] = component.sha256;
        } else {
            item["build_id"] = component.build_id;
        }
        list.push_back(std::move(item));
    }
    // A file name that is no UTF-8 must not throw: what stands for it is as stable as the name.
    return nlohmann::json{{"components", std::move(list)}}.dump(-1, ' ', false,
                                                                nlohmann::json::error_handler_t::replace);
}

}  // namespace kiln::compile
