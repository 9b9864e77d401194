// The format of bundles, and looking into one.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cache/bundle_file.hpp"
#include "tests/cache/support.hpp"
#include "tests/ed25519_keys.hpp"

using namespace kiln;
using namespace kiln::cache;
namespace fs = std::filesystem;

namespace {

constexpr int kEntries = 40;

Bytes entry_file(int number, int flavour = 0) {
    const auto file = serialise(make_key(number), make_entry(number, flavour), Compression::off);
    REQUIRE(file);
    return *file;
}

// The key of make_key(), of another compiler.
Key other_key(int number) {
    const auto key = Key::make(fmt::format(R"({{"schema": 1, "constants": {{"n": {}, "k": 64}}}})", number),
                               R"({"compiler": "another"})");
    REQUIRE(key);
    return *key;
}

BundleWriter filled(const std::vector<int>& numbers) {
    BundleWriter writer;
    for (const int number : numbers) {
        REQUIRE(writer.add(entry_file(number)));
    }
    REQUIRE(writer.add_document("linear.json", R"({"rows": []})"));
    REQUIRE(writer.add_document("another.json", "{}"));
    return writer;
}

std::vector<int> numbers_to(int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        numbers[static_cast<std::size_t>(i)] = i;
    }
    return numbers;
}

Bytes small_bundle(const SigningKey* key = nullptr) {
    const auto bytes = filled(numbers_to(kEntries)).write(R"({"made": "here"})", key);
    REQUIRE(bytes);
    return *bytes;
}

// Two pairs of keys.
struct Keys {
    TemporaryFolder folder;
    Keys() {
        for (const char* name : {"a", "b"}) {
            test::make_keys(folder.path(), name);
        }
    }
    [[nodiscard]] SigningKey secret(const std::string& name) const {
        auto key = SigningKey::read(folder.path() / (name + ".pem"));
        REQUIRE_MESSAGE(key, key.error().message);
        return *std::move(key);
    }
    [[nodiscard]] PublicKey open(const std::string& name) const {
        const auto key = PublicKey::read(folder.path() / (name + ".pub"));
        REQUIRE_MESSAGE(key, key.error().message);
        return *key;
    }
};

bool says(const Error& error, const std::string& part) {
    return error.message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("BundleGivesBackEveryEntryAndDocument") {
    const auto bytes = small_bundle();
    const auto view = BundleView::open(bytes);
    REQUIRE_MESSAGE(view, view.error().message);
    CHECK(view->num_entries() == kEntries);
    CHECK(!view->signer());
    for (int i = 0; i < kEntries; ++i) {
        const auto record = view->find(make_key(i));
        REQUIRE(record);
        REQUIRE(*record);
        const auto entry = view->entry(**record);
        REQUIRE(entry);
        CHECK(entry->key() == make_key(i));
        CHECK(entry->entry() == make_entry(i));
        const auto same = view->find_by_request(other_key(i).request_digest());
        CHECK((same && *same && (*same)->key == make_key(i).digest()));
        const auto other = view->find(other_key(i));
        CHECK((other && !*other));
    }
    const auto none = view->find(make_key(kEntries));
    CHECK((none && !*none));
    CHECK(*view->description() == R"({"made": "here"})");
    const auto documents = view->documents();
    REQUIRE(documents);
    REQUIRE(documents->size() == 2);
    CHECK((*documents)[0].name == "another.json");
    CHECK((*documents)[1].text == R"({"rows": []})");
    CHECK(view->verify().empty());

    const auto empty = BundleWriter().write("{}");
    REQUIRE(empty);
    const auto nothing = BundleView::open(*empty);
    REQUIRE(nothing);
    CHECK(nothing->verify().empty());
    CHECK(nothing->documents()->empty());
}

TEST_CASE("BundleOfSeveralCompilersGivesTheFirstByKeyForARequest") {
    BundleWriter writer;
    REQUIRE(writer.add(entry_file(1)));
    REQUIRE(writer.add(*serialise(other_key(1), make_entry(1, 5))));
    const auto bytes = writer.write("{}");
    const auto view = BundleView::open(*bytes);
    const auto first = view->find_by_request(make_key(1).request_digest());
    REQUIRE((first && *first));
    CHECK((*first)->key == std::min(make_key(1).digest(), other_key(1).digest()));
    const auto exact = view->find(other_key(1));
    REQUIRE((exact && *exact));
    CHECK(view->entry(**exact)->entry() == make_entry(1, 5));
}

TEST_CASE("BundleIsTheSameBytesInWhateverOrderItIsFilled") {
    auto numbers = numbers_to(kEntries);
    const auto first = filled(numbers).write("{}");
    std::ranges::reverse(numbers);
    numbers.push_back(3);  // the same one again is welcome
    CHECK(*filled(numbers).write("{}") == *first);
}

// What the grammar in the header says, field by field.
TEST_CASE("BundleOfOneEntryHasTheseBytes") {
    BundleWriter writer;
    const auto entry = entry_file(7);
    REQUIRE(writer.add(entry));
    REQUIRE(writer.add_document("t", "{}"));
    const auto bytes = *writer.write("{}");
    REQUIRE(bytes.size() == 284 + 256 * 40 + 112 + 2 + (4 + 8 + 1 + 2) + entry.size());
    CHECK(hex(ByteView(bytes).first(16)) == "894b424e440d0a1a0100000000000000");
    CHECK(hex(ByteView(bytes).subspan(24, 32)) ==
          "0100000000000000010000000000000002000000000000000f00000000000000");
    const ByteView directory = ByteView(bytes).subspan(284, 256 * 40);
    CHECK(std::ranges::equal(ByteView(bytes).subspan(56, 32), sha256(directory).bytes));
    CHECK(std::ranges::equal(ByteView(bytes).subspan(152, 32), sha256(ByteView(bytes).subspan(284)).bytes));
    const auto page = std::to_integer<std::size_t>(make_key(7).request_digest().bytes[0]);
    CHECK(hex(directory.subspan(page * 40, 8)) == "0100000000000000");
    const ByteView record = ByteView(bytes).subspan(284 + 256 * 40, 112);
    CHECK(std::ranges::equal(directory.subspan(page * 40 + 8, 32), sha256(record).bytes));
    CHECK(std::ranges::equal(record.first(32), make_key(7).request_digest().bytes));
    CHECK(std::ranges::equal(record.subspan(32, 32), make_key(7).digest().bytes));
    CHECK(std::ranges::equal(record.last(32), ByteView(entry).last(32)));
    CHECK(std::ranges::equal(ByteView(bytes).last(entry.size()), entry));
}

TEST_CASE("BundleRefusesWhatCanNotBeMeant") {
    BundleWriter writer;
    REQUIRE(writer.add(entry_file(1)));
    CHECK(says(writer.add(entry_file(1, 1)).error(), "two that differ"));
    auto broken = entry_file(2);
    broken[100] ^= std::byte{1};
    CHECK(writer.add(broken).error().code == ErrorCode::damaged);
    for (const auto& name : std::vector<std::string>{"", ".", "..", "a/b", std::string(256, 'x')}) {
        CHECK(writer.add_document(name, "{}").error().code == ErrorCode::invalid_argument);
    }
    REQUIRE(writer.add_document("a", "1"));
    CHECK(says(writer.add_document("a", "2").error(), "two that differ"));
    for (const char* description : {"", "[]", "{", "1 {"}) {
        CHECK(writer.write(description).error().code == ErrorCode::invalid_argument);
    }
}

TEST_CASE("NoAlteredByteOfABundleIsActedUpon") {
    const auto sound = small_bundle();
    const auto seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < bundle_at::kDirectory; ++at) {
        places.push_back(at);
    }
    for (int i = 0; i < 300; ++i) {
        places.push_back(random() % sound.size());
    }
    for (const auto at : places) {
        CAPTURE(at);
        auto bytes = sound;
        bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
        const auto view = BundleView::open(bytes);
        if (!view) {
            CHECK(view.error().code == ErrorCode::damaged);
            continue;
        }
        CHECK(!view->verify().empty());
        for (int i = 0; i < kEntries; ++i) {
            const auto record = view->find(make_key(i));
            const auto entry = record && *record ? view->entry(**record) : tl::unexpected<Error>(Error{});
            CHECK((!entry || (entry->key() == make_key(i) && entry->entry() == make_entry(i))));
        }
    }
    for (std::size_t size = 0; size < sound.size(); size += 997) {
        CHECK(!BundleView::open(ByteView(sound).first(size)));
    }
    auto longer = sound;
    longer.push_back(std::byte{0});
    CHECK(!BundleView::open(longer));
}

// Whoever puts it there can give it a digest of its own, but not one that the index has.
TEST_CASE("SoundEntryThatTheIndexDoesNotNameIsRefused") {
    auto bytes = small_bundle();
    const auto other = entry_file(5, 1);
    const auto record = **BundleView::open(bytes)->find(make_key(5));
    REQUIRE(record.bytes == other.size());
    std::ranges::copy(other, bytes.begin() + static_cast<std::ptrdiff_t>(record.offset));
    const auto view = BundleView::open(bytes);
    REQUIRE(view);
    const auto entry = view->entry(record);
    REQUIRE(!entry);
    CHECK(says(entry.error(), "the digest that the index has of it"));
    CHECK(view->verify().size() == 2);  // the contents, and the entry
}

TEST_CASE("OpeningABundleReadsNeitherEntriesNorIndex") {
    auto bytes = small_bundle();
    const auto view = BundleView::open(bytes);
    REQUIRE(view);
    // All of it behind the directory, but the page that is asked for and its entries, may be anything.
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kIndexAt), bytes.end(), std::byte{0xff});
    CHECK(BundleView::open(bytes));
    const auto page = view->find(make_key(0));
    REQUIRE(!page);
    CHECK(says(page.error(), "of the index"));
}

TEST_CASE("OnlyASignatureOfATrustedKeyOpensABundle") {
    const Keys keys;
    const TemporaryFolder folder;
    const auto path = folder.path() / "x.kiln";
    const auto secret = keys.secret("a");
    const auto bytes = small_bundle(&secret);
    CHECK(bytes == small_bundle(&secret));
    REQUIRE(publish_bundle(path, bytes));
    const TrustedKeys a{{keys.open("a")}}, b{{keys.open("b")}}, both{{keys.open("b"), keys.open("a")}};
    const auto open = [&](const TrustedKeys& trusted) { return BundleFile::open(path, trusted); };
    const auto replace_by = [&](const Bytes& other) {
        fs::remove(path);
        REQUIRE(publish_bundle(path, other));
    };
    REQUIRE(open(a));
    CHECK((*open(a))->view().signer() == keys.open("a"));
    CHECK((*open(a))->view().verify().empty());
    CHECK(open(both));
    CHECK(open(TrustedKeys()));
    REQUIRE(!open(b));
    CHECK(open(b).error().code == ErrorCode::environment);
    CHECK(says(open(b).error(), keys.open("a").hex()));

    replace_by(small_bundle());
    CHECK(open(TrustedKeys()));
    REQUIRE(!open(a));
    CHECK(says(open(a).error(), "found none"));

    // Signed over other bytes: refused, whoever is trusted.
    for (const auto at : {bundle_at::kContentsDigest, bundle_at::kSigner, bundle_at::kSignature}) {
        auto altered = bytes;
        altered[at] ^= std::byte{1};
        replace_by(altered);
        CHECK(!open(a));
        CHECK(!open(TrustedKeys()));
    }
    // Another entry in its place, with every digest right but for the signature.
    BundleWriter writer;
    REQUIRE(writer.add(entry_file(99)));
    auto forged = *writer.write("{}");
    std::copy_n(bytes.begin() + bundle_at::kSignatureKind, bundle_at::kDirectory - bundle_at::kSignatureKind,
                forged.begin() + bundle_at::kSignatureKind);
    replace_by(forged);
    CHECK(!open(a));
    CHECK(!open(TrustedKeys()));

    CHECK(PublicKey::read(keys.folder.path() / "a.pem").error().code == ErrorCode::bad_input);
    CHECK(SigningKey::read(keys.folder.path() / "a.pub").error().code == ErrorCode::bad_input);
    CHECK(PublicKey::read(keys.folder.path() / "none").error().code == ErrorCode::not_found);
}

TEST_CASE("BundleThatOthersCouldHaveWrittenIsRefused") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "x.kiln";
    REQUIRE(publish_bundle(path, small_bundle()));
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0644);
    // Never over what is there, a broken link among it; nothing else is left.
    fs::create_symlink("nowhere", folder.path() / "link");
    for (const auto& taken : {path, folder.path() / "link"}) {
        const auto second = publish_bundle(taken, small_bundle());
        REQUIRE(!second);
        CHECK(second.error().code == ErrorCode::bad_input);
        CHECK(says(second.error(), taken.string() + ": expected no file of that name"));
    }
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);
    CHECK(BundleFile::open(path, TrustedKeys()));
    for (const mode_t mode : {0664, 0646}) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        const auto refused = open_bundle_layer(path, TrustedKeys());
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::environment);
        CHECK(says(refused.error(), fmt::format("{:04o}", mode)));
    }
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    if (::geteuid() == 0) {
        REQUIRE(::chown(path.c_str(), 65534, 0) == 0);
        CHECK(says(open_bundle_layer(path, TrustedKeys()).error(), "65534"));
    }
    CHECK(BundleFile::open(folder.path(), TrustedKeys()).error().code == ErrorCode::environment);
    CHECK(BundleFile::open(folder.path() / "none", TrustedKeys()).error().code == ErrorCode::not_found);
    write_text(folder.path() / "empty", "");
    CHECK(BundleFile::open(folder.path() / "empty", TrustedKeys()).error().code == ErrorCode::damaged);
    REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
    CHECK(BundleFile::open(folder.path() / "pipe", TrustedKeys()).error().code == ErrorCode::environment);
}

TEST_CASE("BundleIsALayer") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "x.kiln";
    auto bytes = small_bundle();
    // One entry is damaged: a miss, and nobody else's trouble.
    const auto record = *BundleView::open(bytes)->find(make_key(5));
    bytes[record->offset + 60] ^= std::byte{1};
    REQUIRE(publish_bundle(path, bytes));
    const auto layer = open_bundle_layer(path, TrustedKeys());
    REQUIRE(layer);
    CHECK((*layer)->is_bundle());
    CHECK((*layer)->folder() == path);
    fs::remove(path);  // whoever has it open goes on
    CHECK(*(*layer)->get(make_key(4)) == make_entry(4));
    CHECK(!*(*layer)->get(make_key(5)));
    CHECK(!*(*layer)->find_by_request(make_key(5).request_digest()));
    CHECK(!*(*layer)->get(other_key(4)));
    CHECK((*(*layer)->find_by_request(other_key(4).request_digest()))->entry() == make_entry(4));
    CHECK((*layer)->statistics() == StoreStatistics{.hits = 2, .misses = 3, .damaged = 2});
    const auto listed = (*layer)->list();
    REQUIRE(listed);
    REQUIRE(listed->size() == kEntries);
    CHECK(std::ranges::is_sorted(*listed, {}, &EntrySummary::key));
    int unreadable = 0;
    for (const auto& summary : *listed) {
        const auto stored = (*layer)->read(summary);
        CHECK((!stored || stored->key.digest() == summary.key));
        unreadable += stored ? 0 : 1;
    }
    CHECK(unreadable == 1);
    CHECK((*layer)->read({make_key(99).digest(), {}, 0, {}}).error().code == ErrorCode::not_found);
}
