#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "cache/bundle.hpp"
#include "cache/bundle_name.hpp"
#include "cache/json_object.hpp"
#include "cache/little_endian.hpp"

namespace kiln::cache {
namespace {

Bytes documents_of(const std::map<std::string, std::string, std::less<>>& documents) {
    Bytes bytes;
    for (const auto& [name, text] : documents) {
        append_integer(bytes, static_cast<std::uint32_t>(name.size()));
        append_integer(bytes, std::uint64_t{text.size()});
        append(bytes, as_bytes(name));
        append(bytes, as_bytes(text));
    }
    return bytes;
}

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::invalid_argument, Stage::cache, std::move(message));
}

}  // namespace

Result<void> BundleWriter::add(Bytes entry_file) {
    auto verified = EntryFile::verify(std::move(entry_file));
    if (!verified) {
        return fail(verified);
    }
    const auto key = verified->key();
    if (!key) {
        return tl::unexpected(key.error());
    }
    const ByteView bytes = verified->bytes();
    const auto [there, added] =
        entries_.try_emplace({key->request_digest(), key->digest()}, bytes.begin(), bytes.end());
    if (!added && !std::ranges::equal(there->second, bytes)) {
        return refuse(
            fmt::format("entry {}: expected one of each key, found two that differ", key->digest().hex()));
    }
    return {};
}

Result<void> BundleWriter::add_document(std::string_view name, std::string_view text) {
    if (!is_document_name(name)) {
        return refuse(fmt::format("\"{}\": expected the name of a file, without a folder", name));
    }
    const auto [there, added] = documents_.emplace(name, text);
    if (!added && there->second != text) {
        return refuse(fmt::format("\"{}\": expected one document of each name, found two that differ", name));
    }
    return {};
}

Result<Bytes> BundleWriter::write(std::string_view description, const SigningKey* key) const {
    if (!is_json_object(description)) {
        return refuse("description of a bundle: expected a JSON object, found something else");
    }
    const Bytes documents = documents_of(documents_);
    const std::uint64_t entries_at =
        kIndexAt + entries_.size() * kRecordBytes + description.size() + documents.size();

    std::array<Bytes, kBundlePages> pages;
    std::uint64_t offset = entries_at;
    for (const auto& [digests, entry] : entries_) {
        Bytes& page = pages[std::to_integer<std::size_t>(digests.first.bytes.front())];
        append(page, digests.first.bytes);
        append(page, digests.second.bytes);
        append_integer(page, offset);
        append_integer(page, std::uint64_t{entry.size()});
        append(page, ByteView(entry).last(sizeof(Digest::bytes)));
        offset += entry.size();
    }
    // The header comes last: it knows the digests. The file may be large, so there is one copy of it.
    Bytes file;
    file.reserve(offset);
    file.resize(bundle_at::kDirectory);
    for (const Bytes& page : pages) {
        append_integer(file, std::uint64_t{page.size() / kRecordBytes});
        append(file, sha256(page).bytes);
    }
    const Digest directory = sha256(ByteView(file).subspan(bundle_at::kDirectory));
    for (const Bytes& page : pages) {
        append(file, page);
    }
    append(file, as_bytes(description));
    append(file, documents);
    for (const auto& [digests, entry] : entries_) {
        append(file, entry);
    }

    Bytes header;
    append(header, as_bytes(kBundleMagic));
    append_integer(header, kBundleVersion);
    append_integer(header, std::uint32_t{0});
    append_integer(header, offset);
    append_integer(header, std::uint64_t{entries_.size()});
    append_integer(header, std::uint64_t{documents_.size()});
    append_integer(header, std::uint64_t{description.size()});
    append_integer(header, std::uint64_t{documents.size()});
    append(header, directory.bytes);
    append(header, sha256(description).bytes);
    append(header, sha256(documents).bytes);
    append(header, sha256(ByteView(file).subspan(bundle_at::kDirectory)).bytes);
    PublicKey signer;
    Signature signature{};
    if (key != nullptr) {
        const auto made = key->sign(header);
        if (!made) {
            return tl::unexpected(made.error());
        }
        signer = key->public_key();
        signature = *made;
    }
    append_integer(header,
                   static_cast<std::uint32_t>(key != nullptr ? SignatureKind::ed25519 : SignatureKind::none));
    append(header, signer.bytes);
    append(header, signature);
    std::ranges::copy(header, file.begin());
    return file;
}

}  // namespace kiln::cache
