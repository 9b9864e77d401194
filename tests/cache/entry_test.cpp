#include "cache/entry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cache/entry_layout.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;

namespace {

// Offsets in the file, from the grammar in entry.hpp.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kCountAt = 12;
constexpr std::size_t descriptor_at(std::size_t section) {
    return 16 + 24 * section;
}

Bytes from_hex(std::string_view text) {
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(ByteView bytes) {
    std::string text;
    for (const auto byte : bytes) {
        text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    }
    return text;
}

void put(Bytes& file, std::size_t at, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) {
        file.at(at + i) = static_cast<std::byte>(value >> (8 * i));
    }
}

std::size_t stored_bytes(ByteView file, std::size_t section) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        value |= static_cast<std::size_t>(file[descriptor_at(section) + 8 + i]) << (8 * i);
    }
    return value;
}

// Makes the footer right again: what is refused then is refused by the parser, not by the digest.
void seal(Bytes& file) {
    const auto digest = sha256(ByteView(file).first(file.size() - kFooterBytes));
    std::ranges::copy(digest.bytes, file.end() - static_cast<std::ptrdiff_t>(kFooterBytes));
}

std::string refusal(ByteView file) {
    const auto parsed = parse_entry(file);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == ErrorCode::damaged);
    return parsed.error().message;
}

Entry golden_entry() {
    Entry entry;
    entry.code_object = from_hex("7f454c4602010100");
    entry.metadata = R"({"name":"golden"})";
    entry.listing = "s_endpgm\n";
    return entry;
}

Key golden_key() {
    return *Key::make(R"({"n":5120})", R"({"id":"ab"})");
}

}  // namespace

TEST_CASE("EntryGoldenBytesOfVersion1") {
    const auto file = serialise(golden_key(), golden_entry(), Compression::off);
    REQUIRE(file);
    // Written down from the grammar, not by serialise(). A change of these bytes is a change of the format:
    // give it a new version.
    const std::string golden =
        "894b494c4e0d0a1a01000000040000004b455920000000002a000000000000002a000000000000004d45544100000000"
        "11000000000000001100000000000000434f444500000000080000000000000008000000000000004c49535400000000"
        "090000000000000009000000000000007b226275696c64223a7b226964223a226162227d2c2272657175657374223a7b"
        "226e223a353132307d7d7b226e616d65223a22676f6c64656e227d7f454c4602010100735f656e6470676d0a2454bb8d"
        "644edc0b42a0dfd8e4b3ae24eed6c9a1ada6a2647c2b0040f126bad4";
    CHECK(to_hex(*file) == golden);
    const auto parsed = parse_entry(from_hex(golden));
    REQUIRE(parsed);
    CHECK(parsed->key == golden_key());
    CHECK(parsed->entry == golden_entry());
}

TEST_CASE("EntryCompressedBytesOfVersion1AreRead") {
    // The frame was made by zstd 1.5.4; other versions may write other frames, all must read this one.
    const std::string golden =
        "894b494c4e0d0a1a01000000040000004b455920000000002a000000000000002a000000000000004d45544100000000"
        "11000000000000001100000000000000434f444500000000080000000000000008000000000000004c49535401000000"
        "210000000000000029030000000000007b226275696c64223a7b226964223a226162227d2c2272657175657374223a7b"
        "226e223a353132307d7d7b226e616d65223a22676f6c64656e227d7f454c460201010028b52ffd602902bd000080735f"
        "656e6470676d0a735f6e6f70203001002cae2a4b4ecc12594b1cabec09b7f8f4038f11c0fadc816830543f547145634c"
        "1db73d96";
    auto expected = golden_entry();
    for (int i = 0; i < 100; ++i) {
        expected.listing += "s_nop 0\n";
    }
    const auto parsed = parse_entry(from_hex(golden));
    REQUIRE_MESSAGE(parsed, to_hex(*serialise(golden_key(), expected)));
    CHECK(parsed->key == golden_key());
    CHECK(parsed->entry == expected);
}

TEST_CASE("EntryReadsWhatItWrites") {
    for (const auto compression : {Compression::off, Compression::where_it_pays}) {
        for (const auto& entry : {make_entry(1), golden_entry(), Entry{}}) {
            const auto file = serialise(make_key(1), entry, compression);
            REQUIRE(file);
            const auto parsed = parse_entry(*file);
            REQUIRE(parsed);
            CHECK(parsed->key == make_key(1));
            CHECK(parsed->entry == entry);
        }
    }
}

TEST_CASE("EntryCompressesOnlyWhereItPays") {
    const auto raw = serialise(make_key(1), make_entry(1), Compression::off);
    const auto packed = serialise(make_key(1), make_entry(1), Compression::where_it_pays);
    REQUIRE(raw);
    REQUIRE(packed);
    CHECK(packed->size() < raw->size() / 2);
    CHECK(*serialise(make_key(1), golden_entry(), Compression::where_it_pays) ==
          *serialise(make_key(1), golden_entry(), Compression::off));
    auto dense = make_entry(1);
    dense.listing.clear();
    dense.code_object.erase(dense.code_object.begin(), dense.code_object.begin() + 2000);
    CHECK(*serialise(make_key(1), dense, Compression::where_it_pays) ==
          *serialise(make_key(1), dense, Compression::off));
}

TEST_CASE("EntryRefusesMetadataThatIsNoObject") {
    for (const char* metadata : {"", "[]", "1", "{", "{}{}"}) {
        auto entry = make_entry(1);
        entry.metadata = metadata;
        const auto file = serialise(make_key(1), entry);
        REQUIRE(!file);
        CHECK(file.error().code == ErrorCode::invalid_argument);
    }
}

TEST_CASE("EntryOfAnyShorterOrLongerFileIsDamaged") {
    const auto file = serialise(make_key(1), make_entry(1));
    REQUIRE(file);
    for (std::size_t size = 0; size < file->size(); ++size) {
        REQUIRE(!parse_entry(ByteView(*file).first(size)));
    }
    auto longer = *file;
    longer.push_back(std::byte{0});
    CHECK(refusal(longer).find("footer") != std::string::npos);
}

TEST_CASE("EntryWithAnyFlippedBitIsDamaged") {
    const auto file = serialise(golden_key(), golden_entry());
    REQUIRE(file);
    for (std::size_t bit = 0; bit < 8 * file->size(); ++bit) {
        auto flipped = *file;
        flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        REQUIRE(!parse_entry(flipped));
    }
}

TEST_CASE("EntryMadeWronglyOnPurposeIsRefused") {
    struct Case {
        const char* expected;
        std::function<void(Bytes&)> change;
    };
    const std::uint64_t huge = std::uint64_t{1} << 62;
    const std::vector<Case> cases{
        {"magic", [](Bytes& file) { file[1] = std::byte{'k'}; }},
        {"version: expected 1, found 2", [](Bytes& file) { put(file, kVersionAt, 2, 4); }},
        {"count: expected 4 sections, found 5", [](Bytes& file) { put(file, kCountAt, 5, 4); }},
        {"descriptor KEY : expected its tag", [](Bytes& file) { file[descriptor_at(0)] = std::byte{'k'}; }},
        {"descriptor KEY : expected a known encoding, found 1",
         [](Bytes& file) { put(file, descriptor_at(0) + 4, 1, 4); }},
        {"descriptor CODE: expected a known encoding, found 2",
         [](Bytes& file) { put(file, descriptor_at(2) + 4, 2, 4); }},
        {"descriptor META: expected at most the",
         [=](Bytes& file) { put(file, descriptor_at(1) + 8, huge, 8); }},
        {"descriptor CODE: expected at most 268435456 bytes when decoded",
         [=](Bytes& file) { put(file, descriptor_at(2) + 16, huge, 8); }},
        {"descriptor META: expected equal lengths",
         [](Bytes& file) { put(file, descriptor_at(1) + 16, 1, 8); }},
        // A length that the section may have, but the frame does not: nothing of that size is allocated.
        {"payload CODE: expected one zstd frame",
         [](Bytes& file) { put(file, descriptor_at(2) + 16, kMaxSectionBytes, 8); }},
        {"payload LIST: expected one zstd frame",
         [](Bytes& file) { file[file.size() - kFooterBytes - stored_bytes(file, 3)] ^= std::byte{0xff}; }},
        {"payloads: expected nothing after the last one",
         [](Bytes& file) { file.insert(file.end() - kFooterBytes, std::byte{0}); }},
        {"payload KEY: expected a key document", [](Bytes& file) { file[kHeaderBytes] = std::byte{' '}; }},
        {"payload META: expected a JSON object",
         [](Bytes& file) { file[kHeaderBytes + make_key(1).document().size()] = std::byte{' '}; }},
    };
    const auto good = serialise(make_key(1), make_entry(1));
    REQUIRE(good);
    for (const auto& wrong : cases) {
        auto file = *good;
        wrong.change(file);
        seal(file);
        CHECK_MESSAGE(refusal(file).find(wrong.expected) != std::string::npos, wrong.expected, " / ",
                      refusal(file));
    }
}
