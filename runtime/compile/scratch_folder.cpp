#include "runtime/compile/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

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

// Opens and locks the folder, when it is this user's, nobody holds it, and the path still leads to it.
// An errno value, 0 for success.
int lock_folder(const fs::path& path, UniqueFd& lock) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat opened {};
    struct stat named {};
    if (!fd.valid() || ::fstat(fd.get(), &opened) != 0) {
        return errno;
    }
    if (opened.st_uid != ::geteuid()) {
        return EPERM;
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ::lstat(path.c_str(), &named) != 0) {
        return errno;
    }
    if (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
        return ENOENT;
    }
    lock = above_standard_streams(std::move(fd));
    return lock.valid() ? 0 : errno;
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
        UniqueFd lock;
        error = lock_folder(path, lock);
        if (error == 0 || error == ENOLCK || error == EOPNOTSUPP || error == EBADF) {
            return ScratchFolder(path, std::move(lock));  // without locks nobody can sweep it either
        }
        std::error_code ignored;
        fs::remove(path, ignored);
        if (error != EWOULDBLOCK && error != ENOENT) {
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
        UniqueFd lock;
        if (lock_folder(path, lock) == 0) {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    }
}

}  // namespace kiln::compile
