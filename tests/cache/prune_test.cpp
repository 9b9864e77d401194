// Removing from a store: by size, by age, on purpose, and what killed processes left behind.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/log.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

fs::path path_of(const Store& store, const Key& key) {
    const auto name = key.digest().hex();
    return store.folder() / "v1" / name.substr(0, 2) / (name + ".entry");
}

// As if the entry had last been used that long ago.
void make_older(const fs::path& path, std::chrono::seconds age) {
    const auto then = std::chrono::system_clock::now() - age;
    const struct timespec times[] = {{0, UTIME_OMIT}, {std::chrono::system_clock::to_time_t(then), 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::chrono::seconds age_of(const fs::path& path) {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return std::chrono::seconds(::time(nullptr) - info.st_mtime);
}

// Entries 0 to count - 1, the first used longest ago, an hour apart.
std::unique_ptr<Store> filled_store(const fs::path& folder, int count, const StoreOptions& options = {}) {
    auto opened = Store::open(folder, options);
    REQUIRE(opened);
    for (int i = 0; i < count; ++i) {
        REQUIRE((*opened)->put(make_key(i), make_entry(i)));
        make_older(path_of(**opened, make_key(i)), 1h * (count - i));
    }
    return *std::move(opened);
}

std::vector<int> held(Store& store, int count) {
    std::vector<int> found;
    for (int i = 0; i < count; ++i) {
        if (fs::exists(path_of(store, make_key(i)))) {
            found.push_back(i);
        }
    }
    return found;
}

std::uint64_t total_bytes(const Store& store) {
    std::uint64_t bytes = 0;
    const auto listed = store.list();
    for (const auto& entry : *listed) {
        bytes += entry.bytes;
    }
    return bytes;
}

// Every file below a folder, to see that nothing else went.
std::vector<std::string> all_files(const fs::path& folder) {
    std::vector<std::string> files;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        if (!item.is_directory()) {
            files.push_back(item.path().filename().string());
        }
    }
    return files;
}

}  // namespace

TEST_CASE("PruneBySizeTakesTheLeastRecentlyUsedFirst") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 10);
    const auto total = total_bytes(*store);

    // A hit makes the oldest the newest.
    REQUIRE(*store->get(make_key(0)));
    CHECK(age_of(path_of(*store, make_key(0))) < 60s);

    auto report = store->prune({.max_bytes = total / 2, .dry_run = true});
    REQUIRE(report);
    CHECK(held(*store, 10).size() == 10);
    const auto would_go = report->removed.size();
    CHECK(would_go >= 5);

    report = store->prune({.max_bytes = total / 2});
    REQUIRE(report);
    CHECK(report->removed.size() == would_go);
    CHECK(report->removed.front().key == make_key(1).digest());
    CHECK(report->faults.empty());
    CHECK(report->kept_bytes == total_bytes(*store));
    CHECK(report->kept_bytes + report->bytes == total);
    CHECK(report->kept_bytes <= total / 2);
    const auto left = held(*store, 10);
    CHECK(left.size() == report->kept_entries);
    CHECK(left.front() == 0);
    CHECK(left.back() == 9);
    // Everything between the one that was used and the first that was kept is gone, and no more than that.
    for (std::size_t i = 1; i < left.size(); ++i) {
        CHECK(left[i] == 10 - static_cast<int>(left.size()) + static_cast<int>(i));
    }
    for (const int i : left) {
        CHECK(**store->get(make_key(i)) == make_entry(i));
    }
    // A bound that holds removes nothing.
    CHECK(store->prune({.max_bytes = total})->removed.empty());
}

TEST_CASE("PruneByAgeTakesWhatWasNotUsedForLonger") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 10);
    const auto report = store->prune({.max_age = 3h + 30min});
    REQUIRE(report);
    CHECK(report->removed.size() == 7);
    CHECK(held(*store, 10) == std::vector<int>{7, 8, 9});
    // Longer than a clock counts in its own unit: nothing is that old.
    for (const auto age : {std::chrono::seconds(20'000 * 7 * 24h), std::chrono::seconds::max()}) {
        CHECK(store->prune({.max_age = age})->removed.empty());
        CHECK(held(*store, 10) == std::vector<int>{7, 8, 9});
    }
}

TEST_CASE("PruneLetsAnEntryFromTheFutureAgeAndTakesTheOneFromBeforeTheClock") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 3);
    const auto set_time = [&](int i, std::time_t time) {
        const struct timespec times[] = {{0, UTIME_OMIT}, {time, 0}};
        REQUIRE(::utimensat(AT_FDCWD, path_of(*store, make_key(i)).c_str(), times, 0) == 0);
    };
    set_time(0, -99'999'999'999);
    set_time(1, 99'999'999'999);
    set_time(2, 99'999'999'999);
    REQUIRE(*store->get(make_key(2)));
    CHECK(std::chrono::abs(age_of(path_of(*store, make_key(2)))) < 60s);
    CHECK(store->prune({.max_age = 24h})->removed.size() == 1);
    CHECK(held(*store, 3) == std::vector<int>{1, 2});
    CHECK(std::chrono::abs(age_of(path_of(*store, make_key(1)))) < 60s);
}

TEST_CASE("UseIsMarkedOnceAnHourAndOnlyByHits") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 1);
    const auto path = path_of(*store, make_key(0));
    make_older(path, 30min);
    REQUIRE(*store->get(make_key(0)));
    CHECK(age_of(path) >= 30min);  // recent enough
    make_older(path, 2h);
    REQUIRE(store->read(store->list()->front()));
    CHECK(age_of(path) >= 2h);  // looking is no use
    REQUIRE(*store->find(make_key(0)));
    CHECK(age_of(path) < 60s);
}

TEST_CASE("PruneSweepsWhatKilledProcessesLeftAndNothingThatLives") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 2);
    const auto path = path_of(*store, make_key(0));
    const auto stale = path.string() + ".4711.0123456789abcdef.tmp";
    const auto living = path.string() + ".4712.0123456789abcdef.tmp";
    write_text(stale, "half an entry");
    write_text(living, "half another");
    const UniqueFd writer(::open(living.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(lock_file(writer, Wait::no) == LockOutcome::held);
    auto held_lock = store->lock(make_key(1));
    REQUIRE(held_lock);
    REQUIRE(store->lock(make_key(2)));  // released at once: its file stays
    // Nothing of ours.
    const auto stranger = path.parent_path() / "notes.tmp";
    write_text(stranger, "x");
    write_text(temporary.path() / "locks" / "README", "x");
    write_text(temporary.path() / "damaged" / "x", "", true);
    // A damaged entry that was set aside.
    write_text(path, "nonsense");
    log::set_level(log::Level::off);
    REQUIRE(!*store->get(make_key(0)));
    log::set_level(log::Level::warning);

    const auto dry = store->prune({.dry_run = true});
    REQUIRE(dry);
    CHECK(fs::exists(stale));
    const auto report = store->prune({});
    REQUIRE(report);
    for (const auto* one : {&*dry, &*report}) {
        CHECK(one->temporaries == 1);
        CHECK(one->locks == 1);
        CHECK(one->damaged == 1);
        CHECK(one->removed.empty());
        CHECK(one->kept_entries == 1);
        CHECK(one->bytes == 13 + 8);
    }
    CHECK(!fs::exists(stale));
    CHECK(fs::exists(living));
    CHECK(fs::exists(stranger));
    CHECK(fs::exists(temporary.path() / "damaged" / "x"));
    CHECK(fs::exists(temporary.path() / "locks" / "README"));
    CHECK(fs::exists(temporary.path() / "locks" / (make_key(1).digest().hex() + ".lock")));
    CHECK(!fs::exists(temporary.path() / "locks" / (make_key(2).digest().hex() + ".lock")));
    CHECK(**store->get(make_key(1)) == make_entry(1));
}

TEST_CASE("PruneTakesTheTemporaryOfAKilledWriterAtOnce") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 1);
    const auto path = path_of(*store, make_key(0)).string() + ".1.0123456789abcdef.tmp";
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const auto writer = in_child([&] {
        const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (lock_file(fd, Wait::no) != LockOutcome::held || ::write(ends[1], "l", 1) != 1) {
            return 1;
        }
        ::pause();
        return 0;
    });
    char byte = 0;
    REQUIRE(::read(ends[0], &byte, 1) == 1);
    CHECK(store->prune({})->temporaries == 0);
    REQUIRE(::kill(writer, SIGKILL) == 0);
    CHECK(wait_for(writer) == -SIGKILL);
    CHECK(store->prune({})->temporaries == 1);
    CHECK(!fs::exists(path));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("PruneOfTheLockOfABuildThatOthersWaitForLeavesOneBuilderAtATime") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 0);
    std::atomic<bool> over{false};
    std::atomic<int> inside{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> builders;
    for (int i = 0; i < 4; ++i) {
        builders.emplace_back([&] {
            for (int round = 0; round < 200; ++round) {
                const auto lock = store->lock(make_key(1));
                wrong += !lock || inside.fetch_add(1) != 0;
                --inside;
            }
        });
    }
    std::thread sweeper([&] {
        while (!over) {
            wrong += !store->prune({});
        }
    });
    for (auto& builder : builders) {
        builder.join();
    }
    over = true;
    sweeper.join();
    CHECK(wrong == 0);
}

TEST_CASE("ClearTakesEverythingOfOursAndNothingElse") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "cache";
    auto store = filled_store(folder, 20);
    REQUIRE(store->lock(make_key(0)));
    write_text(folder / "mine.txt", "x");
    write_text(folder / "v2" / "00" / (make_key(0).digest().hex() + ".entry"), "of another version", true);
    write_text(path_of(*store, make_key(0)).parent_path() / "notes", "x");
    write_text(path_of(*store, make_key(0)).string() + ".1.0123456789abcdef.tmp", "stale");
    write_text(path_of(*store, make_key(19)), "");  // the newest, and of no size

    const auto report = store->clear();
    REQUIRE(report);
    CHECK(report->removed.size() == 20);
    CHECK(report->temporaries == 1);
    CHECK(report->locks == 1);
    CHECK(report->kept_entries == 0);
    CHECK(report->faults.empty());
    auto left = all_files(folder);
    std::ranges::sort(left);
    auto expected = std::vector<std::string>{make_key(0).digest().hex() + ".entry", "mine.txt", "notes"};
    std::ranges::sort(expected);
    CHECK(left == expected);
    CHECK(!fs::exists(folder / "locks"));

    // The open store goes on.
    REQUIRE(store->put(make_key(3), make_entry(3)));
    CHECK(**store->get(make_key(3)) == make_entry(3));
}

TEST_CASE("PutOverTheBoundEvictsByItself") {
    const TemporaryFolder temporary;
    const auto one = [&] {
        auto store = filled_store(temporary.path() / "one", 1);
        return total_bytes(*store);
    }();
    const StoreOptions options{.max_bytes = 10 * one};
    auto store = filled_store(temporary.path() / "cache", 10, options);
    CHECK(store->statistics().evicted == 0);
    REQUIRE(store->put(make_key(10), make_entry(10)));
    // Down to seven eighths, the oldest first, and never what was just put.
    CHECK(store->statistics().evicted >= 2);
    CHECK(total_bytes(*store) <= 10 * one / 8 * 7);
    CHECK(held(*store, 11).back() == 10);
    CHECK(held(*store, 11).front() == static_cast<int>(store->statistics().evicted));

    // However many are put, the bound holds.
    for (int i = 100; i < 200; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
        REQUIRE(total_bytes(*store) <= 10 * one + one / 2);
    }

    // A bound below a single entry still lets the last one be found.
    auto narrow = Store::open(temporary.path() / "narrow", {.max_bytes = 1});
    REQUIRE(narrow);
    for (int i = 0; i < 3; ++i) {
        REQUIRE((*narrow)->put(make_key(i), make_entry(i)));
        CHECK((*narrow)->list()->size() == 1);
        CHECK(*(*narrow)->get(make_key(i)));
    }
}

TEST_CASE("PutFarBelowTheBoundListsNothing") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 1, {.max_bytes = std::uint64_t{10} << 30});
    // A folder that can not be listed as a group would be a warning of list(); here nobody looks.
    const auto before = store->statistics();
    for (int i = 0; i < 50; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
    }
    CHECK(store->statistics().evicted == before.evicted);
    CHECK(!fs::exists(temporary.path() / "locks"));
}

TEST_CASE("EntryInUseIsReadToItsEndThoughItIsPruned") {
    const TemporaryFolder temporary;
    auto store = filled_store(temporary.path(), 1);
    const UniqueFd reader(::open(path_of(*store, make_key(0)).c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(reader.valid());
    CHECK(store->prune({.max_bytes = 0})->removed.size() == 1);
    const auto bytes = read_file(reader, "open entry", Stage::cache);
    REQUIRE(bytes);
    CHECK(parse_entry(*bytes)->entry == make_entry(0));
    CHECK(!*store->get(make_key(0)));
}

TEST_CASE("OpeningWithoutCreatingLeavesNoFolder") {
    const TemporaryFolder temporary;
    const auto missing = Store::open(temporary.path() / "none", {.create = false});
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    CHECK(!fs::exists(temporary.path() / "none"));
    CHECK(Store::open(temporary.path(), {.create = false}));
}
