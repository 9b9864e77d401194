// Publication under a system that fails, or a process that dies, at every single step.
//
// This program defines the calls of the C library that publication is made of, so its definitions are taken
// instead. They pass through to the kernel until a fault is armed.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <functional>
#include <future>
#include <string_view>

#include "base/log.hpp"
#include "cache/bundle_file.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
namespace fs = std::filesystem;

namespace {

enum class Fault { none, kill, error };

// Only this program's one thread arms and counts.
Fault armed = Fault::none;
int steps_left = 0;                // before the fault
int error_number = 0;              // of Fault::error
int flock_error = 0;               // what every flock() fails with
int swept_before_lock = 0;         // how many files somebody else removes as they are about to be locked
const char* used_again = nullptr;  // the file that somebody uses before it is looked at for the second time
int looks_at_it = 0;
std::string put_meanwhile;  // the file that a put replaces just before it is renamed or removed
std::function<void()> meanwhile;
bool hard_links = true, rename_over_nothing = true;  // whether the file system knows them
const char* vanishing = nullptr;  // the file that somebody else moves away as soon as it is opened there

// True when the step that calls it must fail; never returns when the process is to die there.
bool fails_here() {
    if (armed == Fault::none || steps_left-- > 0) {
        return false;
    }
    if (armed == Fault::kill) {
        ::kill(::getpid(), SIGKILL);
    }
    armed = Fault::none;
    errno = error_number;
    return true;
}

// Somebody puts, in a thread of its own, when the file is about to go. It may have to wait until that is
// over.
std::future<void> meanwhile_done;
void let_put(const char* path) {
    if (!put_meanwhile.empty() && put_meanwhile == path) {
        put_meanwhile.clear();
        meanwhile_done = std::async(std::launch::async, meanwhile);
        meanwhile_done.wait_for(std::chrono::milliseconds(500));
    }
}

void arm(Fault fault, int steps, int error = 0) {
    armed = fault;
    steps_left = steps;
    error_number = error;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if ((flags & O_CREAT) != 0 && fails_here()) {
        return -1;
    }
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int openat(int folder, const char* name, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
    va_end(arguments);
    const auto fd = static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
    if (vanishing != nullptr && fs::path(vanishing).filename() == name) {
        ::syscall(SYS_unlink, vanishing);
    }
    return fd;
}

ssize_t write(int fd, const void* bytes, size_t count) {
    if (count > 1 && armed != Fault::none && steps_left == 0) {
        ::syscall(SYS_write, fd, bytes, count / 2);  // the step got half way
    }
    return fails_here() ? -1 : ::syscall(SYS_write, fd, bytes, count);
}

int fsync(int fd) {
    return fails_here() ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}

int rename(const char* from, const char* to) noexcept {
    let_put(from);
    return fails_here() ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}

int link(const char* from, const char* to) noexcept {
    if (!hard_links) {
        errno = EPERM;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_link, from, to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
    if (!rename_over_nothing) {
        errno = EINVAL;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int mkdir(const char* path, mode_t mode) noexcept {
    return fails_here() ? -1 : static_cast<int>(::syscall(SYS_mkdir, path, mode));
}

int unlink(const char* path) noexcept {
    let_put(path);
    return fails_here() ? -1 : static_cast<int>(::syscall(SYS_unlink, path));
}

int lstat(const char* path, struct stat* info) noexcept {
    if (used_again != nullptr && std::string_view(path) == used_again && ++looks_at_it == 2) {
        ::utimensat(AT_FDCWD, path, nullptr, 0);
    }
    return static_cast<int>(::syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW));
}

int flock(int fd, int operation) noexcept {
    if (swept_before_lock > 0) {
        --swept_before_lock;
        const auto name = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd));
        ::syscall(SYS_unlink, name.c_str());
    }
    if (flock_error != 0) {
        errno = flock_error;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

}  // extern "C"

namespace {

// Files of the store that a reader could take for entries, and the others.
int temporary_files(const fs::path& folder) {
    int count = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        count += item.path().extension() == ".tmp";
    }
    return count;
}

// The store holds the old entry, the new one or none where there was none; nothing else, and nothing damaged.
void check_consistent(const fs::path& folder, const Key& key, const std::optional<Entry>& old,
                      const Entry& entry) {
    auto store = open_store(folder);
    const auto got = store->get(key);
    REQUIRE(got);
    CHECK((*got == old || *got == entry));
    CHECK(store->list()->size() == (*got ? 1 : 0));
    CHECK(store->statistics().damaged == 0);
    REQUIRE(store->put(key, entry));
    REQUIRE(store->prune({}));
    CHECK(temporary_files(folder) == 0);
    CHECK(**store->get(key) == entry);
}

}  // namespace

TEST_CASE("StoreIsConsistentAfterDeathAtAnyStepOfPublication") {
    const auto key = make_key(1);
    const auto entry = make_entry(1, 1);
    for (const auto& old : {std::optional<Entry>{}, std::optional<Entry>{make_entry(1, 0)}}) {
        int killed = 0;
        int left_behind = 0;
        for (int step = 0;; ++step) {
            CAPTURE(step);
            const TemporaryFolder temporary;
            const auto folder = temporary.path() / "cache";
            if (old) {
                REQUIRE(open_store(folder)->put(key, *old));
            }
            const int status = wait_for(in_child([&] {
                auto store = Store::open(folder);
                arm(Fault::kill, step);
                return store && (*store)->put(key, entry) ? 0 : 1;
            }));
            if (status == 0) {
                break;
            }
            CHECK(status == -SIGKILL);
            ++killed;
            left_behind += temporary_files(folder);
            check_consistent(folder, key, old, entry);
        }
        // Two folders and their syncs, where they are new; create, write, sync, rename, sync.
        CHECK(killed >= (old ? 5 : 9));
        CHECK(left_behind >= 3);  // after create, half a write, write: seen and ignored above
    }
}

TEST_CASE("StoreIsConsistentAfterAnErrorAtAnyStepOfPublication") {
    const auto key = make_key(1);
    const auto entry = make_entry(1, 1);
    const auto old = std::optional<Entry>{make_entry(1, 0)};
    for (const int error : {ENOSPC, EIO}) {
        int failed = 0;
        for (int step = 0;; ++step) {
            CAPTURE(step);
            const TemporaryFolder temporary;
            const auto folder = temporary.path() / "cache";
            auto store = open_store(folder);
            REQUIRE(store->put(key, *old));
            arm(Fault::error, step, error);
            const auto put = store->put(key, entry);
            const bool reached = armed == Fault::none;
            armed = Fault::none;
            if (!reached) {
                CHECK(put);
                break;
            }
            if (!put) {
                ++failed;
                CHECK(put.error().code == ErrorCode::io);
                CHECK(store->statistics().puts == 1);
            }
            CHECK(temporary_files(folder) == 0);
            check_consistent(folder, key, old, entry);
        }
        CHECK(failed >= 5);
    }
}

TEST_CASE("StoreWriteIsTakenUpAgainAfterASignal") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));  // its folder exists: the second step is the first write
    arm(Fault::error, 1, EINTR);
    const auto put = store->put(make_key(1), make_entry(1));
    armed = Fault::none;
    CHECK(put);
}

TEST_CASE("StoreLockReturnsAtOnceWhereTheFileSystemKnowsNone") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
        flock_error = error;
        const auto first = store->lock(make_key(1));
        const auto second = store->lock(make_key(1));
        flock_error = 0;
        CHECK(first);
        CHECK(second);
    }
    flock_error = EIO;
    const auto refused = store->lock(make_key(1));
    flock_error = 0;
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::io);
}

TEST_CASE("StoreDamagedEntryThatAnotherReaderMovedAwayIsAPlainMiss") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));
    const auto path = only_entry(*store);
    write_text(path, "nonsense");
    vanishing = path.c_str();
    const auto got = store->get(make_key(1));
    vanishing = nullptr;
    REQUIRE(got);
    CHECK(!*got);
    CHECK(store->statistics() == StoreStatistics{0, 1, 0, 1});
}

TEST_CASE("StoreDamagedEntryThatCanNotBeMovedIsStillAMiss") {
    log::set_level(log::Level::off);
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));
    write_text(only_entry(*store), "nonsense");
    arm(Fault::error, 0, EROFS);
    const auto got = store->get(make_key(1));
    armed = Fault::none;
    log::set_level(log::Level::warning);
    REQUIRE(got);
    CHECK(!*got);
    CHECK(store->statistics() == StoreStatistics{0, 1, 1, 1});
}

TEST_CASE("StoreIsConsistentAfterDeathAtAnyStepOfPruning") {
    constexpr int kEntries = 6;
    int killed = 0;
    for (int step = 0;; ++step) {
        CAPTURE(step);
        const TemporaryFolder temporary;
        auto store = open_store(temporary.path());
        for (int i = 0; i < kEntries; ++i) {
            REQUIRE(store->put(make_key(i), make_entry(i)));
            REQUIRE(store->lock(make_key(i)));
        }
        const auto stale = store->list()->front().path.string() + ".1.0123456789abcdef.tmp";
        write_text(stale, "half");
        write_text(temporary.path() / "damaged" / (make_key(0).digest().hex() + ".entry"), "bad", true);
        const int status = wait_for(in_child([&] {
            arm(Fault::kill, step);
            return store->clear() ? 0 : 1;
        }));
        for (int i = 0; i < kEntries; ++i) {
            const auto got = store->get(make_key(i));
            REQUIRE(got);
            CHECK((!*got || **got == make_entry(i)));
        }
        CHECK(store->statistics().damaged == 0);
        REQUIRE(store->prune({}));
        CHECK(temporary_files(temporary.path()) == 0);
        if (status == 0) {
            CHECK(store->list()->empty());
            break;
        }
        CHECK(status == -SIGKILL);
        ++killed;
    }
    CHECK(killed == 2 * kEntries + 2);
}

TEST_CASE("StorePruneGoesOnAfterAnErrorAndReportsIt") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    for (int i = 0; i < 4; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
    }
    arm(Fault::error, 1, EROFS);
    const auto report = store->prune({.max_bytes = 0});
    armed = Fault::none;
    REQUIRE(report);
    CHECK(report->removed.size() == 3);
    CHECK(report->kept_entries == 1);
    REQUIRE(report->faults.size() == 1);
    CHECK(report->faults.front().code == ErrorCode::io);
    CHECK(store->list()->size() == 1);
}

TEST_CASE("StoreEvictionThatTheSystemRefusesIsNoFailedPut") {
    log::set_level(log::Level::off);
    const TemporaryFolder temporary;
    auto store = Store::open(temporary.path(), {.max_bytes = 1});
    REQUIRE(store);
    REQUIRE((*store)->put(make_key(1), make_entry(1)));
    flock_error = EIO;  // the eviction's own lock among them
    CHECK((*store)->put(make_key(2), make_entry(2)));
    flock_error = ENOLCK;
    CHECK((*store)->put(make_key(3), make_entry(3)));
    flock_error = 0;
    log::set_level(log::Level::warning);
    CHECK((*store)->list()->size() == 1);
}

TEST_CASE("StoreWithoutLocksSweepsTemporariesByTheirAge") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));
    const auto stale = only_entry(*store).string() + ".1.0123456789abcdef.tmp";
    write_text(stale, "half");
    flock_error = ENOLCK;
    const auto young = store->prune({});
    const struct timespec old[] = {{0, UTIME_OMIT}, {::time(nullptr) - 25 * 60 * 60, 0}};
    REQUIRE(::utimensat(AT_FDCWD, stale.c_str(), old, 0) == 0);
    const auto aged = store->prune({});
    flock_error = 0;
    CHECK(young->temporaries == 0);
    CHECK(aged->temporaries == 1);
    CHECK(!fs::exists(stale));
}

TEST_CASE("StoreClearTakesWhatIsUsedMeanwhileAndLocksThatNobodyCanHold") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));
    REQUIRE(store->lock(make_key(1)));
    const auto path = only_entry(*store).string();
    const struct timespec old[] = {{0, UTIME_OMIT}, {1000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
    looks_at_it = 0;
    used_again = path.c_str();
    flock_error = ENOLCK;
    const auto report = store->clear();
    used_again = nullptr;
    flock_error = 0;
    REQUIRE(report);
    CHECK(report->removed.size() == 1);
    CHECK(report->locks == 1);
    CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("StoreWriterWhoseNewFileIsSweptMakesAnother") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    REQUIRE(store->put(make_key(1), make_entry(1)));
    swept_before_lock = 2;
    const auto put = store->put(make_key(1), make_entry(1, 1));
    swept_before_lock = 0;
    CHECK(put);
    CHECK(**store->get(make_key(1)) == make_entry(1, 1));
    CHECK(temporary_files(temporary.path()) == 0);
}

TEST_CASE("StoreEntryThatIsUsedWhileAPruneRunsStays") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    for (int i = 0; i < 3; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
    }
    const auto listed = store->list();
    const struct timespec old[] = {{0, UTIME_OMIT}, {1000, 0}};
    for (const auto& entry : *listed) {
        REQUIRE(::utimensat(AT_FDCWD, entry.path.c_str(), old, 0) == 0);
    }
    const auto path = listed->at(1).path.string();
    looks_at_it = 0;
    used_again = path.c_str();
    const auto report = store->prune({.max_age = std::chrono::hours(1)});
    used_again = nullptr;
    REQUIRE(report);
    CHECK(report->removed.size() == 2);
    CHECK(fs::exists(path));
}

// Moved away for damage, pruned by age.
TEST_CASE("StoreEntryThatIsPutAsTheOldOneIsRemovedStays") {
    log::set_level(log::Level::off);
    for (const bool is_damaged : {true, false}) {
        CAPTURE(is_damaged);
        const TemporaryFolder temporary;
        auto store = open_store(temporary.path());
        REQUIRE(store->put(make_key(1), make_entry(1)));
        const auto path = only_entry(*store);
        if (is_damaged) {
            write_text(path, "nonsense");
        }
        const struct timespec old[] = {{0, UTIME_OMIT}, {1000, 0}};
        REQUIRE(::utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
        bool well = false;
        meanwhile = [&] { well = store->put(make_key(1), make_entry(1, 1)).has_value(); };
        put_meanwhile = path.string();
        if (is_damaged) {
            CHECK(!*store->get(make_key(1)));
        } else {
            CHECK(store->prune({.max_age = std::chrono::hours(1)})->removed.size() == 1);
        }
        REQUIRE(put_meanwhile.empty());
        meanwhile_done.get();
        REQUIRE(well);
        const auto got = store->get(make_key(1));
        REQUIRE(got);
        CHECK((*got && **got == make_entry(1, 1)));
    }
    log::set_level(log::Level::warning);
}

TEST_CASE("BundleIsPublishedOverNothingWhateverTheFileSystemKnows") {
    const Bytes bytes(100, std::byte{7});
    for (const bool renames : {true, false}) {
        hard_links = false;
        rename_over_nothing = renames;
        const TemporaryFolder folder;
        const auto path = folder.path() / "x.kiln";
        const auto first = publish_bundle(path, bytes), second = publish_bundle(path, Bytes(50));
        hard_links = rename_over_nothing = true;
        CHECK(first);
        REQUIRE(!second);
        CHECK(second.error().code == ErrorCode::bad_input);
        CHECK(read_text(path).size() == bytes.size());
        CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
    }
}
