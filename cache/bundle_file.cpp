#include "cache/bundle_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"
#include "cache/entry_folder.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

// Owns a mapping until somebody else does.
class Mapping {
  public:
    Mapping(const UniqueFd& fd, std::size_t size)
        : address_(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0)), size_(size) {}
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (valid()) {
            ::munmap(address_, size_);
        }
    }
    [[nodiscard]] bool valid() const { return address_ != MAP_FAILED; }
    [[nodiscard]] ByteView bytes() const { return {static_cast<const std::byte*>(address_), size_}; }
    void release() { address_ = MAP_FAILED; }

  private:
    void* address_;
    const std::size_t size_;
};

tl::unexpected<Error> refuse(ErrorCode code, const fs::path& path, std::string_view fault) {
    return fail(code, Stage::cache, fmt::format("{}: {}", path.string(), fault));
}

Result<void> check_signer(const BundleView& view, const TrustedKeys& trusted, const fs::path& path) {
    if (!trusted) {
        return {};
    }
    const auto& signer = view.signer();
    if (signer && std::ranges::find(*trusted, *signer) != trusted->end()) {
        return {};
    }
    return refuse(
        ErrorCode::environment, path,
        fmt::format("bundle: expected the signature of one of {} trusted keys, found {}", trusted->size(),
                    signer ? fmt::format("that of key {}", signer->hex()) : "none"));
}

}  // namespace

Result<std::shared_ptr<const BundleFile>> BundleFile::open(const fs::path& path, const TrustedKeys& trusted) {
    auto absolute = absolute_folder(path);
    if (!absolute) {
        return fail(absolute);
    }
    // Not blocking: a pipe without a writer must not hold us up before we have seen that it is one.
    const UniqueFd fd(::open(absolute->c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
        return tl::unexpected(io_error("open", *absolute, errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse(ErrorCode::environment, *absolute, "bundle: expected a regular file");
    }
    if (auto owned = check_trusted(info, *absolute, "bundle", Owners::user_or_root); !owned) {
        return fail(owned);
    }
    if (static_cast<std::size_t>(info.st_size) < kIndexAt) {  // an empty file can not be mapped
        return refuse(
            ErrorCode::damaged, *absolute,
            fmt::format("bundle, file: expected at least {} bytes, found {}", kIndexAt, info.st_size));
    }
    Mapping mapping(fd, static_cast<std::size_t>(info.st_size));
    if (!mapping.valid()) {
        return tl::unexpected(io_error("map", *absolute, errno));
    }
    auto view = BundleView::open(mapping.bytes());
    if (!view) {
        return refuse(view.error().code, *absolute, view.error().message);
    }
    if (auto signed_by = check_signer(*view, trusted, *absolute); !signed_by) {
        return fail(signed_by);
    }
    const auto file = std::shared_ptr<const BundleFile>(
        new BundleFile(*std::move(absolute), mapping.bytes(), *std::move(view), used_at(info)));
    mapping.release();
    return file;
}

BundleFile::~BundleFile() {
    ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

namespace {

// Gives `whole` the name `path` where nothing has that name yet: 0, or why not. Not every file system knows
// hard links, and fewer a rename that replaces nothing; where there is neither, two at the same time can not
// be told apart.
int take_name(const fs::path& whole, const fs::path& path) {
    const auto unknown = [] {
        return errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
    };
    if (::link(whole.c_str(), path.c_str()) == 0) {
        ::unlink(whole.c_str());
        return 0;
    }
    if (unknown()) {
        if (::renameat2(AT_FDCWD, whole.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
            return 0;
        }
        if (unknown()) {
            struct stat info {};
            if (::lstat(path.c_str(), &info) == 0) {
                errno = EEXIST;
            } else if (::rename(whole.c_str(), path.c_str()) == 0) {
                return 0;
            }
        }
    }
    const int error = errno;
    ::unlink(whole.c_str());
    return error;
}

}  // namespace

Result<void> publish_bundle(const fs::path& path, ByteView bundle) {
    auto whole = path;
    // Process numbers are no names where machines share the folder.
    whole += fmt::format(".{:08x}.new", std::random_device{}());
    if (auto written = publish_file(whole, bundle, Stage::cache, Readers::everyone); !written) {
        return written;
    }
    const int error = take_name(whole, path);
    if (error == EEXIST) {
        return fail(ErrorCode::bad_input, Stage::cache,
                    fmt::format("{}: expected no file of that name, found one", path.string()));
    }
    const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const UniqueFd in(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (error != 0 || !in.valid() || ::fsync(in.get()) != 0) {
        return fail(ErrorCode::io, Stage::cache,
                    system_message(error != 0 ? "name" : "fsync", path, error != 0 ? error : errno));
    }
    return {};
}

}  // namespace kiln::cache
