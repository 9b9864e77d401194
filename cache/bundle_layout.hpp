// The fixed numbers of the bundle grammar (bundle.hpp), for the writer, the reader and whoever makes bundles
// with faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln::cache {

inline constexpr std::string_view kBundleMagic = "\x89KBND\r\n\x1A";

// Where the fields of the header stand.
namespace bundle_at {
inline constexpr std::size_t kVersion = 8;
inline constexpr std::size_t kReserved = 12;
inline constexpr std::size_t kFileBytes = 16;
inline constexpr std::size_t kNumEntries = 24;
inline constexpr std::size_t kNumDocuments = 32;
inline constexpr std::size_t kDescriptionBytes = 40;
inline constexpr std::size_t kDocumentsBytes = 48;
inline constexpr std::size_t kDirectoryDigest = 56;
inline constexpr std::size_t kDescriptionDigest = 88;
inline constexpr std::size_t kDocumentsDigest = 120;
inline constexpr std::size_t kContentsDigest = 152;
inline constexpr std::size_t kSignatureKind = 184;  // what stands before it is signed
inline constexpr std::size_t kSigner = 188;
inline constexpr std::size_t kSignature = 220;
inline constexpr std::size_t kDirectory = 284;
}  // namespace bundle_at

inline constexpr std::size_t kBundlePages = 256;
inline constexpr std::size_t kPageBytes = 8 + 32;  // of a page's line in the directory
inline constexpr std::size_t kIndexAt = bundle_at::kDirectory + kBundlePages * kPageBytes;
inline constexpr std::size_t kRecordBytes = 32 + 32 + 8 + 8 + 32;
inline constexpr std::size_t kMaxDocumentName = 255;

enum class SignatureKind : std::uint32_t { none = 0, ed25519 = 1 };  // persisted: never change

}  // namespace kiln::cache
