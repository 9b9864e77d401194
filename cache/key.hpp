// What a code object is kept under: a canonical JSON document in two parts, and its SHA-256.
//
//   {"build":{...},      the compiler's identity
//    "request":{...}}    schema version, digests of the template and its headers, constants, target, options
//
// Canonical means: members sorted by the bytes of their names, no white space, UTF-8, integers only, so that
// equal requests give equal bytes whatever their formatting was. What this room can not write canonically it
// refuses: floating point numbers (an integer beyond 64 bits reads as one), a member named twice, and nesting
// deeper than kMaxDepth. The document is kept in the entry and compared on every read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/error.hpp"

namespace kiln::cache {

// A plain value: copies and moves freely, read by any number of threads.
class Key {
  public:
    // Objects and arrays inside a part.
    static constexpr std::size_t kMaxDepth = 64;

    // Both are JSON objects as text, in any formatting; they are parsed and written canonically. bad_input
    // when one is not an object or can not be canonical; the message names the part.
    [[nodiscard]] static Result<Key> make(std::string_view request, std::string_view build);

    // From a document that an entry holds: must be exactly what document() of some key returns, byte for
    // byte, else bad_input.
    [[nodiscard]] static Result<Key> from_document(std::string_view document);

    [[nodiscard]] const std::string& document() const { return document_; }
    // Digest of the document: the name of the entry.
    [[nodiscard]] const Digest& digest() const { return digest_; }
    // Digest of the canonical request part alone: what a bundle may be matched by.
    [[nodiscard]] const Digest& request_digest() const { return request_digest_; }

    friend bool operator==(const Key& a, const Key& b) { return a.document_ == b.document_; }

  private:
    Key(std::string_view request, std::string_view build);
    static std::optional<Key> split_canonical(std::string_view document);

    std::string document_;
    Digest digest_;
    Digest request_digest_;
};

}  // namespace kiln::cache
