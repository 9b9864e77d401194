#include "runtime/compile/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/file_lock.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "kiln-worker-";
constexpr std::size_t kRandomLetters = 6;  // of mkdtemp
constexpr int kAttempts = 100;             // a sweeper may take a folder between its making and its locking

fs::path parent_folder() {
    const char* const named = std::getenv("TMPDIR");
    std::error_code error;
    return fs::absolute(named != nullptr && *named != '\0' ? named : "/tmp", error);
}

bool is_scratch_name(std::string_view name) {
    return name.size() == kPrefix.size() + kRandomLetters && name.starts_with(kPrefix) &&
           std::all_of(name.begin() + kPrefix.size(), name.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
           });
}

UniqueFd open_folder(const fs::path& path) {
    return above_standard_streams(
        UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
}

// Whether the path still leads to the open folder.
bool is_named(const UniqueFd& folder, const fs::path& path) {
    struct stat opened {};
    struct stat named {};
    return ::fstat(folder.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

bool is_own(const UniqueFd& folder) {
    struct stat opened {};
    return ::fstat(folder.get(), &opened) == 0 && opened.st_uid == ::geteuid();
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make() {
    const fs::path parent = parent_folder();
    int error = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        std::string path = (parent / (std::string(kPrefix) + "XXXXXX")).string();
        if (::mkdtemp(path.data()) == nullptr) {
            error = errno;
            break;
        }
        UniqueFd folder = open_folder(path);
        error = folder.valid() ? EBUSY : errno;
        // One that can not be locked, nobody else can lock and sweep either.
        if (folder.valid() && lock_file(folder, Wait::no) != LockOutcome::busy && is_named(folder, path)) {
            return ScratchFolder(path, std::move(folder));
        }
        std::error_code ignored;
        fs::remove(path, ignored);
        if (error != EBUSY && error != ENOENT) {
            break;
        }
    }
    return fail(ErrorCode::environment, Stage::compile,
                fmt::format("start a compile worker: make a folder for temporary files in {} (TMPDIR): {}",
                            parent.string(), std::strerror(error)));
}

ScratchFolder::~ScratchFolder() {
    if (!path_.empty()) {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
}

void sweep_scratch_folders() {
    const fs::path parent = parent_folder();
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
        if (is_scratch_name(it->path().filename().native())) {
            found.push_back(it->path());
        }
    }
    for (const fs::path& path : found) {
        const UniqueFd folder = open_folder(path);
        if (folder.valid() && is_own(folder) && lock_file(folder, Wait::no) == LockOutcome::held &&
            is_named(folder, path)) {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    }
}

}  // namespace kiln::compile
