// What a code object is kept under: a canonical JSON document in two parts, and its SHA-256.
//
//   {"build":   {...},     the compiler's identity
//    "request": {...}}     schema version, digests of the template and its headers, constants, target, options
//
// Canonical means: members sorted by name, no white space, UTF-8, integers only (no floating point), so that equal
// requests give equal bytes. The document is kept in the entry and compared on every read.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/error.hpp"

namespace kiln::cache {

class Key {
  public:
    // Both are JSON objects as text, in any formatting; they are parsed and written canonically. bad_input when one is
    // not an object or holds a floating point number.
    [[nodiscard]] static Result<Key> make(std::string_view request, std::string_view build);
    // From a document that an entry holds.
    [[nodiscard]] static Result<Key> from_document(std::string_view document);

    [[nodiscard]] const std::string& document() const { return document_; }
    // Digest of the document: the name of the entry.
    [[nodiscard]] const Digest& digest() const { return digest_; }
    // Digest of the request part alone: what a bundle may be matched by.
    [[nodiscard]] const Digest& request_digest() const { return request_digest_; }

  private:
    Key() = default;
    std::string document_;
    Digest digest_;
    Digest request_digest_;
};

}  // namespace kiln::cache
