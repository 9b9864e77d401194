// One cache entry: what it holds, and how that stands in a file.
//
// Grammar; all numbers are little-endian, nothing is aligned or padded:
//
// clang-format off
//   entry      = magic version count descriptor{count} payload{count} footer
//   magic      = 89 4B 49 4C 4E 0D 0A 1A        "\x89KILN\r\n\x1A": seen to be binary, and broken by text
//                                               transfers
//   version    = u32                            kEntryVersion
//   count      = u32                            4
//   descriptor = tag encoding stored original   24 bytes each, in this order of tags:
//   tag        = "KEY " | "META" | "CODE" | "LIST"
//   encoding   = u32                            0 raw (stored == original), 1 one zstd frame; "KEY " is
//                                               always raw
//   stored     = u64                            bytes of the payload in the file
//   original   = u64                            bytes of it when decoded, at most kMaxSectionBytes
//   payload    = bytes                          stored bytes; KEY: the key document. META: a JSON object.
//                                               CODE: the code object. LIST: the listing, may be empty
//   footer     = 32 bytes                       SHA-256 of everything before it
// clang-format on
//
// A reader checks the footer before it looks at anything else, so that no flipped or missing byte gets any
// further; then every field, strictly, so that a file made wrongly on purpose is refused too. Memory is
// bounded by the file's size and kMaxSectionBytes, never by a length that is merely claimed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "cache/key.hpp"

namespace kiln::cache {

// History of the format. A version is never reused; the store keeps every version in a folder of its own.
//   1  the first: key, metadata, code object, listing
inline constexpr std::uint32_t kEntryVersion = 1;

inline constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{256} << 20;

enum class Encoding : std::uint32_t { raw = 0, zstd = 1 };  // persisted: never change

struct Entry {
    Bytes code_object;            // this room does not look into it; may be empty
    std::string metadata = "{}";  // JSON object: what a person wants to know of it; never decides a lookup
    std::string listing;          // disassembly; may be empty

    friend bool operator==(const Entry&, const Entry&) = default;
};

struct StoredEntry {
    Key key;
    Entry entry;
};

// `off` writes every section raw: bytes that do not depend on the version of libzstd.
enum class Compression { off, where_it_pays };

// The file's bytes. invalid_argument when the metadata is no JSON object or a section is larger than
// kMaxSectionBytes.
[[nodiscard]] Result<Bytes> serialise(const Key& key, const Entry& entry,
                                      Compression compression = Compression::where_it_pays);

// The bytes of one entry's file, verified: footer, header and lengths are right. Sections are decoded when
// they are asked for; what serialise() could not have written is `damaged` then. A plain value.
class EntryFile {
  public:
    [[nodiscard]] static Result<EntryFile> verify(Bytes file);

    // Both live as long as this object and is not moved. The whole file:
    [[nodiscard]] ByteView bytes() const { return file_; }
    [[nodiscard]] std::string_view key_document() const;
    [[nodiscard]] Result<std::string> metadata() const;
    [[nodiscard]] Result<Bytes> code_object() const;
    [[nodiscard]] Result<std::string> listing() const;
    [[nodiscard]] Result<Entry> entry() const;  // all but the key
    [[nodiscard]] Result<Key> key() const;

  private:
    struct Section {
        Encoding encoding = Encoding::raw;
        std::size_t offset = 0;  // of the payload in the file
        std::size_t stored = 0;
        std::uint64_t original = 0;
    };
    [[nodiscard]] ByteView payload(const Section& section) const;
    template <class Buffer>
    [[nodiscard]] Result<Buffer> decode(std::size_t index) const;

    Bytes file_;
    std::array<Section, 4> sections_;  // in the order of the file
};

// The inverse of serialise(); anything that serialise() could not have written is `damaged`, and the message
// says what was expected where.
[[nodiscard]] Result<StoredEntry> parse_entry(ByteView file);

}  // namespace kiln::cache
