#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "base/file_lock.hpp"

namespace kiln {
namespace {

constexpr std::time_t kStaleSeconds = 24 * 60 * 60;

Error io_error(Stage stage, std::string_view what, const std::filesystem::path& path, int error) {
    const auto code = error == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return Error{code, stage, system_message(what, path, error)};
}

// Reads into anything that is a contiguous, resizable run of single bytes.
template <class Buffer>
Result<Buffer> read_whole(const UniqueFd& fd, const std::filesystem::path& path, Stage stage) {
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) {
        return tl::unexpected(io_error(stage, "stat", path, errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return fail(ErrorCode::io, stage, fmt::format("{}: expected a regular file", path.string()));
    }
    Buffer buffer;
    // One byte more than the file claims to have, so that the end is seen without growing the buffer again.
    buffer.resize(static_cast<std::size_t>(info.st_size) + 1);
    std::size_t used = 0;
    while (true) {
        const ssize_t got = ::read(fd.get(), buffer.data() + used, buffer.size() - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return tl::unexpected(io_error(stage, "read", path, errno));
        }
        if (got == 0) {
            break;
        }
        used += static_cast<std::size_t>(got);
        if (used == buffer.size()) {
            buffer.resize(2 * buffer.size());
        }
    }
    buffer.resize(used);
    return buffer;
}

template <class Buffer>
Result<Buffer> read_whole(const std::filesystem::path& path, Stage stage) {
    // Not blocking: a pipe without a writer must not hold us up before we have seen that it is one.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
        return tl::unexpected(io_error(stage, "open", path, errno));
    }
    return read_whole<Buffer>(fd, path, stage);
}

// A temporary file that is open and locked. Removed unless its publication was completed.
class TemporaryFile {
  public:
    static Result<TemporaryFile> create(const std::filesystem::path& target, Stage stage);
    TemporaryFile(TemporaryFile&&) noexcept = default;
    TemporaryFile& operator=(TemporaryFile&&) = delete;
    ~TemporaryFile() {
        if (fd_.valid() && !kept_) {
            ::unlink(path_.c_str());
        }
    }
    const std::filesystem::path& path() const { return path_; }
    int fd() const { return fd_.get(); }
    void keep() { kept_ = true; }

  private:
    TemporaryFile(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::filesystem::path path_;
    UniqueFd fd_;
    bool kept_ = false;
};

Result<TemporaryFile> TemporaryFile::create(const std::filesystem::path& target, Stage stage) {
    static thread_local std::mt19937_64 random{std::random_device{}()};
    while (true) {
        std::filesystem::path path = fmt::format("{}.{}.{:016x}.tmp", target.string(), ::getpid(), random());
        UniqueFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        const bool is_there = created.valid();
        UniqueFd fd = above_standard_streams(std::move(created));
        if (!fd.valid()) {
            const int error = errno;
            if (is_there) {
                ::unlink(path.c_str());
            }
            return tl::unexpected(io_error(stage, "create", path, error));
        }
        TemporaryFile temporary(std::move(path), std::move(fd));
        // Best effort: without a lock, the file's age protects it.
        static_cast<void>(lock_file(temporary.fd_, Wait::for_ever));
        struct stat info {};
        if (::fstat(temporary.fd(), &info) != 0) {
            return tl::unexpected(io_error(stage, "stat", temporary.path(), errno));
        }
        if (info.st_nlink > 0) {  // else a sweeper had it first
            return temporary;
        }
    }
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.release();
    }
    return *this;
}

void UniqueFd::reset() {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

UniqueFd above_standard_streams(UniqueFd fd) {
    if (!fd.valid() || fd.get() > STDERR_FILENO) {
        return fd;
    }
    return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

std::string system_message(std::string_view what, const std::filesystem::path& path, int error) {
    return fmt::format("{} {}: {}", what, path.string(), std::generic_category().message(error));
}

Result<Bytes> read_file(const std::filesystem::path& path, Stage stage) {
    return read_whole<Bytes>(path, stage);
}

Result<std::string> read_text_file(const std::filesystem::path& path, Stage stage) {
    return read_whole<std::string>(path, stage);
}

Result<Bytes> read_file(const UniqueFd& fd, const std::filesystem::path& path, Stage stage) {
    return read_whole<Bytes>(fd, path, stage);
}

Result<void> publish_file(const std::filesystem::path& path, ByteView bytes, Stage stage, Readers readers) {
    auto temporary = TemporaryFile::create(path, stage);
    if (!temporary) {
        return fail(temporary);
    }
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t put = ::write(temporary->fd(), bytes.data() + written, bytes.size() - written);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return tl::unexpected(io_error(stage, "write", temporary->path(), errno));
        }
        written += static_cast<std::size_t>(put);
    }
    if (readers == Readers::everyone && ::fchmod(temporary->fd(), 0644) != 0) {
        return tl::unexpected(io_error(stage, "chmod", temporary->path(), errno));
    }
    if (::fsync(temporary->fd()) != 0) {
        return tl::unexpected(io_error(stage, "fsync", temporary->path(), errno));
    }
    if (::rename(temporary->path().c_str(), path.c_str()) != 0) {
        return tl::unexpected(io_error(stage, "rename to", path, errno));
    }
    temporary->keep();

    auto folder = path.parent_path();
    if (folder.empty()) {
        folder = ".";
    }
    const UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_fd.valid() || ::fsync(folder_fd.get()) != 0) {
        return tl::unexpected(io_error(stage, "fsync", folder, errno));
    }
    return {};
}

bool sweep_temporary(const std::filesystem::path& path, Sweep sweep) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    switch (lock_file(fd, Wait::no)) {
        case LockOutcome::held:
            break;
        case LockOutcome::unsupported:
            if (std::time(nullptr) - info.st_mtime > kStaleSeconds) {
                break;
            }
            return false;
        case LockOutcome::busy:
        case LockOutcome::failed:
            return false;
    }
    // The lock is held while the name goes, so that a writer which has just created the file notices.
    return sweep == Sweep::look || ::unlink(path.c_str()) == 0;
}

}  // namespace kiln
