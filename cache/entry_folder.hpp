// What a store and a read-only layer have in common: one folder of entries, looked into with care.
#pragma once

#include <sys/stat.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "cache/layer.hpp"

namespace kiln::cache {

// Who may own what is run: layer.hpp says why.
enum class Owners { user, user_or_root };

// `environment` names the path, what was expected of it and what was found. `what` is "cache folder",
// "cache entry".
[[nodiscard]] Result<void> check_trusted(const struct stat& info, const std::filesystem::path& path,
                                         std::string_view what, Owners owners);

// Opens the folder that a store or a layer lies in, and checks it. A symbolic link is followed.
[[nodiscard]] Result<UniqueFd> open_trusted_folder(const std::filesystem::path& folder, Owners owners);

// From the working folder of now, without "." and "..", without a slash at its end.
[[nodiscard]] Result<std::filesystem::path> absolute_folder(const std::filesystem::path& folder);

// An error of the system: not_found when there is no such file, else io.
[[nodiscard]] Error io_error(std::string_view what, const std::filesystem::path& path, int error);

// EntrySummary::last_used of a file.
[[nodiscard]] std::chrono::system_clock::time_point used_at(const struct stat& info);

// The names in a folder, in no particular order. A folder that does not exist has none.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::filesystem::path& folder);

inline constexpr std::string_view kEntrySuffix = ".entry";

// Thread safe. Holds no descriptor between calls: the folder may be wiped, or another mounted there.
class EntryFolder {
  public:
    EntryFolder(std::filesystem::path folder, Owners owners);

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] const std::filesystem::path& entries() const { return entries_; }  // FOLDER/v1
    [[nodiscard]] std::filesystem::path path_of(const Digest& digest) const;

    // Opens a folder that lies inside, FOLDER/v1/DI say: every folder on the way is checked as layer.hpp
    // says, and no symbolic link is followed. Who has done so may go by path: nobody else can put another
    // there.
    [[nodiscard]] Result<UniqueFd> enter(const std::filesystem::path& path) const;

    struct OpenEntry {
        UniqueFd fd;
        struct stat info {};
    };
    // Opened and trusted. not_found; `environment` when it is refused; `damaged` when it is larger than any
    // entry can be.
    [[nodiscard]] Result<OpenEntry> open(const Digest& digest) const;
    [[nodiscard]] Result<Bytes> read_bytes(const Digest& digest) const;

    // As Layer says.
    [[nodiscard]] Result<std::vector<EntrySummary>> list() const;
    [[nodiscard]] Result<StoredEntry> read(const EntrySummary& summary) const;
    [[nodiscard]] Result<std::optional<EntryFile>> find_by_request(const Digest& request);

    // True the first time that it is told of this text: a fault is said once, not at every look.
    [[nodiscard]] bool is_news(const std::string& fault);

  private:
    // One listed entry, of the key of its name; messages begin with its path.
    [[nodiscard]] Result<EntryFile> verified(const EntrySummary& summary) const;

    const std::filesystem::path folder_;
    const std::filesystem::path entries_;
    const Owners owners_;

    std::mutex mutex_;
    std::set<std::string> known_faults_;  // protected by mutex_
    // Request digests by key: a key stands for one document, so these never grow stale. Protected by mutex_.
    std::map<Digest, Digest> requests_;
};

// The verified file of `key` in `bytes`; `damaged` when it holds another key.
[[nodiscard]] Result<EntryFile> verify_named(Bytes bytes, const Key& key);

}  // namespace kiln::cache
