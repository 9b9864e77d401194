// A bundle: many entries and the documents that they were made from, in one file that is looked into at
// random. What opening it costs does not depend on its size.
//
// Grammar; all numbers are little-endian, nothing is aligned or padded:
//
// clang-format off
//   bundle      = header directory index description documents entries
//   header      = magic version reserved file_bytes num_entries num_documents description_bytes
//                 documents_bytes digest{4} signature
//   magic       = 89 4B 42 4E 44 0D 0A 1A       "\x89KBND\r\n\x1A"
//   version     = u32                           kBundleVersion
//   reserved    = u32                           0
//   file_bytes num_entries num_documents description_bytes documents_bytes = u64
//   digest{4}   = SHA-256 of the directory, of the description, of the documents, and of everything behind
//                 the header
//   signature   = u32 key{32} bytes{64}         0 and zeros; or 1, the public key that signed and its Ed25519
//                                               signature of the header before this field
//   directory   = (u64 count, digest){256}      of each page: how many records, and the SHA-256 of them
//   index       = record{num_entries}           ascending by request, then key, no two equal; page P holds
//                                               those whose request digest begins with the byte P
//   record      = request{32} key{32} u64 offset u64 size footer{32}
//                                               Key::request_digest(), Key::digest(), where the entry stands
//                                               in the file, and its last 32 bytes: its own digest
//   description = a JSON object                 what a person wants to know of the bundle
//   documents   = (u32 name_bytes, u64 text_bytes, name, text){num_documents}     ascending by name, no two
//                                               equal; a name is one of a file in a folder, whatever folder
//   entries     = entry{num_entries}            as entry.hpp says, in the order of the index, to the end
// clang-format on
//
// So everything hangs on the header: the directory's digest there vouches for each page's, a page's for the
// footers of its entries, and a footer for its entry. A reader checks the header, the directory and the
// signature when it opens the file, a page when it is first looked into, and an entry whenever it is asked
// for: a byte that was altered is never acted upon, and what is never asked for is never read. verify() reads
// all of it.
//
// Equal entries, documents and description give equal bytes, in whatever order they are added.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/signature.hpp"
#include "cache/bundle_layout.hpp"
#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace kiln::cache {

// History of the format. A version is never reused.
//   1  the first; its entries are of kEntryVersion 1
inline constexpr std::uint32_t kBundleVersion = 1;

struct BundleRecord {
    Digest request;
    Digest key;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    Digest footer;
};

// Borrows from the bundle's bytes.
struct BundleDocument {
    std::string_view name;
    std::string_view text;
};

// A bundle in memory, mapped or not. Every error says what was expected and found where, as `damaged`. Thread
// safe; moves.
class BundleView {
  public:
    // `file` is borrowed and does not change. Checks the header, the directory, and a signature where there
    // is one.
    [[nodiscard]] static Result<BundleView> open(ByteView file);

    [[nodiscard]] std::uint64_t num_entries() const { return num_entries_; }
    [[nodiscard]] std::uint64_t num_documents() const { return num_documents_; }
    [[nodiscard]] std::uint64_t bytes() const { return file_.size(); }
    // Who signed; nothing of a bundle without a signature.
    [[nodiscard]] const std::optional<PublicKey>& signer() const { return signer_; }
    // The SHA-256 of all behind the header: the header's claim, which verify() holds it to.
    [[nodiscard]] Digest contents() const;

    [[nodiscard]] Result<std::string_view> description() const;
    [[nodiscard]] Result<std::vector<BundleDocument>> documents() const;

    // The record of one key; of any key with this request, the first by key; or nothing.
    [[nodiscard]] Result<std::optional<BundleRecord>> find(const Key& key) const;
    [[nodiscard]] Result<std::optional<BundleRecord>> find_by_request(const Digest& request) const;
    // All of them, in the order of the index.
    [[nodiscard]] Result<std::vector<BundleRecord>> records() const;

    // The entry of a record that this view gave: its footer is the record's, and it verifies.
    [[nodiscard]] Result<EntryFile> entry(const BundleRecord& record) const;
    // The same, whole, and of the key and the request that the record says.
    [[nodiscard]] Result<StoredEntry> stored(const BundleRecord& record) const;

    // Reads everything: every fault that there is, none of a bundle that BundleWriter wrote.
    [[nodiscard]] std::vector<Error> verify() const;

  private:
    enum class PageState : std::uint8_t { unknown, sound };
    using PageStates = std::array<std::atomic<PageState>, kBundlePages>;

    explicit BundleView(ByteView file) : file_(file), states_(std::make_unique<PageStates>()) {}
    [[nodiscard]] Result<void> read_header();
    [[nodiscard]] Result<void> read_directory();
    [[nodiscard]] Result<void> read_signature();
    [[nodiscard]] BundleRecord record_at(std::uint64_t index) const;
    [[nodiscard]] Result<void> check_page(std::size_t page) const;
    // The first record at or behind (request, key), once its page is known to be sound.
    [[nodiscard]] Result<std::optional<BundleRecord>> lower_bound(const Digest& request,
                                                                  const Digest& key) const;

    // Constant after open().
    ByteView file_;
    std::uint64_t num_entries_ = 0;
    std::uint64_t num_documents_ = 0;
    ByteView directory_;
    ByteView description_;
    ByteView documents_;
    std::uint64_t entries_at_ = 0;
    std::array<std::uint64_t, kBundlePages + 1> first_{};  // record of each page, and behind the last
    std::optional<PublicKey> signer_;

    std::unique_ptr<PageStates> states_;
};

// Collects entries and documents, and writes them down.
class BundleWriter {
  public:
    // One entry's file, as serialise() gives it. `damaged` when it does not verify; invalid_argument when
    // another one of its key is there already (the same one again is welcome).
    [[nodiscard]] Result<void> add(Bytes entry_file);
    // invalid_argument for a name that no file can have, or another text under a name that is taken.
    [[nodiscard]] Result<void> add_document(std::string_view name, std::string_view text);

    // The file's bytes, signed where there is a key. invalid_argument when the description is no JSON object.
    [[nodiscard]] Result<Bytes> write(std::string_view description, const SigningKey* key = nullptr) const;

  private:
    std::map<std::pair<Digest, Digest>, Bytes> entries_;  // by request and key
    std::map<std::string, std::string, std::less<>> documents_;
};

}  // namespace kiln::cache
