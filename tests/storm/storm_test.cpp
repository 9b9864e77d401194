// Sixty-four processes on two stores, that get, put, build, prune, erase, clear, and are killed or stopped at
// random. KILN_STORM_SECONDS says how long (5), KILN_STORM_SEED repeats a storm as far as a scheduler allows.
//
// In the first store some keys are `kept`: nobody erases them, and no prune is asked to go as far as them.
// Once a put of one has returned well, every later get must find it. The others are loose: put, made old,
// erased, pruned by age. The second store has a bound, is pruned by size and cleared. In both, a get may only
// ever return what was put under its key, byte for byte.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kProcesses = 64;
constexpr std::size_t kKept = 16;
constexpr std::size_t kKeys = 48;  // the kept ones first
constexpr std::size_t kFlavours = 4;
constexpr std::uint64_t kBound = 15'000;  // of the second store: some ten of its entries

// Shared by all processes.
struct Ledger {
    std::atomic<bool> over{false};
    std::array<std::atomic<bool>, kKept> stored{};  // a put of it returned well
    std::atomic<std::uint64_t> gets{0}, hits{0}, puts{0}, builds{0}, erases{0}, prunes{0}, clears{0};
    std::atomic<std::uint64_t> evicted{0};
    std::atomic<std::uint64_t> faults{0};
    std::array<char, 1024> first_fault{};

    // A process that is killed between the two leaves a count without its text.
    void fault(const std::string& text) {
        if (faults++ == 0) {
            std::memcpy(first_fault.data(), text.data(), std::min(text.size(), first_fault.size() - 1));
        }
    }
};

Ledger& shared_ledger() {
    void* const memory =
        ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return *new (memory) Ledger;
}

// Made before the processes are, so that each has them.
struct Goods {
    std::vector<Key> keys;
    std::vector<std::array<Entry, kFlavours>> entries;

    Goods() {
        for (std::size_t i = 0; i < kKeys; ++i) {
            keys.push_back(make_key(static_cast<int>(i)));
            entries.emplace_back();
            for (std::size_t flavour = 0; flavour < kFlavours; ++flavour) {
                entries.back()[flavour] = make_entry(static_cast<int>(i), static_cast<int>(flavour));
            }
        }
    }
};

class Actor {
  public:
    Actor(Store& open_ended, Store& bounded, const Goods& goods, Ledger& ledger, std::uint64_t seed)
        : open_ended_(open_ended), bounded_(bounded), goods_(goods), ledger_(ledger), random_(seed) {}

    void run() {
        while (!ledger_.over) {
            act();
        }
    }

  private:
    void act() {
        const std::size_t what = pick(100);
        const std::size_t kept = pick(kKept);
        const std::size_t loose = kKept + pick(kKeys - kKept);
        if (what < 25) {
            get(open_ended_, kept, ledger_.stored[kept]);
        } else if (what < 40) {
            if (put(open_ended_, kept)) {
                ledger_.stored[kept] = true;
            }
        } else if (what < 50) {
            get(open_ended_, loose, false);
        } else if (what < 60) {
            if (put(open_ended_, loose) && pick(2) == 0) {
                make_old(goods_.keys[loose]);
            }
        } else if (what < 64) {
            build(loose);
        } else if (what < 68) {
            erase(open_ended_, loose);
        } else if (what < 71) {
            prune(open_ended_, {.max_age = 1h});
        } else if (what < 80) {
            get(bounded_, pick(kKeys), false);
        } else if (what < 94) {
            put(bounded_, pick(kKeys));
        } else if (what < 97) {
            prune(bounded_, {.max_bytes = kBound / (1 + pick(4))});
        } else if (what < 99) {
            erase(bounded_, pick(kKeys));
        } else {
            ++ledger_.clears;
            judge(bounded_.clear(), "clear");
        }
    }

    std::size_t pick(std::size_t below) { return random_() % below; }

    template <class T>
    bool judge(const Result<T>& result, const char* what) {
        if (!result) {
            ledger_.fault(fmt::format("{}: {}", what, result.error().message));
        }
        return result.has_value();
    }

    bool is_one_of(const Entry& entry, std::size_t i) const {
        return std::ranges::find(goods_.entries[i], entry) != goods_.entries[i].end();
    }

    void get(Store& store, std::size_t i, bool must_be_there) {
        ++ledger_.gets;
        const auto got = store.get(goods_.keys[i]);
        if (!judge(got, "get")) {
            return;
        }
        if (*got) {
            ++ledger_.hits;
            if (!is_one_of(**got, i)) {
                ledger_.fault(fmt::format("get: wrong bytes under key {}", i));
            }
        } else if (must_be_there) {
            ledger_.fault(fmt::format("get: key {} was reported stored, and is gone", i));
        }
    }

    bool put(Store& store, std::size_t i) {
        const auto before = store.statistics().evicted;
        const bool well = judge(store.put(goods_.keys[i], goods_.entries[i][pick(kFlavours)]), "put");
        ledger_.puts += well ? 1 : 0;
        ledger_.evicted += store.statistics().evicted - before;
        return well;
    }

    void build(std::size_t i) {
        const auto lock = open_ended_.lock(goods_.keys[i]);
        if (judge(lock, "lock")) {
            ++ledger_.builds;
            get(open_ended_, i, false);
            put(open_ended_, i);
        }
    }

    void erase(Store& store, std::size_t i) {
        ++ledger_.erases;
        judge(store.erase(goods_.keys[i]), "erase");
    }

    void prune(Store& store, const PruneOptions& options) {
        ++ledger_.prunes;
        const auto report = store.prune(options);
        if (judge(report, "prune") && !report->faults.empty()) {
            ledger_.fault(fmt::format("prune: {}", report->faults.front().message));
        }
    }

    // As if it had last been used two hours ago.
    void make_old(const Key& key) const {
        const auto name = key.digest().hex();
        const auto path = open_ended_.folder() / "v1" / name.substr(0, 2) / (name + ".entry");
        const struct timespec times[] = {{0, UTIME_OMIT}, {::time(nullptr) - 7200, 0}};
        ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    }

    Store& open_ended_;
    Store& bounded_;
    const Goods& goods_;
    Ledger& ledger_;
    std::mt19937_64 random_;
};

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::size_t files_ending(const fs::path& folder, const std::string& end) {
    std::size_t count = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        count += item.path().filename().string().ends_with(end);
    }
    return count;
}

// Everything that is listed verifies, and is what was put.
void check_listed(Store& store, const Goods& goods) {
    const auto listed = store.list();
    REQUIRE(listed);
    for (const auto& summary : *listed) {
        const auto stored = store.read(summary);
        REQUIRE_MESSAGE(stored, stored.error().message);
        const auto key = std::ranges::find(goods.keys, stored->key);
        REQUIRE(key != goods.keys.end());
        const auto& entries = goods.entries[static_cast<std::size_t>(key - goods.keys.begin())];
        CHECK(std::ranges::find(entries, stored->entry) != entries.end());
    }
}

}  // namespace

TEST_CASE("StormOfSixtyFourProcessesLosesAndMixesUpNothing") {
    const auto seed = number_from_environment("KILN_STORM_SEED", std::random_device{}());
    const std::chrono::seconds duration(number_from_environment("KILN_STORM_SECONDS", 5));
    MESSAGE("seed ", seed, ", ", duration.count(), " s");
    const TemporaryFolder temporary;
    const auto open_ended = temporary.path() / "open-ended";
    const auto bounded = temporary.path() / "bounded";
    const Goods goods;
    Ledger& ledger = shared_ledger();
    std::mt19937_64 random(seed);

    const auto start = [&](std::uint64_t actor_seed) {
        return in_child([&] {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const auto first = Store::open(open_ended);
            const auto second = Store::open(bounded, {.max_bytes = kBound});
            if (!first || !second) {
                ledger.fault(first ? second.error().message : first.error().message);
                return 1;
            }
            Actor(**first, **second, goods, ledger, actor_seed).run();
            if ((*first)->statistics().damaged + (*second)->statistics().damaged > 0) {
                ledger.fault("an entry was found damaged");
            }
            return 0;
        });
    };
    std::vector<pid_t> actors;
    for (std::size_t i = 0; i < kProcesses; ++i) {
        actors.push_back(start(random()));
    }
    std::uint64_t killed = 0;
    std::size_t stopped = 0;
    const auto end = Clock::now() + duration;
    while (Clock::now() < end && ledger.faults == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
        // One that holds a lock or half a file may also just be slow.
        ::kill(actors[stopped], SIGCONT);
        stopped = random() % kProcesses;
        ::kill(actors[stopped], SIGSTOP);
        const std::size_t victim = random() % kProcesses;
        ::kill(actors[victim], SIGKILL);
        killed += wait_for(actors[victim]) == -SIGKILL;
        actors[victim] = start(random());
    }
    ledger.over = true;
    for (const pid_t actor : actors) {
        ::kill(actor, SIGCONT);
        CHECK(wait_for(actor) == 0);
    }

    MESSAGE(ledger.gets.load(), " gets, ", ledger.hits.load(), " hits, ", ledger.puts.load(), " puts, ",
            ledger.builds.load(), " builds, ", ledger.erases.load(), " erased, ", ledger.prunes.load(),
            " prunes, ", ledger.clears.load(), " clears, ", ledger.evicted.load(), " evicted by puts, ",
            killed, " killed");
    CHECK_MESSAGE(ledger.faults.load() == 0, std::string(ledger.first_fault.data()));
    CHECK(ledger.hits.load() > 0);
    CHECK(ledger.evicted.load() > 0);
    CHECK(killed > 0);

    const auto first = open_store(open_ended);
    const auto second = open_store(bounded);
    REQUIRE(first->prune({}));
    REQUIRE(second->prune({.max_bytes = kBound}));
    for (std::size_t i = 0; i < kKept; ++i) {
        const auto got = first->get(goods.keys[i]);
        REQUIRE(got);
        CHECK((*got || !ledger.stored[i]));
    }
    std::uint64_t bytes = 0;
    const auto listed = second->list();
    for (const auto& summary : *listed) {
        bytes += summary.bytes;
    }
    CHECK(bytes <= kBound);
    for (auto* store : {first.get(), second.get()}) {
        check_listed(*store, goods);
        CHECK(files_ending(store->folder(), ".tmp") == 0);
        CHECK(files_ending(store->folder(), ".lock") <= 1);  // evict.lock
        CHECK(!fs::exists(store->folder() / "damaged"));
    }
    ::munmap(&ledger, sizeof(Ledger));
}
