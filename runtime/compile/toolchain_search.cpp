#include "runtime/compile/toolchain_search.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::compile {

namespace fs = std::filesystem;

const char* variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

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

void ToolchainSearch::folder(const fs::path& folder, const char* origin) {
    const bool known = std::find(looked_in_.begin(), looked_in_.end(), folder.string()) != looked_in_.end();
    if (found_ || known) {
        return;
    }
    looked_in_.push_back(folder.string());
    found_ = look_(folder);
    if (found_) {
        found_->origin = origin;
        found_->folder = folder;
    }
}

Result<Toolchain> ToolchainSearch::result(std::string_view none, const std::string& named,
                                          std::string_view expected, std::string_view advice) const {
    if (found_) {
        return *found_;
    }
    return fail(
        ErrorCode::environment, Stage::compile,
        fmt::format("{}{}: expected {} in one of {}; {}", none, named, expected, fmt::join(looked_in_, ", "),
                    named.empty() ? advice : "no other place was looked at"));
}

Result<Toolchain> find_toolchain(const CompilerConfig& config, Family family) {
    return family == Family::cuda ? find_cuda(config) : find_rocm(config);
}

}  // namespace kiln::compile
