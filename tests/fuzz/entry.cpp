// The parser of cache entries. An input stands for the file without its footer: the digest that keeps damage
// out would keep a fuzzer out as well, so it is added here, as whoever makes an entry on purpose would.

#include "cache/entry.hpp"

#include <algorithm>
#include <cstdint>

#include "base/digest.hpp"
#include "cache/entry_layout.hpp"
#include "tests/fuzz/target.hpp"

namespace kiln::fuzz {
namespace {

using cache::Compression;

// Sections may claim a quarter of a gigabyte and mean it: no fault, but nothing to wait for here.
constexpr std::uint64_t kMostClaimed = 1u << 20;

std::uint64_t number_at(ByteView bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
        value |= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
    }
    return value;
}

std::size_t descriptor_at(std::size_t section) {
    return cache::kMagic.size() + 8 + section * cache::kDescriptorBytes;
}

bool claims_too_much(ByteView body) {
    for (std::size_t i = 0; i < cache::kSections.size(); ++i) {
        const auto original = number_at(body, descriptor_at(i) + 16);
        if (original > kMostClaimed && original <= cache::kMaxSectionBytes) {
            return true;
        }
    }
    return false;
}

bool all_raw(ByteView body) {
    for (std::size_t i = 0; i < cache::kSections.size(); ++i) {
        if ((number_at(body, descriptor_at(i) + 4) & 0xffffffffu) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool run(ByteView body) {
    // As it stands its digest is wrong, or it is too short to have one.
    KILN_FUZZ_PROMISE(!cache::parse_entry(body));
    if (claims_too_much(body)) {
        return false;
    }
    Bytes file(body.begin(), body.end());
    const auto digest = sha256(body);
    file.insert(file.end(), digest.bytes.begin(), digest.bytes.end());
    const auto parsed = cache::parse_entry(file);
    if (!parsed) {
        KILN_FUZZ_PROMISE(parsed.error().code == ErrorCode::damaged);
        KILN_FUZZ_PROMISE(!parsed.error().message.empty());
        return false;
    }
    for (const auto compression : {Compression::off, Compression::where_it_pays}) {
        const auto written = cache::serialise(parsed->key, parsed->entry, compression);
        KILN_FUZZ_PROMISE(written);
        const auto again = cache::parse_entry(*written);
        KILN_FUZZ_PROMISE(again);
        KILN_FUZZ_PROMISE(again->key == parsed->key);
        KILN_FUZZ_PROMISE(again->entry == parsed->entry);
        // Only one way to write an entry without compression.
        KILN_FUZZ_PROMISE(compression != Compression::off || !all_raw(body) || *written == file);
    }
    return true;
}

}  // namespace kiln::fuzz
