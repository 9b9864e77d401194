#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cache/bundle.hpp"
#include "cache/bundle_name.hpp"
#include "cache/json_object.hpp"
#include "cache/little_endian.hpp"

namespace kiln::cache {
namespace {

tl::unexpected<Error> damaged(std::string_view where, std::string_view expected, std::string_view found) {
    return fail(ErrorCode::damaged, Stage::cache,
                fmt::format("bundle, {}: expected {}, found {}", where, expected, found));
}

template <class Integer>
Integer integer_at(ByteView bytes, std::size_t at) {
    return Cursor(bytes.subspan(at, sizeof(Integer))).integer<Integer>();
}

Digest digest_at(ByteView bytes, std::size_t at) {
    Digest digest;
    std::ranges::copy(bytes.subspan(at, digest.bytes.size()), digest.bytes.begin());
    return digest;
}

Result<void> check_digest(ByteView bytes, const Digest& claimed, std::string_view where) {
    if (sha256(bytes) != claimed) {
        return damaged(where, "the SHA-256 that is written down for it", "another one");
    }
    return {};
}

std::size_t page_of(const Digest& request) {
    return std::to_integer<std::size_t>(request.bytes.front());
}

auto order_of(const BundleRecord& record) {
    return std::pair(record.request, record.key);
}

}  // namespace

Result<BundleView> BundleView::open(ByteView file) {
    BundleView view(file);
    for (const auto step :
         {&BundleView::read_header, &BundleView::read_directory, &BundleView::read_signature}) {
        if (auto done = (view.*step)(); !done) {
            return fail(done);
        }
    }
    return view;
}

Result<void> BundleView::read_header() {
    if (file_.size() < kIndexAt) {
        return damaged("file", fmt::format("at least {} bytes", kIndexAt), fmt::format("{}", file_.size()));
    }
    if (as_text(file_.first(kBundleMagic.size())) != kBundleMagic) {
        return damaged("magic", "that of a bundle", "another one");
    }
    if (const auto version = integer_at<std::uint32_t>(file_, bundle_at::kVersion);
        version != kBundleVersion) {
        return damaged("version", fmt::format("{}", kBundleVersion), fmt::format("{}", version));
    }
    if (integer_at<std::uint32_t>(file_, bundle_at::kReserved) != 0) {
        return damaged("reserved", "0", "something else");
    }
    if (const auto claimed = integer_at<std::uint64_t>(file_, bundle_at::kFileBytes);
        claimed != file_.size()) {
        return damaged("file", fmt::format("{} bytes", claimed), fmt::format("{}", file_.size()));
    }
    num_entries_ = integer_at<std::uint64_t>(file_, bundle_at::kNumEntries);
    num_documents_ = integer_at<std::uint64_t>(file_, bundle_at::kNumDocuments);
    const auto description_bytes = integer_at<std::uint64_t>(file_, bundle_at::kDescriptionBytes);
    const auto documents_bytes = integer_at<std::uint64_t>(file_, bundle_at::kDocumentsBytes);
    std::uint64_t left = file_.size() - kIndexAt;
    const auto take = [&left](std::uint64_t count, std::uint64_t each) {
        if (count > left / each) {
            return false;
        }
        left -= count * each;
        return true;
    };
    if (!take(num_entries_, kRecordBytes) || !take(description_bytes, 1) || !take(documents_bytes, 1)) {
        return damaged("header", "parts that fit into the file", "larger ones");
    }
    const std::size_t description_at = kIndexAt + num_entries_ * kRecordBytes;
    directory_ = file_.subspan(bundle_at::kDirectory, kBundlePages * kPageBytes);
    description_ = file_.subspan(description_at, description_bytes);
    documents_ = file_.subspan(description_at + description_bytes, documents_bytes);
    entries_at_ = file_.size() - left;
    return {};
}

Result<void> BundleView::read_directory() {
    if (auto sound = check_digest(directory_, digest_at(file_, bundle_at::kDirectoryDigest), "directory");
        !sound) {
        return sound;
    }
    for (std::size_t page = 0; page < kBundlePages; ++page) {
        const auto count = integer_at<std::uint64_t>(directory_, page * kPageBytes);
        if (count > num_entries_ - first_[page]) {
            return damaged("directory", fmt::format("{} records in all", num_entries_), "more");
        }
        first_[page + 1] = first_[page] + count;
    }
    if (first_.back() != num_entries_) {
        return damaged("directory", fmt::format("{} records in all", num_entries_),
                       fmt::format("{}", first_.back()));
    }
    return {};
}

Result<void> BundleView::read_signature() {
    const auto kind = integer_at<std::uint32_t>(file_, bundle_at::kSignatureKind);
    if (kind == static_cast<std::uint32_t>(SignatureKind::none)) {
        const auto rest = file_.subspan(bundle_at::kSigner, bundle_at::kDirectory - bundle_at::kSigner);
        if (std::ranges::any_of(rest, [](std::byte b) { return b != std::byte{0}; })) {
            return damaged("signature", "zeros where there is none", "something else");
        }
        return {};
    }
    if (kind != static_cast<std::uint32_t>(SignatureKind::ed25519)) {
        return damaged("signature", "a known kind", fmt::format("{}", kind));
    }
    PublicKey signer;
    Signature signature;
    std::ranges::copy(file_.subspan(bundle_at::kSigner, signer.bytes.size()), signer.bytes.begin());
    std::ranges::copy(file_.subspan(bundle_at::kSignature, signature.size()), signature.begin());
    if (!signer.verifies(signature, file_.first(bundle_at::kSignatureKind))) {
        return damaged("signature", fmt::format("that of key {}", signer.hex()), "another one");
    }
    signer_ = signer;
    return {};
}

Digest BundleView::contents() const {
    return digest_at(file_, bundle_at::kContentsDigest);
}

Result<std::string_view> BundleView::description() const {
    auto sound = check_digest(description_, digest_at(file_, bundle_at::kDescriptionDigest), "description");
    if (!sound) {
        return fail(sound);
    }
    const auto text = as_text(description_);
    if (!is_json_object(text)) {
        return damaged("description", "a JSON object", "something else");
    }
    return text;
}

Result<std::vector<BundleDocument>> BundleView::documents() const {
    if (auto sound = check_digest(documents_, digest_at(file_, bundle_at::kDocumentsDigest), "documents");
        !sound) {
        return fail(sound);
    }
    std::vector<BundleDocument> documents;
    Cursor cursor(documents_);
    while (cursor.left() > 0) {
        if (cursor.left() < sizeof(std::uint32_t) + sizeof(std::uint64_t)) {
            return damaged("documents", "two lengths", "too few bytes");
        }
        const auto name_bytes = cursor.integer<std::uint32_t>();
        const auto text_bytes = cursor.integer<std::uint64_t>();
        if (name_bytes > cursor.left() || text_bytes > cursor.left() - name_bytes) {
            return damaged("documents", fmt::format("at most {} bytes in one", cursor.left()), "more");
        }
        const auto name = as_text(cursor.take(name_bytes));
        if (!is_document_name(name) || (!documents.empty() && name <= documents.back().name)) {
            return damaged("documents", "names of files, ascending", "another one");
        }
        documents.push_back({name, as_text(cursor.take(text_bytes))});
    }
    if (documents.size() != num_documents_) {
        return damaged("documents", fmt::format("{} of them", num_documents_),
                       fmt::format("{}", documents.size()));
    }
    return documents;
}

BundleRecord BundleView::record_at(std::uint64_t index) const {
    const auto bytes = file_.subspan(kIndexAt + index * kRecordBytes, kRecordBytes);
    return {digest_at(bytes, 0), digest_at(bytes, 32), integer_at<std::uint64_t>(bytes, 64),
            integer_at<std::uint64_t>(bytes, 72), digest_at(bytes, 80)};
}

Result<void> BundleView::check_page(std::size_t page) const {
    auto& state = (*states_)[page];
    if (state.load(std::memory_order_acquire) == PageState::sound) {
        return {};
    }
    const auto where = fmt::format("page {:02x} of the index", page);
    const auto bytes = file_.subspan(kIndexAt + first_[page] * kRecordBytes,
                                     (first_[page + 1] - first_[page]) * kRecordBytes);
    if (auto sound = check_digest(bytes, digest_at(directory_, page * kPageBytes + 8), where); !sound) {
        return sound;
    }
    for (auto i = first_[page]; i < first_[page + 1]; ++i) {
        const auto record = record_at(i);
        if (page_of(record.request) != page ||
            (i > first_[page] && order_of(record) <= order_of(record_at(i - 1)))) {
            return damaged(where, "records of its own, ascending", "another one");
        }
        if (record.offset < entries_at_ || record.offset > file_.size() ||
            record.bytes > file_.size() - record.offset) {
            return damaged(where, "entries behind everything else in the file", "another place");
        }
    }
    state.store(PageState::sound, std::memory_order_release);
    return {};
}

Result<std::optional<BundleRecord>> BundleView::lower_bound(const Digest& request, const Digest& key) const {
    const auto page = page_of(request);
    if (auto sound = check_page(page); !sound) {
        return fail(sound);
    }
    auto begin = first_[page];
    for (auto end = first_[page + 1]; begin < end;) {
        const auto middle = begin + (end - begin) / 2;
        if (order_of(record_at(middle)) < std::pair(request, key)) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < first_[page + 1] ? std::optional(record_at(begin)) : std::nullopt;
}

Result<std::optional<BundleRecord>> BundleView::find(const Key& key) const {
    auto found = lower_bound(key.request_digest(), key.digest());
    if (found && *found && order_of(**found) != std::pair(key.request_digest(), key.digest())) {
        return std::optional<BundleRecord>();
    }
    return found;
}

Result<std::optional<BundleRecord>> BundleView::find_by_request(const Digest& request) const {
    auto found = lower_bound(request, Digest{});
    if (found && *found && (*found)->request != request) {
        return std::optional<BundleRecord>();
    }
    return found;
}

Result<std::vector<BundleRecord>> BundleView::records() const {
    std::vector<BundleRecord> records;
    for (std::size_t page = 0; page < kBundlePages; ++page) {
        if (auto sound = check_page(page); !sound) {
            return fail(sound);
        }
    }
    records.reserve(num_entries_);
    for (std::uint64_t i = 0; i < num_entries_; ++i) {
        records.push_back(record_at(i));
    }
    return records;
}

Result<EntryFile> BundleView::entry(const BundleRecord& record) const {
    const auto bytes = file_.subspan(record.offset, record.bytes);
    if (bytes.size() < record.footer.bytes.size() ||
        !std::ranges::equal(bytes.last(record.footer.bytes.size()), record.footer.bytes)) {
        return damaged(fmt::format("entry {}", record.key.hex()), "the digest that the index has of it",
                       "another one");
    }
    return EntryFile::verify(Bytes(bytes.begin(), bytes.end()));
}

Result<StoredEntry> BundleView::stored(const BundleRecord& record) const {
    const auto file = entry(record);
    if (!file) {
        return tl::unexpected(file.error());
    }
    auto key = file->key();
    if (!key) {
        return fail(key);
    }
    if (key->digest() != record.key || key->request_digest() != record.request) {
        return damaged(fmt::format("entry {}", record.key.hex()), "the key that the index has of it",
                       "another one");
    }
    auto entry = file->entry();
    return entry ? Result<StoredEntry>(StoredEntry{*std::move(key), *std::move(entry)}) : fail(entry);
}

std::vector<Error> BundleView::verify() const {
    std::vector<Error> faults;
    const auto note = [&faults](const auto& result) {
        if (!result) {
            faults.push_back(result.error());
        }
    };
    note(check_digest(file_.subspan(bundle_at::kDirectory), contents(), "contents"));
    note(description());
    note(documents());
    std::uint64_t next = entries_at_;  // of the entry that comes next, where all before it are known
    bool in_order = true;
    for (std::size_t page = 0; page < kBundlePages; ++page) {
        if (const auto sound = check_page(page); !sound) {
            note(sound);
            in_order = false;
            continue;
        }
        for (auto i = first_[page]; i < first_[page + 1]; ++i) {
            const auto record = record_at(i);
            if (in_order && record.offset != next) {
                note(Result<void>(damaged(fmt::format("entry {}", record.key.hex()),
                                          "its place right behind the one before", "another one")));
                in_order = false;
            }
            next = record.offset + record.bytes;
            note(stored(record));
        }
    }
    if (in_order && next != file_.size()) {
        note(Result<void>(damaged("entries", "nothing behind the last one", "further bytes")));
    }
    return faults;
}

}  // namespace kiln::cache
