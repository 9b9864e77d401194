// A bundle as a read-only layer. See bundle_file.hpp.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "cache/bundle_file.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

class BundleLayer : public Layer {
  public:
    explicit BundleLayer(std::shared_ptr<const BundleFile> file) : file_(std::move(file)) {}

    Result<std::optional<Entry>> get(const Key& key) override {
        return look<Entry>([&] { return of_key(key); }, [](EntryFile file) { return file.entry(); });
    }
    Result<std::optional<EntryFile>> find(const Key& key) override {
        return look<EntryFile>([&] { return of_key(key); }, as_it_is);
    }
    Result<std::optional<EntryFile>> find_by_request(const Digest& request) override {
        return look<EntryFile>([&] { return of_request(request); }, as_it_is);
    }
    Result<std::vector<EntrySummary>> list() const override;
    Result<StoredEntry> read(const EntrySummary& summary) const override;
    StoreStatistics statistics() const override { return {hits_, misses_, damaged_, 0, 0, 0}; }
    const fs::path& folder() const override { return file_->path(); }
    bool is_bundle() const override { return true; }

  private:
    static Result<EntryFile> as_it_is(EntryFile file) { return file; }
    [[nodiscard]] const BundleView& view() const { return file_->view(); }
    [[nodiscard]] Result<std::optional<EntryFile>> of_key(const Key& key) const;
    [[nodiscard]] Result<std::optional<EntryFile>> of_request(const Digest& request) const;
    // What `find` finds, decoded; damaged is a miss that is reported.
    template <class Wanted, class Find, class Decode>
    Result<std::optional<Wanted>> look(const Find& find, const Decode& decode);
    void report(const std::string& fault);

    const std::shared_ptr<const BundleFile> file_;
    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> misses_{0};
    std::atomic<std::uint64_t> damaged_{0};

    mutable std::mutex mutex_;
    std::set<std::string> known_faults_;                         // protected by mutex_
    mutable std::optional<std::map<Digest, BundleRecord>> all_;  // by key; protected by mutex_
};

Result<std::optional<EntryFile>> BundleLayer::of_key(const Key& key) const {
    const auto record = view().find(key);
    if (!record || !*record) {
        return record ? Result<std::optional<EntryFile>>() : tl::unexpected(record.error());
    }
    auto file = view().entry(**record);
    if (!file) {
        return fail(file);
    }
    if (file->key_document() != key.document()) {
        return fail(ErrorCode::damaged, Stage::cache,
                    fmt::format("bundle, entry {}: expected its key, found another one", key.digest().hex()));
    }
    return std::optional(*std::move(file));
}

Result<std::optional<EntryFile>> BundleLayer::of_request(const Digest& request) const {
    const auto record = view().find_by_request(request);
    if (!record || !*record) {
        return record ? Result<std::optional<EntryFile>>() : tl::unexpected(record.error());
    }
    auto file = view().entry(**record);
    if (!file) {
        return fail(file);
    }
    const auto key = file->key();
    if (!key || key->request_digest() != request || key->digest() != (*record)->key) {
        return fail(
            ErrorCode::damaged, Stage::cache,
            fmt::format("bundle, entry {}: expected its key, found another one", (*record)->key.hex()));
    }
    return std::optional(*std::move(file));
}

template <class Wanted, class Find, class Decode>
Result<std::optional<Wanted>> BundleLayer::look(const Find& find, const Decode& decode) {
    auto found = find();
    if (found && *found) {
        if (auto wanted = decode(*std::move(*found))) {
            ++hits_;
            return std::optional<Wanted>(*std::move(wanted));
        } else {
            found = fail(wanted);
        }
    }
    ++misses_;
    if (!found) {
        ++damaged_;
        report(found.error().message);
    }
    return std::optional<Wanted>();
}

void BundleLayer::report(const std::string& fault) {
    {
        const std::lock_guard lock(mutex_);
        if (!known_faults_.insert(fault).second) {
            return;
        }
    }
    log::event(log::Level::warning, "damaged",
               {{"path", file_->path().string()}, {"reason", fault}, {"outcome", "left where it is"}});
}

Result<std::vector<EntrySummary>> BundleLayer::list() const {
    const auto records = view().records();
    if (!records) {
        return fail(records.error().code, records.error().stage,
                    fmt::format("{}: {}", file_->path().string(), records.error().message));
    }
    std::vector<EntrySummary> summaries;
    summaries.reserve(records->size());
    for (const auto& record : *records) {
        summaries.push_back({record.key, file_->path(), record.bytes, file_->written()});
    }
    std::ranges::sort(summaries, {}, &EntrySummary::key);
    return summaries;
}

Result<StoredEntry> BundleLayer::read(const EntrySummary& summary) const {
    std::optional<BundleRecord> record;
    {
        const std::lock_guard lock(mutex_);
        if (!all_) {
            const auto records = view().records();
            if (!records) {
                return tl::unexpected(records.error());
            }
            all_.emplace();
            for (const auto& one : *records) {
                all_->emplace(one.key, one);
            }
        }
        const auto found = all_->find(summary.key);
        if (found == all_->end()) {
            return fail(ErrorCode::not_found, Stage::cache,
                        fmt::format("{}: it has no entry {}", file_->path().string(), summary.key.hex()));
        }
        record = found->second;
    }
    auto stored = view().stored(*record);
    if (!stored) {
        stored.error().message = fmt::format("{}: {}", file_->path().string(), stored.error().message);
    }
    return stored;
}

}  // namespace

Result<std::unique_ptr<Layer>> open_bundle_layer(const fs::path& path, const TrustedKeys& trusted) {
    auto file = BundleFile::open(path, trusted);
    if (!file) {
        return fail(file);
    }
    return std::make_unique<BundleLayer>(*std::move(file));
}

}  // namespace kiln::cache
