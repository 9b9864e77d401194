#include "cache/entry.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <zstd.h>

#include "cache/entry_layout.hpp"
#include "cache/json_object.hpp"
#include "cache/little_endian.hpp"

namespace kiln::cache {
namespace {

constexpr int kLevel = 3;  // of zstd: the default, and most of what higher ones gain on code and listings
// A frame that saves less than this is not worth decoding on every read.
constexpr std::uint64_t kMinSaving = 256;

struct Section {
    Encoding encoding = Encoding::raw;
    std::uint64_t original = 0;
    Bytes frame;       // the payload when encoded
    ByteView payload;  // what stands in the file: into `frame` or into the caller's bytes
};

Result<Section> encode(std::string_view name, ByteView bytes, Compression compression) {
    if (bytes.size() > kMaxSectionBytes) {
        return fail(ErrorCode::invalid_argument, Stage::cache,
                    fmt::format("section {} of a cache entry: expected at most {} bytes, found {}", name,
                                kMaxSectionBytes, bytes.size()));
    }
    Section section{Encoding::raw, bytes.size(), {}, bytes};
    if (compression == Compression::off || bytes.size() <= kMinSaving) {
        return section;
    }
    Bytes frame(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), kLevel);
    if (ZSTD_isError(size)) {
        return fail(ErrorCode::internal, Stage::cache,
                    fmt::format("section {} of a cache entry: zstd: {}", name, ZSTD_getErrorName(size)));
    }
    if (size + kMinSaving <= bytes.size()) {
        frame.resize(size);
        section.encoding = Encoding::zstd;
        section.frame = std::move(frame);
        section.payload = section.frame;
    }
    return section;
}

tl::unexpected<Error> damaged(std::string_view where, std::string_view expected, std::string_view found) {
    return fail(ErrorCode::damaged, Stage::cache,
                fmt::format("cache entry, {}: expected {}, found {}", where, expected, found));
}

struct Descriptor {
    Encoding encoding = Encoding::raw;
    std::uint64_t stored = 0;
    std::uint64_t original = 0;
};

// Checks one descriptor against the grammar; `left` is what the payloads of the file can still hold.
Result<Descriptor> read_descriptor(Cursor& cursor, const SectionName& name, std::uint64_t left) {
    const auto where = fmt::format("descriptor {}", name.tag);
    if (const auto tag = as_text(cursor.take(4)); tag != name.tag) {
        return damaged(where, "its tag", "another one");
    }
    const auto encoding = cursor.integer<std::uint32_t>();
    Descriptor descriptor;
    descriptor.stored = cursor.integer<std::uint64_t>();
    descriptor.original = cursor.integer<std::uint64_t>();
    if (encoding > (name.may_be_compressed ? 1U : 0U)) {
        return damaged(where, "a known encoding", fmt::format("{}", encoding));
    }
    descriptor.encoding = static_cast<Encoding>(encoding);
    if (descriptor.stored > left) {
        return damaged(where, fmt::format("at most the {} bytes left in the file", left),
                       fmt::format("{} bytes", descriptor.stored));
    }
    if (descriptor.original > kMaxSectionBytes) {
        return damaged(where, fmt::format("at most {} bytes when decoded", kMaxSectionBytes),
                       fmt::format("{}", descriptor.original));
    }
    if (descriptor.encoding == Encoding::raw && descriptor.stored != descriptor.original) {
        return damaged(where, "equal lengths of a raw section",
                       fmt::format("{} and {}", descriptor.stored, descriptor.original));
    }
    return descriptor;
}

}  // namespace

Result<Bytes> serialise(const Key& key, const Entry& entry, Compression compression) {
    if (!is_json_object(entry.metadata)) {
        return fail(ErrorCode::invalid_argument, Stage::cache,
                    "metadata of a cache entry: expected a JSON object, found something else");
    }
    const std::array<ByteView, kSections.size()> contents{as_bytes(key.document()), as_bytes(entry.metadata),
                                                          entry.code_object, as_bytes(entry.listing)};
    std::array<Section, kSections.size()> sections;
    std::size_t payloads = 0;
    for (std::size_t i = 0; i < kSections.size(); ++i) {
        auto section = encode(kSections[i].tag, contents[i],
                              kSections[i].may_be_compressed ? compression : Compression::off);
        if (!section) {
            return fail(section);
        }
        sections[i] = std::move(*section);
        payloads += sections[i].payload.size();
    }

    Bytes file;
    file.reserve(kHeaderBytes + payloads + kFooterBytes);
    append(file, as_bytes(kMagic));
    append_integer(file, kEntryVersion);
    append_integer(file, static_cast<std::uint32_t>(kSections.size()));
    for (std::size_t i = 0; i < kSections.size(); ++i) {
        append(file, as_bytes(kSections[i].tag));
        append_integer(file, static_cast<std::uint32_t>(sections[i].encoding));
        append_integer(file, std::uint64_t{sections[i].payload.size()});
        append_integer(file, sections[i].original);
    }
    for (const auto& section : sections) {
        append(file, section.payload);
    }
    append(file, sha256(file).bytes);
    return file;
}

namespace {

// Of this thread, made once: making one costs a fifth of what getting an entry does. Null when there is no
// memory for it, and once the thread's own objects are destroyed: destructors of static objects, which come
// later, may still ask for entries.
ZSTD_DCtx* decoder() {
    static constinit thread_local ZSTD_DCtx* context = nullptr;
    struct Owner {
        Owner() { context = ZSTD_createDCtx(); }
        ~Owner() {
            ZSTD_freeDCtx(context);
            context = nullptr;
        }
    };
    static thread_local const Owner owner;
    return context;
}

}  // namespace

ByteView EntryFile::payload(const Section& section) const {
    return ByteView(file_).subspan(section.offset, section.stored);
}

// Memory is asked for only after the frame itself claims the same length: one lie alone allocates nothing.
template <class Buffer>
Result<Buffer> EntryFile::decode(std::size_t index) const {
    const Section& section = sections_[index];
    const ByteView stored = payload(section);
    Buffer buffer;
    if (section.encoding == Encoding::raw) {
        const auto* begin = reinterpret_cast<const typename Buffer::value_type*>(stored.data());
        buffer.assign(begin, begin + stored.size());
        return buffer;
    }
    const auto where = fmt::format("payload {}", kSections[index].tag);
    const auto expected = fmt::format("one zstd frame of {} bytes", section.original);
    if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != section.original ||
        ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size()) {
        return damaged(where, expected, "another length");
    }
    buffer.resize(section.original);
    ZSTD_DCtx* const context = decoder();
    const std::size_t size =
        context != nullptr
            ? ZSTD_decompressDCtx(context, buffer.data(), buffer.size(), stored.data(), stored.size())
            : ZSTD_decompress(buffer.data(), buffer.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) || size != section.original) {
        return damaged(where, expected, ZSTD_isError(size) ? ZSTD_getErrorName(size) : "another length");
    }
    return buffer;
}

Result<EntryFile> EntryFile::verify(Bytes file) {
    if (file.size() < kHeaderBytes + kFooterBytes) {
        return damaged("file", fmt::format("at least {} bytes", kHeaderBytes + kFooterBytes),
                       fmt::format("{}", file.size()));
    }
    const ByteView body = ByteView(file).first(file.size() - kFooterBytes);
    if (!std::ranges::equal(sha256(body).bytes, ByteView(file).last(kFooterBytes))) {
        return damaged("footer", "the SHA-256 of what stands before it", "another one");
    }

    Cursor cursor(body);
    if (as_text(cursor.take(kMagic.size())) != kMagic) {
        return damaged("magic", "that of kiln", "another one");
    }
    if (const auto version = cursor.integer<std::uint32_t>(); version != kEntryVersion) {
        return damaged("version", fmt::format("{}", kEntryVersion), fmt::format("{}", version));
    }
    if (const auto count = cursor.integer<std::uint32_t>(); count != kSections.size()) {
        return damaged("count", fmt::format("{} sections", kSections.size()), fmt::format("{}", count));
    }
    EntryFile entry;
    static_assert(std::tuple_size_v<decltype(entry.sections_)> == kSections.size());
    std::size_t offset = kHeaderBytes;
    for (std::size_t i = 0; i < kSections.size(); ++i) {
        const auto descriptor = read_descriptor(cursor, kSections[i], body.size() - offset);
        if (!descriptor) {
            return tl::unexpected(descriptor.error());
        }
        entry.sections_[i] = {descriptor->encoding, offset, descriptor->stored, descriptor->original};
        offset += descriptor->stored;
    }
    if (offset != body.size()) {
        return damaged("payloads", "nothing after the last one",
                       fmt::format("{} bytes", body.size() - offset));
    }
    entry.file_ = std::move(file);
    return entry;
}

std::string_view EntryFile::key_document() const {
    return as_text(payload(sections_[0]));  // always raw
}

Result<std::string> EntryFile::metadata() const {
    auto metadata = decode<std::string>(1);
    if (metadata && !is_json_object(*metadata)) {
        return damaged("payload META", "a JSON object", "something else");
    }
    return metadata;
}

Result<Bytes> EntryFile::code_object() const {
    return decode<Bytes>(2);
}

Result<std::string> EntryFile::listing() const {
    return decode<std::string>(3);
}

Result<Entry> EntryFile::entry() const {
    auto metadata = this->metadata();
    if (!metadata) {
        return fail(metadata);
    }
    auto code = code_object();
    if (!code) {
        return fail(code);
    }
    auto listing = this->listing();
    if (!listing) {
        return fail(listing);
    }
    return Entry{*std::move(code), *std::move(metadata), *std::move(listing)};
}

Result<Key> EntryFile::key() const {
    auto key = Key::from_document(key_document());
    if (!key) {
        return damaged("payload KEY", "a key document", key.error().message);
    }
    return key;
}

Result<StoredEntry> parse_entry(ByteView file) {
    const auto verified = EntryFile::verify(Bytes(file.begin(), file.end()));
    if (!verified) {
        return tl::unexpected(verified.error());
    }
    auto key = verified->key();
    if (!key) {
        return fail(key);
    }
    auto entry = verified->entry();
    if (!entry) {
        return fail(entry);
    }
    return StoredEntry{*std::move(key), *std::move(entry)};
}

}  // namespace kiln::cache
