// A read-only layer: a folder that this process looks into and never writes to. See layer.hpp.

#include <atomic>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "cache/entry_folder.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

class ReadOnlyLayer : public Layer {
  public:
    explicit ReadOnlyLayer(fs::path folder) : folder_(std::move(folder), Owners::user_or_root) {}

    Result<std::optional<Entry>> get(const Key& key) override {
        return look<Entry>(key, [](EntryFile file) { return file.entry(); });
    }
    Result<std::optional<EntryFile>> find(const Key& key) override {
        return look<EntryFile>(key, [](EntryFile file) { return Result<EntryFile>(std::move(file)); });
    }
    Result<std::optional<EntryFile>> find_by_request(const Digest& request) override {
        auto found = folder_.find_by_request(request);
        if (found) {
            ++(*found ? hits_ : misses_);
        }
        return found;
    }
    Result<std::vector<EntrySummary>> list() const override { return folder_.list(); }
    Result<StoredEntry> read(const EntrySummary& summary) const override { return folder_.read(summary); }
    StoreStatistics statistics() const override { return {hits_, misses_, damaged_, 0, refused_, 0}; }
    const fs::path& folder() const override { return folder_.folder(); }

  private:
    template <class Wanted, class Decode>
    Result<std::optional<Wanted>> look(const Key& key, const Decode& decode);
    void report(std::string_view event, const Key& key, const Error& error);

    EntryFolder folder_;
    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> misses_{0};
    std::atomic<std::uint64_t> damaged_{0};
    std::atomic<std::uint64_t> refused_{0};
};

template <class Wanted, class Decode>
Result<std::optional<Wanted>> ReadOnlyLayer::look(const Key& key, const Decode& decode) {
    auto bytes = folder_.read_bytes(key.digest());
    auto file = bytes ? verify_named(*std::move(bytes), key) : Result<EntryFile>(fail(bytes));
    auto wanted = file ? decode(*std::move(file)) : Result<Wanted>(fail(file));
    if (wanted) {
        ++hits_;
        return std::optional<Wanted>(*std::move(wanted));
    }
    switch (wanted.error().code) {
        case ErrorCode::not_found:
            break;
        case ErrorCode::damaged:
            report("damaged", key, wanted.error());
            ++damaged_;
            break;
        case ErrorCode::environment:
            report("refuse", key, wanted.error());
            ++refused_;
            break;
        default:
            return fail(wanted);
    }
    ++misses_;
    return std::optional<Wanted>();
}

void ReadOnlyLayer::report(std::string_view event, const Key& key, const Error& error) {
    if (const auto path = folder_.path_of(key.digest()).string(); folder_.is_news(path + error.message)) {
        log::event(log::Level::warning, event,
                   {{"path", path}, {"reason", error.message}, {"outcome", "left where it is"}});
    }
}

}  // namespace

Result<std::unique_ptr<Layer>> open_layer(const fs::path& folder) {
    auto absolute = absolute_folder(folder);
    if (!absolute) {
        return fail(absolute);
    }
    auto opened = open_trusted_folder(*absolute, Owners::user_or_root);
    if (!opened) {
        std::error_code unknown;
        if (fs::exists(*absolute, unknown) && !fs::is_directory(*absolute, unknown)) {
            opened.error().message =
                fmt::format("cache layer {}: expected a folder, found a file", absolute->string());
        } else {
            opened.error().message = fmt::format("cache layer: {}", opened.error().message);
        }
        opened.error().code = ErrorCode::environment;
        return fail(opened);
    }
    return std::make_unique<ReadOnlyLayer>(*std::move(absolute));
}

}  // namespace kiln::cache
