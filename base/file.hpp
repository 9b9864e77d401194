// Files, with the three habits that a cache needs: descriptors that close themselves and never leak into a
// child, whole reads, and publication that is atomic and durable.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln {

// Owns one file descriptor. Not thread safe.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    void reset();
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  private:
    int fd_ = -1;
};

// The same descriptor under a number above those of the standard streams: a program may run with these closed
// and still print, and what it prints must not end up in a file or a socket of ours. Invalid, with errno,
// where there is none left.
[[nodiscard]] UniqueFd above_standard_streams(UniqueFd fd);

// The whole file. A file that does not exist is not_found; anything else is io, a folder, a pipe and a device
// among them. `stage` is the caller's.
[[nodiscard]] Result<Bytes> read_file(const std::filesystem::path& path, Stage stage);
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path, Stage stage);
// From an open descriptor to its end; `path` is what messages call it.
[[nodiscard]] Result<Bytes> read_file(const UniqueFd& fd, const std::filesystem::path& path, Stage stage);

enum class Readers { owner, everyone };

// Publishes `bytes` under `path`: a reader sees the old file or the whole new one, also after a power cut.
// Written to a temporary file of the same folder ("PATH.PID.RANDOM.tmp"), fsync, rename, fsync of the folder.
// From before the first byte until after the rename the writer holds the kernel's lock on that file: whoever
// sweeps a folder (sweep_temporary) knows by it that the writer lives. A writer that finds its file swept
// between creating and locking it makes another.
// On any error the temporary file is gone and `path` is as it was, but for one: when the folder can not be
// synchronised (the message says "fsync" and names it) the new file is in place and may not survive a power
// cut.
[[nodiscard]] Result<void> publish_file(const std::filesystem::path& path, ByteView bytes, Stage stage,
                                        Readers readers = Readers::owner);

enum class Sweep { look, remove };

// The other side: true when `path` is a temporary file that nobody writes any more, because its writer was
// killed; with Sweep::remove it is gone then. Where the file system knows no locks, one that was not touched
// for a day.
[[nodiscard]] bool sweep_temporary(const std::filesystem::path& path, Sweep sweep);

// "open /a/b: Permission denied", from an errno value.
[[nodiscard]] std::string system_message(std::string_view what, const std::filesystem::path& path, int error);

}  // namespace kiln
