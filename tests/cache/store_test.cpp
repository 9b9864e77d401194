#include "cache/store.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "cache/entry_layout.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
namespace fs = std::filesystem;

namespace {

unsigned mode_of(const fs::path& path) {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

// Damage is reported by a warning each; the tests that make hundreds of them are not to print hundreds.
class Quiet {
  public:
    Quiet() { log::set_level(log::Level::off); }
    ~Quiet() { log::set_level(log::Level::warning); }
};

// A miss, the file set aside, and a rebuild that hits: what must follow any damage of the one entry of
// `store`.
void check_damage_is_a_miss(Store& store, const Key& key, const Entry& entry,
                            const std::string& damaged_bytes) {
    const auto path = only_entry(store);
    write_text(path, damaged_bytes);
    const auto before = store.statistics();
    const auto got = store.get(key);
    REQUIRE(got);
    REQUIRE(!*got);
    CHECK(!fs::exists(path));
    CHECK(read_text(store.folder() / "damaged" / path.filename()) == damaged_bytes);
    REQUIRE(store.put(key, entry));
    const auto rebuilt = store.get(key);
    REQUIRE(rebuilt);
    REQUIRE(*rebuilt);
    CHECK(**rebuilt == entry);
    const auto after = store.statistics();
    CHECK(after == StoreStatistics{before.hits + 1, before.misses + 1, before.damaged + 1, before.puts + 1});
}

// The value of an environment variable for the length of a scope.
class Environment {
  public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) {
            old_ = old;
        }
        set(value);
    }
    ~Environment() { set(old_ ? old_->c_str() : nullptr); }

  private:
    void set(const char* value) {
        if (value != nullptr) {
            ::setenv(name_, value, 1);
        } else {
            ::unsetenv(name_);
        }
    }
    const char* name_;
    std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("StoreLifeStory") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "deep" / "cache";
    const auto key = make_key(1);
    const auto entry = make_entry(1);
    auto store = open_store(folder);
    CHECK(store->folder() == folder);

    // Miss, build, hit.
    auto got = store->get(key);
    REQUIRE(got);
    CHECK(!*got);
    CHECK(store->statistics() == StoreStatistics{0, 1, 0, 0});
    REQUIRE(store->put(key, entry));
    got = store->get(key);
    REQUIRE(got);
    REQUIRE(*got);
    CHECK(**got == entry);
    CHECK(store->statistics() == StoreStatistics{1, 1, 0, 1});

    // Replaced by a newer build.
    REQUIRE(store->put(key, make_entry(1, 7)));
    CHECK(**store->get(key) == make_entry(1, 7));

    // Another key is another entry.
    CHECK(!*store->get(make_key(2)));
    CHECK(store->statistics() == StoreStatistics{2, 2, 0, 2});

    // Wiped under the open store, rebuilt through it.
    fs::remove_all(folder);
    CHECK(!*store->get(key));
    CHECK(store->list()->empty());
    CHECK(store->lock(key));
    fs::remove_all(folder);
    REQUIRE(store->put(key, entry));
    CHECK(**store->get(key) == entry);
    CHECK(store->statistics() == StoreStatistics{3, 3, 0, 3});

    // Reopened: the entry is there, the counters start anew.
    store = open_store(folder);
    CHECK(store->statistics() == StoreStatistics{});
    CHECK(**store->get(key) == entry);
    CHECK(store->statistics() == StoreStatistics{1, 0, 0, 0});

    // Erased.
    CHECK(*store->erase(key));
    CHECK(!*store->erase(key));
    CHECK(!*store->get(key));
    CHECK(store->statistics() == StoreStatistics{1, 1, 0, 0});
}

TEST_CASE("StoreListsAndReadsWhatItHolds") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    CHECK(store->list()->empty());
    for (int i = 0; i < 20; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
    }
    const auto listed = store->list();
    REQUIRE(listed);
    REQUIRE(listed->size() == 20);
    CHECK(std::ranges::is_sorted(*listed, {}, &EntrySummary::key));
    std::set<std::string> documents;
    for (const auto& summary : *listed) {
        CHECK(summary.bytes == fs::file_size(summary.path));
        const auto stored = store->read(summary);
        REQUIRE(stored);
        CHECK(stored->key.digest() == summary.key);
        CHECK(**store->get(stored->key) == stored->entry);
        documents.insert(stored->key.document());
    }
    CHECK(documents.size() == 20);

    // What is no entry is not listed: a writer's leftover, a stray name, an entry under another group.
    const auto& path = listed->front().path;
    write_text(path.string() + ".4711.00ff.tmp", "half");
    write_text(path.parent_path() / "README.entry", "stray");
    write_text(path.parent_path() / ".entry", "stray");
    write_text(path.parent_path().parent_path() / "notes", "stray");
    const auto other = path.parent_path().parent_path() / "zz";
    fs::create_directory(other);
    fs::copy_file(path, other / path.filename());
    write_text(other.parent_path() / "yy", "stray");
    CHECK(store->list()->size() == 20);

    // Reading reports damage and leaves the file where it is.
    write_text(path, "nonsense");
    const auto damaged = store->read(listed->front());
    REQUIRE(!damaged);
    CHECK(damaged.error().code == ErrorCode::damaged);
    CHECK(damaged.error().message.find(path.string()) != std::string::npos);
    CHECK(fs::exists(path));
    fs::remove(path);
    const auto gone = store->read(listed->front());
    REQUIRE(!gone);
    CHECK(gone.error().code == ErrorCode::not_found);
    CHECK(store->statistics() == StoreStatistics{20, 0, 0, 20});
}

TEST_CASE("StoreTruncatedEntryIsAMiss") {
    const Quiet quiet;
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto key = make_key(1);
    const auto entry = make_entry(1);
    REQUIRE(store->put(key, entry));
    const auto good = read_text(only_entry(*store));

    // The end of every field of the header, of every payload and of the footer, and one byte to either side.
    std::set<std::size_t> cuts{0, kMagic.size(), kMagic.size() + 4, kMagic.size() + 8};
    std::size_t payload_end = kHeaderBytes;
    for (std::size_t section = 0; section < kSections.size(); ++section) {
        const std::size_t descriptor = kMagic.size() + 8 + section * kDescriptorBytes;
        cuts.insert({descriptor + 4, descriptor + 8, descriptor + 16, descriptor + 24});
        std::uint64_t stored = 0;
        for (std::size_t i = 0; i < 8; ++i) {
            stored |= std::uint64_t{static_cast<unsigned char>(good[descriptor + 8 + i])} << (8 * i);
        }
        cuts.insert(payload_end + stored / 2);
        payload_end += stored;
        cuts.insert(payload_end);
    }
    REQUIRE(payload_end + kFooterBytes == good.size());
    cuts.insert({good.size() - 1, good.size() - kFooterBytes / 2});
    std::set<std::size_t> around;
    for (const auto cut : cuts) {
        around.insert({cut == 0 ? 0 : cut - 1, cut, cut + 1});
    }
    for (const auto cut : around) {
        if (cut < good.size()) {
            CAPTURE(cut);
            check_damage_is_a_miss(*store, key, entry, good.substr(0, cut));
        }
    }
    // A file system that kept the length and lost the data.
    check_damage_is_a_miss(*store, key, entry, std::string(good.size(), '\0'));
    check_damage_is_a_miss(
        *store, key, entry,
        good.substr(0, good.size() / 2) + std::string(good.size() - good.size() / 2, '\0'));
    check_damage_is_a_miss(*store, key, entry, good + '\0');
}

TEST_CASE("StoreFlippedByteIsNeverReturned") {
    const Quiet quiet;
    const auto seed = std::random_device{}();
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto key = make_key(1);
    const auto entry = make_entry(1);
    REQUIRE(store->put(key, entry));
    const auto good = read_text(only_entry(*store));
    for (int i = 0; i < 200; ++i) {
        auto bad = good;
        const auto at = random() % bad.size();
        const auto change = static_cast<char>(1 + random() % 255);
        bad[at] = static_cast<char>(bad[at] ^ change);
        CAPTURE(at);
        check_damage_is_a_miss(*store, key, entry, bad);
    }
    CHECK(store->statistics() == StoreStatistics{200, 200, 200, 201});
}

TEST_CASE("StoreRefusesAWholeEntryUnderAnotherName") {
    const Quiet quiet;
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(2), make_entry(2)));
    const auto wrong = read_text(only_entry(*store));
    REQUIRE(*store->erase(make_key(2)));
    REQUIRE(store->put(make_key(1), make_entry(1)));
    write_text(only_entry(*store), wrong);
    const auto read = store->read(store->list()->front());
    REQUIRE(!read);
    CHECK(read.error().message.find("expected the key of its name") != std::string::npos);
    check_damage_is_a_miss(*store, make_key(1), make_entry(1), wrong);
}

TEST_CASE("StoreIsPrivate") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "a" / "b";
    auto store = open_store(folder);
    const auto key = make_key(1);
    REQUIRE(store->put(key, make_entry(1)));
    REQUIRE(store->lock(key));
    for (const auto& item : fs::recursive_directory_iterator(temporary.path())) {
        CHECK_MESSAGE(mode_of(item.path()) == (item.is_directory() ? 0700U : 0600U), item.path());
    }
    for (const auto mode : {0770U, 0702U, 01777U}) {
        REQUIRE(::chmod(folder.c_str(), mode) == 0);
        const auto refused = Store::open(folder);
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::environment);
        CHECK(refused.error().message.find(fmt::format("found mode {:04o}", mode)) != std::string::npos);
    }
    REQUIRE(::chmod(folder.c_str(), 0755) == 0);
    CHECK(Store::open(folder));
}

TEST_CASE("StoreOpensByRelativePathAndStaysThere") {
    const TemporaryFolder temporary;
    const auto working_folder = fs::current_path();
    fs::current_path(temporary.path());
    auto store = open_store("sub/../cache/");
    fs::current_path(working_folder);
    REQUIRE(store->put(make_key(1), make_entry(1)));
    CHECK(store->folder() == temporary.path() / "cache");
    CHECK(**open_store(temporary.path() / "cache")->get(make_key(1)) == make_entry(1));
}

TEST_CASE("StoreReportsWhatTheSystemRefuses") {
    const TemporaryFolder temporary;
    write_text(temporary.path() / "file", "");
    for (const auto& folder : {temporary.path() / "file", temporary.path() / "file" / "cache", fs::path()}) {
        const auto refused = Store::open(folder);
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::environment);
    }

    // Something is there, and it is no file: a miss for a reader, an error for who can not replace it.
    const Quiet quiet;
    auto store = open_store(temporary.path() / "cache");
    REQUIRE(store->put(make_key(1), make_entry(1)));
    const auto path = only_entry(*store);
    fs::remove(path);
    fs::create_directory(path);
    const auto got = store->get(make_key(1));
    REQUIRE(got);
    CHECK(!*got);
    const auto put = store->put(make_key(1), make_entry(1));
    REQUIRE(!put);
    CHECK(put.error().code == ErrorCode::io);
    CHECK(store->statistics() == StoreStatistics{0, 1, 0, 1, 1});
}

TEST_CASE("StoreServesManyThreads") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    constexpr int kThreads = 8;
    constexpr int kRounds = 25;
    constexpr int kKeys = 5;
    std::vector<Key> keys;
    std::vector<std::vector<Entry>> entries(kKeys);
    for (int i = 0; i < kKeys; ++i) {
        keys.push_back(make_key(i));
        for (int flavour = 0; flavour < kThreads; ++flavour) {
            entries[static_cast<std::size_t>(i)].push_back(make_entry(i, flavour));
        }
    }
    std::atomic<int> wrong{0};
    std::atomic<std::uint64_t> found{0};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::size_t round = 0; round < kRounds; ++round) {
                const std::size_t i = (thread + round) % kKeys;
                if (round % 5 == 0 && !store->put(keys[i], entries[i][thread])) {
                    ++wrong;
                }
                const auto got = store->get(keys[i]);
                if (!got || (*got && std::ranges::find(entries[i], **got) == entries[i].end())) {
                    ++wrong;
                } else if (*got) {
                    ++found;
                }
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    const auto statistics = store->statistics();
    CHECK(statistics.hits == found);
    CHECK(statistics.hits + statistics.misses == kThreads * kRounds);
    CHECK(statistics.damaged == 0);
    CHECK(statistics.puts == kThreads * kRounds / 5);
}

TEST_CASE("StoreDefaultFolderFollowsXdg") {
    const Environment cache("XDG_CACHE_HOME", "/var/xdg");
    const Environment home("HOME", "/home/someone");
    CHECK(*default_store_folder() == "/var/xdg/kiln");
    {
        const Environment relative("XDG_CACHE_HOME", "relative");
        CHECK(*default_store_folder() == "/home/someone/.cache/kiln");
    }
    {
        const Environment empty("XDG_CACHE_HOME", "");
        CHECK(*default_store_folder() == "/home/someone/.cache/kiln");
        const Environment no_home("HOME", nullptr);
        const auto none = default_store_folder();
        REQUIRE(!none);
        CHECK(none.error().code == ErrorCode::environment);
    }
    const Environment unset("XDG_CACHE_HOME", nullptr);
    const Environment relative_home("HOME", "here");
    CHECK(!default_store_folder());
}
