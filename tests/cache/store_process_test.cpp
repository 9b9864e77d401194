// The store and its locks between real processes.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/log.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct Pipe {
    Pipe() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        read = UniqueFd(ends[0]);
        write = UniqueFd(ends[1]);
    }
    UniqueFd read;
    UniqueFd write;
};

void wait_for_byte(const UniqueFd& fd) {
    char byte = 0;
    REQUIRE(::read(fd.get(), &byte, 1) == 1);
}

// What a service does: look, lock, look again, build, publish. Builds are counted in a file. 0 when all went
// well.
int build_once(Store& store, const Key& key, const Entry& entry, const fs::path& builds) {
    auto got = store.get(key);
    if (got && !*got) {
        const auto lock = store.lock(key);
        if (!lock) {
            return 2;
        }
        got = store.get(key);
        if (got && !*got) {
            const UniqueFd file(::open(builds.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
            if (::write(file.get(), "b", 1) != 1) {
                return 3;
            }
            std::this_thread::sleep_for(50ms);
            if (!store.put(key, entry)) {
                return 4;
            }
            got = store.get(key);
        }
    }
    return got && *got && **got == entry ? 0 : 5;
}

// A lock() that is waiting in a thread of its own.
std::future<Result<std::unique_ptr<BuildLock>>> lock_in_thread(Store& store, const Key& key) {
    return std::async(std::launch::async, [&store, key] { return store.lock(key); });
}

}  // namespace

TEST_CASE("StoreEightProcessesBuildOneKeyOnce") {
    const TemporaryFolder temporary;
    const auto builds = temporary.path() / "builds";
    const auto key = make_key(1);
    const auto entry = make_entry(1);
    for (int round = 0; round < 3; ++round) {
        const auto folder = temporary.path() / fmt::format("cache{}", round);
        Pipe start;
        std::vector<pid_t> children;
        for (int i = 0; i < 8; ++i) {
            children.push_back(in_child([&] {
                start.write.reset();
                char byte = 0;
                if (::read(start.read.get(), &byte, 1) != 0) {  // ends when the parent closes its end
                    return 9;
                }
                auto store = Store::open(folder);
                return store ? build_once(**store, key, entry, builds) : 1;
            }));
        }
        start.write.reset();
        for (const auto child : children) {
            CHECK(wait_for(child) == 0);
        }
        CHECK(read_text(builds).size() == static_cast<std::size_t>(round + 1));
    }
}

TEST_CASE("StoreEightThreadsBuildOneKeyOnce") {
    const TemporaryFolder temporary;
    const auto builds = temporary.path() / "builds";
    auto store = open_store(temporary.path() / "cache");
    const auto key = make_key(1);
    const auto entry = make_entry(1);
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] { failures += build_once(*store, key, entry, builds) != 0; });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(failures == 0);
    CHECK(read_text(builds) == "b");
    CHECK(store->statistics().puts == 1);
}

TEST_CASE("StoreLocksOfTwoKeysAreApart") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto first = store->lock(make_key(1));
    const auto second = store->lock(make_key(2));
    CHECK(first);
    CHECK(second);
}

TEST_CASE("StoreLockOfAKilledOwnerIsFree") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto key = make_key(1);
    Pipe locked;
    const auto owner = in_child([&] {
        const auto lock = store->lock(key);
        if (!lock || ::write(locked.write.get(), "l", 1) != 1) {
            return 1;
        }
        ::pause();
        return 0;
    });
    wait_for_byte(locked.read);
    auto waiting = lock_in_thread(*store, key);
    CHECK(waiting.wait_for(100ms) == std::future_status::timeout);
    REQUIRE(::kill(owner, SIGKILL) == 0);
    CHECK(wait_for(owner) == -SIGKILL);
    REQUIRE(waiting.wait_for(10s) == std::future_status::ready);
    CHECK(waiting.get());
}

TEST_CASE("StoreLockOfASuspendedOwnerIsWaitedForWithinBounds") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto key = make_key(1);
    const auto held = store->lock(key);
    REQUIRE(held);
    log::set_level(log::Level::off);
    CHECK(store->lock(key, {.patience = 20ms}));
    log::set_level(log::Level::warning);
    std::atomic<bool> stop{false};
    auto waiting = std::async(std::launch::async, [&] { return store->lock(key, {.stop = &stop}); });
    CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
    stop = true;
    REQUIRE(waiting.wait_for(10s) == std::future_status::ready);
    CHECK(waiting.get());
    // What was returned then is no lock: the owner's holds.
    log::set_level(log::Level::off);
    const auto start = std::chrono::steady_clock::now();
    CHECK(store->lock(key, {.patience = 20ms}));
    CHECK(std::chrono::steady_clock::now() - start >= 20ms);
    log::set_level(log::Level::warning);
}

TEST_CASE("StoreLockIsFreeAfterReleaseThoughAForkedChildLives") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path());
    const auto key = make_key(1);
    auto lock = store->lock(key);
    REQUIRE(lock);
    const auto child = in_child([] {
        ::pause();
        return 0;
    });
    lock->reset();
    auto waiting = lock_in_thread(*store, key);
    CHECK(waiting.wait_for(10s) == std::future_status::ready);
    ::kill(child, SIGKILL);
    wait_for(child);
    CHECK(waiting.get());
}

TEST_CASE("StoreLockOutlivesAWipeOfTheFolder") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path() / "cache");
    const auto key = make_key(1);
    auto before = store->lock(key);
    REQUIRE(before);
    auto waiting = lock_in_thread(*store, key);  // on the file that is about to go
    CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
    fs::remove_all(temporary.path() / "cache");
    before->reset();
    REQUIRE(waiting.wait_for(10s) == std::future_status::ready);
    const auto after = waiting.get();
    REQUIRE(after);
    // Held on the new file: a third one waits.
    auto third = lock_in_thread(*store, key);
    CHECK(third.wait_for(50ms) == std::future_status::timeout);
    const_cast<std::unique_ptr<BuildLock>&>(*after).reset();
    CHECK(third.get());
}

TEST_CASE("StoreUnreadableFolderIsAnErrorNotAMiss") {
    const TemporaryFolder temporary;
    fs::permissions(temporary.path(), fs::perms::all);  // the child below may be another user
    const auto folder = temporary.path() / "cache";
    const auto status = wait_for(in_child([&] {
        if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {  // permissions do not bind root
            return 1;
        }
        auto store = Store::open(folder);
        if (!store || !(*store)->put(make_key(1), make_entry(1))) {
            return 2;
        }
        const auto path = (*store)->list()->front().path;
        ::chmod(path.c_str(), 0);
        auto got = (*store)->get(make_key(1));
        if (got || got.error().code != ErrorCode::io) {
            return 3;
        }
        ::chmod(folder.c_str(), 0);
        got = (*store)->get(make_key(1));
        if (got || got.error().code != ErrorCode::io || (*store)->list() || (*store)->lock(make_key(1)) ||
            (*store)->put(make_key(2), make_entry(2)) || (*store)->erase(make_key(1))) {
            return 4;
        }
        ::chmod(folder.c_str(), 0500);
        const auto read_only = Store::open(folder / "sub");
        ::chmod(folder.c_str(), 0700);
        return !read_only && read_only.error().code == ErrorCode::environment ? 0 : 5;
    }));
    CHECK(status == 0);
}

TEST_CASE("StoreListsTheRestWhenOneGroupCanNotBeRead") {
    const TemporaryFolder temporary;
    fs::permissions(temporary.path(), fs::perms::all);  // the child below may be another user
    const auto status = wait_for(in_child([&] {
        if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) {  // permissions do not bind root
            return 1;
        }
        log::set_level(log::Level::off);
        auto store = Store::open(temporary.path() / "cache");
        for (int i = 0; i < 20; ++i) {
            if (!store || !(*store)->put(make_key(i), make_entry(i))) {
                return 2;
            }
        }
        const auto all = (*store)->list();
        const auto group = all->front().path.parent_path();
        const auto in_group = std::count_if(all->begin(), all->end(), [&](const EntrySummary& summary) {
            return summary.path.parent_path() == group;
        });
        ::chmod(group.c_str(), 0);
        const auto rest = (*store)->list();
        ::chmod(group.c_str(), 0700);
        return rest && rest->size() + static_cast<std::size_t>(in_group) == all->size() ? 0 : 3;
    }));
    CHECK(status == 0);
}

TEST_CASE("StoreFolderOfAnotherUserIsRefused") {
    if (::geteuid() != 0) {
        return;  // only root can make one
    }
    const TemporaryFolder temporary;
    REQUIRE(::chown(temporary.path().c_str(), 65534, 65534) == 0);
    const auto refused = Store::open(temporary.path());
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::environment);
}
