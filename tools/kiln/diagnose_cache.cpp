// Of kiln doctor: the user's store and the layers below it.

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include <fmt/format.h>

#include "cache/store.hpp"
#include "tools/kiln/diagnosis.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

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
    if (*got != entry) {
        return fail(ErrorCode::damaged, Stage::cache,
                    "an entry that was just put does not come back as it was");
    }
    return {};
}

const char* advice_for(const Room& room) {
    return room.out_of_inodes || (room.known && room.free_bytes < kTrialBytes)
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
        wrong(tried.error().message + to_text(room), advice_for(room));
        return;
    }
    std::uint64_t bytes = 0;
    const auto entries = (*store)->list();
    if (!entries) {
        wrong(entries.error().message, advice_for(room));
        return;
    }
    for (const auto& entry : *entries) {
        bytes += entry.bytes;
    }
    findings.push_back({Verdict::ok, "cache",
                        fmt::format("{}, {} entries, {}{}", (*store)->folder().string(), entries->size(),
                                    short_bytes(bytes), to_text(room)),
                        "", ""});
}

}  // namespace

void diagnose_cache(const service::Settings& settings, Findings& findings) {
    diagnose_store(settings, findings);
    for (const auto& path : settings.cache_path) {
        const auto layer = cache::open_layer(path);
        const auto entries = layer ? (*layer)->list() : Result<std::vector<cache::EntrySummary>>();
        if (!layer || !entries) {
            const auto& error = !layer ? layer.error() : entries.error();
            findings.push_back(
                {Verdict::wrong, "cache layer", error.message,
                 "a folder of root's or the user's that nobody else can write: what is in it is run",
                 "correct its owner and mode, or take it out of KILN_CACHE_PATH"});
        } else {
            findings.push_back({Verdict::ok, "cache layer",
                                fmt::format("{}, {} entries", path.string(), entries->size()), "", ""});
        }
    }
}

}  // namespace kiln::cli
