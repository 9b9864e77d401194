// Of kiln doctor: the user's store and the layers below it.

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include <fmt/format.h>

#include "cache/store.hpp"
#include "runtime/service/cache_places.hpp"
#include "tools/kiln/built_elsewhere.hpp"
#include "tools/kiln/diagnosis.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTrialBytes = 64 * 1024;  // as much as a kernel's entry takes

// What statvfs() says of the file system that holds `folder`.
struct Room {
    bool known = false;
    std::uint64_t free_bytes = 0;
    bool out_of_inodes = false;
    bool read_only = false;
};

Room look_for_room(const std::filesystem::path& folder) {
    struct statvfs info {};
    if (::statvfs(folder.c_str(), &info) != 0) {
        return {};
    }
    return {true, std::uint64_t{info.f_bavail} * info.f_frsize, info.f_files > 0 && info.f_favail == 0,
            (info.f_flag & ST_RDONLY) != 0};
}

std::string to_text(const Room& room) {
    return !room.known          ? ""
           : room.out_of_inodes ? "; the file system has no inodes left"
           : room.read_only     ? "; the file system is mounted read-only"
                                : fmt::format("; {} free", short_bytes(room.free_bytes));
}

// What reading every entry of one place says.
struct Health {
    struct Fault {
        std::uint64_t count = 0;
        std::string first;
    };
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
    Fault refused_folders;  // their entries are not among those counted
    Fault refused;          // entries, by their owner or mode
    Fault damaged;
    Fault unreadable;  // the system said no
};

void count(Health::Fault& fault, const Error& error) {
    if (fault.count++ == 0) {
        fault.first = error.message;
    }
}

Result<Health> read_all(const cache::Layer& place) {
    auto summaries = place.list();
    if (!summaries) {
        return fail(summaries);
    }
    Health health;
    for (const auto& summary : *summaries) {
        const auto stored = place.read(summary);
        if (!stored && stored.error().code == ErrorCode::not_found) {
            continue;  // removed meanwhile
        }
        ++health.entries;
        health.bytes += summary.bytes;
        if (!stored) {
            count(stored.error().code == ErrorCode::environment ? health.refused
                  : stored.error().code == ErrorCode::damaged   ? health.damaged
                                                                : health.unreadable,
                  stored.error());
        }
    }
    // A refused folder of entries (FOLDER/v1/DI, as store.hpp says) is left out of the list: to read any
    // entry in it says why.
    const auto entries = place.folder() / fmt::format("v{}", cache::kEntryVersion);
    std::error_code error;
    for (fs::directory_iterator item(entries, error), end; !error && item != end; item.increment(error)) {
        const std::string zeros(Digest{}.hex().size() - 2, '0');
        const auto name = item->path().filename().string();
        const auto digest = Digest::from_hex(name + zeros);  // no digest of any other name
        if (!digest) {
            continue;
        }
        const auto stored = place.read({*digest, item->path() / digest->hex(), 0, {}});
        if (!stored && stored.error().code == ErrorCode::environment &&
            stored.error().message.starts_with("cache folder")) {
            count(health.refused_folders, stored.error());
        }
    }
    return health;
}

void report_faults(const Health& health, const fs::path& folder, const char* what, bool is_layer,
                   Findings& findings) {
    const auto report = [&](const Health::Fault& fault, std::string_view how, std::string expected,
                            std::string advice) {
        if (fault.count > 0) {
            findings.push_back(
                {Verdict::wrong, what,
                 fmt::format("{}: {} {}, the first: {}", folder.string(), fault.count, how, fault.first),
                 std::move(expected), std::move(advice), ErrorCode::environment});
        }
    };
    const char* const advice = is_layer ? "have its owner correct owner and mode (chmod -R go-w)"
                                        : "correct owner and mode (chmod -R go-w), or remove them";
    report(health.refused_folders, "folders of entries refused", "folders that only their owner can write",
           advice);
    report(health.refused, "entries refused", "files that only their owner can write", advice);
    report(health.damaged, "entries damaged", "entries as they were written",
           is_layer ? "have its owner remove or copy them again; kiln compiles in their place"
                    : "nothing: kiln sets each aside when it is next asked for, and compiles it again");
    report(health.unreadable, "entries unreadable", "entries that this user can read",
           "correct owner and mode, and look at the file system");
}

// Puts an entry, reads it and erases it: whatever the system refuses, it refuses here.
Result<void> try_store(cache::Store& store) {
    const auto key = cache::Key::make(fmt::format(R"({{"kind":"doctor","process":{}}})", ::getpid()), "{}");
    if (!key) {
        return tl::unexpected(key.error());
    }
    cache::Entry entry{Bytes(kTrialBytes), "{}", {}};
    std::minstd_rand random;  // what no compression makes small
    std::ranges::generate(entry.code_object, [&] { return static_cast<std::byte>(random() >> 8); });
    if (auto put = store.put(*key, entry); !put) {
        return put;
    }
    auto got = store.get(*key);
    static_cast<void>(store.erase(*key));
    if (!got) {
        return fail(got);
    }
    if (!*got) {
        return fail(ErrorCode::environment, Stage::cache,
                    "an entry that was just put is not found again: it was removed meanwhile, or refused");
    }
    if (*got != entry) {
        return fail(ErrorCode::damaged, Stage::cache,
                    "an entry that was just put does not come back as it was");
    }
    return {};
}

// A trust that is refused is an error of environment; what the system refuses is one of io.
const char* advice_for(const Error& error, const Room& room) {
    return error.code == ErrorCode::environment
               ? "correct owner and mode of what is named (chmod go-w), or name another folder with "
                 "KILN_CACHE_DIR"
           : room.out_of_inodes || (room.known && room.free_bytes < kTrialBytes)
               ? "free some room (kiln prune), or name another folder with KILN_CACHE_DIR"
               : "name a folder that can be written with KILN_CACHE_DIR";
}

constexpr const char* kExpectedStore = "a folder of the user's that nobody else can write, with room in it";

void diagnose_store(const service::Settings& settings, Findings& findings) {
    const auto wrong = [&](std::string found, std::string advice) {
        findings.push_back({Verdict::wrong, "cache",
                            fmt::format("{}: what is compiled is kept in memory only", found), kExpectedStore,
                            std::move(advice), ErrorCode::environment});
    };
    if (settings.cache_dir.empty()) {
        wrong("neither KILN_CACHE_DIR nor XDG_CACHE_HOME nor HOME names a place", "set one of them");
        return;
    }
    const auto store = cache::Store::open(settings.cache_dir);
    if (!store) {
        wrong(store.error().message,
              "correct its owner and mode (chmod go-w), or name another folder with KILN_CACHE_DIR");
        return;
    }
    const auto room = look_for_room((*store)->folder());
    if (const auto tried = try_store(**store); !tried) {
        wrong(tried.error().message + to_text(room), advice_for(tried.error(), room));
        return;
    }
    const auto health = read_all(**store);
    if (!health) {
        wrong(health.error().message, advice_for(health.error(), room));
        return;
    }
    findings.push_back({Verdict::ok, "cache",
                        fmt::format("{}, {} entries, {}{}", (*store)->folder().string(), health->entries,
                                    short_bytes(health->bytes), to_text(room)),
                        "", ""});
    report_faults(*health, (*store)->folder(), "cache", false, findings);
}

}  // namespace

void diagnose_cache(const service::Settings& settings, Findings& findings) {
    diagnose_store(settings, findings);
    for (const auto& path : settings.cache_path) {
        auto layer = service::open_cache_layer(path, settings);
        const auto health = layer ? read_all(**layer) : Result<Health>(fail(layer));
        if (!health) {
            std::error_code error;
            const auto type = fs::status(path, error).type();
            const char* const advice =
                type == fs::file_type::not_found ? "make it, or take it out of KILN_CACHE_PATH"
                : type == fs::file_type::regular ? "have it made again by kiln bundle create, signed where "
                                                   "KILN_TRUSTED_KEYS is set, or take "
                                                   "it out of KILN_CACHE_PATH (kiln bundle verify says more)"
                : type != fs::file_type::directory && type != fs::file_type::none
                    ? "name a folder or a bundle in KILN_CACHE_PATH instead, or take it out"
                    : "correct owner and mode of what is named, or take it out of KILN_CACHE_PATH";
            findings.push_back({Verdict::wrong, "cache layer", health.error().message,
                                "a folder or a bundle of root's or the user's that nobody else can write: "
                                "what is in it is run",
                                advice});
            continue;
        }
        findings.push_back({Verdict::ok, "cache layer",
                            fmt::format("{}, {} entries", path.string(), health->entries), "", ""});
        report_faults(*health, path, "cache layer", true, findings);
        const auto elsewhere = (*layer)->is_bundle() ? count_built_elsewhere(**layer, settings) : 0;
        if (elsewhere > 0) {
            findings.push_back(
                {Verdict::note, "cache layer",
                 fmt::format("{}: another compiler than this machine's built {} of its entries, "
                             "which are served by their request alone",
                             path.string(), elsewhere),
                 "", ""});
        }
    }
}

}  // namespace kiln::cli
