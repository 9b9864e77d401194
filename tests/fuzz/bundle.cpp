// The reader of bundles. The digests that keep damage out would keep a fuzzer out as well: an input is looked
// at as it stands, then with every digest written right, as whoever makes a bundle on purpose would.

#include "cache/bundle.hpp"

#include <algorithm>
#include <cstdint>

#include "tests/fuzz/target.hpp"

namespace kiln::fuzz {
namespace {

using namespace cache;

std::uint64_t number_at(ByteView bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        value |= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
    }
    return value;
}

// The digest of the part of `bytes` that the file claims to be there, where it is.
void mend(Bytes& bytes, std::size_t at, std::uint64_t begin, std::uint64_t size) {
    if (begin <= bytes.size() && size <= bytes.size() - begin) {
        const auto digest = sha256(ByteView(bytes).subspan(begin, size));
        std::ranges::copy(digest.bytes, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

// From the inside out: entries, their footers in the records, pages, directory, the rest.
Bytes mended(ByteView input) {
    Bytes bytes(input.begin(), input.end());
    if (bytes.size() < kIndexAt) {
        return bytes;
    }
    const auto room = (bytes.size() - kIndexAt) / kRecordBytes;
    const auto num_entries = std::min<std::uint64_t>(number_at(bytes, bundle_at::kNumEntries), room);
    for (std::uint64_t i = 0; i < num_entries; ++i) {
        const auto record = kIndexAt + i * kRecordBytes;
        const auto offset = number_at(bytes, record + 64);
        const auto size = number_at(bytes, record + 72);
        const auto index_end = kIndexAt + num_entries * kRecordBytes;
        if (size < 32 || offset < index_end || offset > bytes.size() || size > bytes.size() - offset) {
            continue;
        }
        const auto footer = static_cast<std::size_t>(offset + size - 32);
        mend(bytes, footer, offset, size - 32);
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(footer), 32,
                    bytes.begin() + static_cast<std::ptrdiff_t>(record + 80));
    }
    std::uint64_t first = 0;
    for (std::size_t page = 0; page < kBundlePages; ++page) {
        const auto line = bundle_at::kDirectory + page * kPageBytes;
        const auto count = std::min<std::uint64_t>(number_at(bytes, line), room);
        mend(bytes, line + 8, kIndexAt + first * kRecordBytes, count * kRecordBytes);
        first += count;
    }
    const auto description = kIndexAt + num_entries * kRecordBytes;
    const auto description_bytes = number_at(bytes, bundle_at::kDescriptionBytes);
    mend(bytes, bundle_at::kDirectoryDigest, bundle_at::kDirectory, kBundlePages * kPageBytes);
    mend(bytes, bundle_at::kDescriptionDigest, description, description_bytes);
    mend(bytes, bundle_at::kDocumentsDigest, description + description_bytes,
         number_at(bytes, bundle_at::kDocumentsBytes));
    mend(bytes, bundle_at::kContentsDigest, bundle_at::kDirectory, bytes.size() - bundle_at::kDirectory);
    return bytes;
}

// Everything that a reader may ask, whatever comes of it.
bool look(ByteView bytes) {
    const auto view = BundleView::open(bytes);
    if (!view) {
        KILN_FUZZ_PROMISE(view.error().code == ErrorCode::damaged);
        KILN_FUZZ_PROMISE(!view.error().message.empty());
        return false;
    }
    const auto records = view->records();
    KILN_FUZZ_PROMISE(!records || records->size() == view->num_entries());
    BundleWriter writer;
    bool whole = records.has_value();
    for (std::size_t i = 0; records && i < records->size(); ++i) {
        const auto& record = (*records)[i];
        const auto first = view->find_by_request(record.request);
        KILN_FUZZ_PROMISE(first && *first && (*first)->request == record.request);
        KILN_FUZZ_PROMISE((*first)->key <= record.key);
        const auto file = view->entry(record);
        const auto stored = view->stored(record);
        KILN_FUZZ_PROMISE(file || !stored);
        if (!stored) {
            whole = false;
            continue;
        }
        const auto found = view->find(stored->key);
        KILN_FUZZ_PROMISE(found && *found && (*found)->offset == record.offset);
        const ByteView entry = file->bytes();
        whole = whole && writer.add(Bytes(entry.begin(), entry.end()));
    }
    const auto description = view->description();
    const auto documents = view->documents();
    for (std::size_t i = 0; documents && i < documents->size(); ++i) {
        KILN_FUZZ_PROMISE(writer.add_document((*documents)[i].name, (*documents)[i].text));
    }
    const auto faults = view->verify();
    for (const auto& fault : faults) {
        KILN_FUZZ_PROMISE(fault.code == ErrorCode::damaged);
    }
    if (!faults.empty()) {
        return false;
    }
    if (view->signer()) {
        return true;
    }
    // Only one way to write a bundle without a signature.
    KILN_FUZZ_PROMISE(whole && description && documents);
    const auto again = writer.write(*description);
    KILN_FUZZ_PROMISE(again && std::ranges::equal(*again, bytes));
    return true;
}

// Sections of entries may claim a quarter of a gigabyte and mean it: no fault, but nothing to wait for here.
constexpr std::size_t kMostBytes = 1u << 20;

}  // namespace

bool run(ByteView input) {
    if (input.size() > kMostBytes) {
        return false;
    }
    static_cast<void>(look(input));
    return look(mended(input));
}

}  // namespace kiln::fuzz
