// Read-only layers, and whose files are taken at all.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/log.hpp"
#include "tests/cache/support.hpp"

using namespace kiln;
using namespace kiln::cache;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kNobody = 65534;

std::unique_ptr<Layer> open_well(const fs::path& folder) {
    auto layer = open_layer(folder);
    REQUIRE_MESSAGE(layer, layer.error().message);
    return *std::move(layer);
}

// What stands under a folder, with everything that a write would change.
std::vector<std::string> fingerprint(const fs::path& folder) {
    std::vector<std::string> lines;
    const auto add = [&](const fs::path& path) {
        struct stat info {};
        REQUIRE(::lstat(path.c_str(), &info) == 0);
        lines.push_back(fmt::format("{} {:o} {} {} {}.{:09} {}.{:09}", path.string(), info.st_mode,
                                    info.st_uid, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                                    info.st_ctim.tv_sec, info.st_ctim.tv_nsec));
    };
    add(folder);
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        add(item.path());
    }
    return lines;
}

// What is said on stderr while `work` runs.
template <class Work>
std::string said_by(const Work& work) {
    const TemporaryFolder temporary;
    const auto path = temporary.path() / "stderr";
    const int old = ::dup(STDERR_FILENO);
    FILE* const file = std::fopen(path.c_str(), "w");
    ::dup2(::fileno(file), STDERR_FILENO);
    work();
    ::dup2(old, STDERR_FILENO);
    ::close(old);
    std::fclose(file);
    return read_text(path);
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

// The ways in which somebody else could have written one path, each with what the refusal says of it.
struct Exposure {
    const char* says;
    void (*expose)(const fs::path&);
    bool needs_root;
};
const std::vector<Exposure> kExposures{
    {"found mode 0775", [](const fs::path& path) { ::chmod(path.c_str(), 0775); }, false},
    {"found mode 0702", [](const fs::path& path) { ::chmod(path.c_str(), 0702); }, false},
    {"found user 65534", [](const fs::path& path) { REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0); },
     true},
};

}  // namespace

TEST_CASE("LayerServesWhatAStoreHoldsAndIsNeverWritten") {
    const TemporaryFolder temporary;
    {
        auto store = open_store(temporary.path() / "cache");
        for (int i = 0; i < 5; ++i) {
            REQUIRE(store->put(make_key(i), make_entry(i)));
        }
        write_text(store->list()->at(0).path, "nonsense");
        const struct timespec old[] = {{1000, 0}, {1000, 0}};  // a use would be marked
        const auto listed = store->list();
        for (const auto& entry : *listed) {
            REQUIRE(::utimensat(AT_FDCWD, entry.path.c_str(), old, 0) == 0);
        }
    }
    auto layer = open_well(temporary.path() / "cache/");
    CHECK(layer->folder() == temporary.path() / "cache");
    const auto before = fingerprint(layer->folder());
    const auto said = said_by([&] {
        for (int round = 0; round < 2; ++round) {
            int hits = 0;
            for (int i = 0; i < 6; ++i) {
                const auto got = layer->get(make_key(i));
                const auto found = layer->find(make_key(i));
                REQUIRE(got);
                REQUIRE(found);
                CHECK(got->has_value() == found->has_value());
                if (*got) {
                    CHECK(**got == make_entry(i));
                    CHECK(*(*found)->entry() == make_entry(i));
                    ++hits;
                }
            }
            CHECK(hits == 4);
        }
    });
    CHECK(layer->list()->size() == 5);
    CHECK(layer->statistics() == StoreStatistics{16, 8, 4, 0});
    CHECK_MESSAGE(count(said, "damaged ") == 1, said);  // once, not at every look
    CHECK(fingerprint(layer->folder()) == before);
}

TEST_CASE("LayerIsFoundByRequestAlone") {
    const TemporaryFolder temporary;
    auto store = open_store(temporary.path() / "cache");
    for (int i = 0; i < 5; ++i) {
        REQUIRE(store->put(make_key(i), make_entry(i)));
    }
    auto layer = open_well(temporary.path() / "cache");
    for (auto* one : {layer.get(), static_cast<Layer*>(store.get())}) {
        for (int round = 0; round < 2; ++round) {
            const auto found = one->find_by_request(make_key(3).request_digest());
            REQUIRE(found);
            REQUIRE(*found);
            CHECK((*found)->key() == make_key(3));
            CHECK((*found)->entry() == make_entry(3));
            CHECK(!*one->find_by_request(make_key(7).request_digest()));
        }
    }
    // One that comes later is found too.
    REQUIRE(store->put(make_key(7), make_entry(7)));
    CHECK(*layer->find_by_request(make_key(7).request_digest()));
    CHECK(layer->statistics() == StoreStatistics{3, 2});
}

TEST_CASE("LayerFolderThatOthersCanWriteIsRefusedWithPathAndMode") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "layer";
    for (const auto& exposure : kExposures) {
        if (exposure.needs_root && ::geteuid() != 0) {
            MESSAGE("skipped, for it needs root: ", exposure.says);
            continue;
        }
        fs::create_directory(folder);
        exposure.expose(folder);
        const auto refused = open_layer(folder);
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::environment);
        const auto& message = refused.error().message;
        CHECK_MESSAGE(count(message, folder.string()) == 1, message);
        CHECK_MESSAGE(count(message, "expected") == 1, message);
        CHECK_MESSAGE(count(message, exposure.says) == 1, message);
        fs::remove(folder);
    }
    write_text(temporary.path() / "bundle", "a file");
    const auto file = open_layer(temporary.path() / "bundle");
    REQUIRE(!file);
    CHECK(count(file.error().message, "expected a folder, found a file") == 1);
    for (const auto& none : {temporary.path() / "none", fs::path()}) {
        const auto refused = open_layer(none);
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::environment);
    }
}

// In a store and in a layer; its folder (after opening), the version's, the group's, the entry itself.
TEST_CASE("EntryThatOthersCouldHaveWrittenIsAMissAndReportedOnce") {
    for (const bool own : {true, false}) {
        for (int depth = 0; depth < 4; ++depth) {
            for (const auto& exposure : kExposures) {
                if (exposure.needs_root && ::geteuid() != 0) {
                    MESSAGE("skipped, for it needs root: ", exposure.says);
                    continue;
                }
                CAPTURE(own);
                CAPTURE(depth);
                CAPTURE(exposure.says);
                const TemporaryFolder temporary;
                const auto folder = temporary.path() / "cache";
                auto store = open_store(folder);
                REQUIRE(store->put(make_key(1), make_entry(1)));
                const auto summary = store->list()->front();
                auto layer = open_well(folder);
                Layer& looked_into = own ? *store : *layer;
                REQUIRE(*looked_into.get(make_key(1)));
                auto path = summary.path;
                for (int up = 0; up < depth; ++up) {
                    path = path.parent_path();
                }
                exposure.expose(path);

                const auto said = said_by([&] {
                    for (int round = 0; round < 3; ++round) {
                        const auto got = looked_into.get(make_key(1));
                        REQUIRE(got);
                        CHECK(!*got);
                    }
                });
                CHECK(looked_into.statistics().refused == 3);
                CHECK(looked_into.statistics().misses == 3);
                CHECK_MESSAGE(count(said, "refuse ") == 1, said);
                CHECK_MESSAGE(count(said, exposure.says) == 1, said);
                CHECK_MESSAGE(count(said, path.string()) >= 1, said);
                const auto read = looked_into.read(summary);
                REQUIRE(!read);
                CHECK(read.error().code == ErrorCode::environment);
                CHECK(fs::exists(summary.path));

                // Nobody is told that what no get() will find was stored.
                if (own && depth > 0) {
                    const auto put = store->put(make_key(1), make_entry(1, 1));
                    REQUIRE(!put);
                    CHECK(put.error().code == ErrorCode::environment);
                    CHECK(!store->erase(make_key(1)));
                    REQUIRE((depth == 1 || !store->clear()));
                    CHECK(fs::exists(summary.path));
                }

                // In the store, a build replaces the entry, whoever owns it.
                if (own && depth == 0) {
                    REQUIRE(store->put(make_key(1), make_entry(1, 1)));
                    CHECK(**store->get(make_key(1)) == make_entry(1, 1));
                }
            }
        }
    }
}

TEST_CASE("SymbolicLinkInsideOfAFolderIsNotFollowedButTheFolderMayBeOne") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "cache";
    { REQUIRE(open_store(folder)->put(make_key(1), make_entry(1))); }
    fs::create_directory_symlink(folder, temporary.path() / "link");
    CHECK(*open_well(temporary.path() / "link")->get(make_key(1)));
    CHECK(*open_store(temporary.path() / "link")->get(make_key(1)));

    const auto entry = only_entry(*open_store(folder));
    const auto elsewhere = temporary.path() / "elsewhere";
    for (const auto& path : {entry, entry.parent_path(), entry.parent_path().parent_path()}) {
        fs::rename(path, elsewhere);
        fs::create_symlink(elsewhere, path);
        const auto layer = open_well(folder);
        const auto store = open_store(folder);
        for (Layer* one : {layer.get(), static_cast<Layer*>(store.get())}) {
            const auto said = said_by([&] {
                for (int round = 0; round < 2; ++round) {
                    const auto got = one->get(make_key(1));
                    REQUIRE(got);
                    CHECK(!*got);
                }
            });
            CHECK(one->statistics().refused == 2);
            CHECK_MESSAGE(count(said, "refuse ") == 1, said);
            CHECK_MESSAGE(count(said, path.string()) >= 1, said);
        }
        fs::remove(path);
        fs::rename(elsewhere, path);
    }
    CHECK(*open_well(folder)->get(make_key(1)));
}

TEST_CASE("StoreWritesAndRemovesNothingBehindASymbolicLink") {
    log::set_level(log::Level::off);
    for (const char* name : {"v1", "v1/group", "locks", "damaged"}) {
        CAPTURE(name);
        const TemporaryFolder temporary;
        auto store = open_store(temporary.path() / "cache");
        REQUIRE(store->put(make_key(1), make_entry(1)));
        REQUIRE(store->lock(make_key(1)));
        const auto entry = only_entry(*store);
        write_text(store->folder() / "damaged" / entry.filename(), "bad", true);
        const auto path = std::string_view(name) == "v1/group" ? entry.parent_path() : store->folder() / name;
        const auto elsewhere = temporary.path() / "elsewhere";
        fs::rename(path, elsewhere);
        fs::create_directory_symlink(elsewhere, path);
        const auto before = fingerprint(elsewhere);
        const bool holds_entries = std::string_view(name).starts_with("v1");
        CHECK(store->put(make_key(1), make_entry(1, 1)).has_value() != holds_entries);
        CHECK(store->lock(make_key(2)).has_value() == (std::string_view(name) != "locks"));
        CHECK(store->erase(make_key(1)).has_value() != holds_entries);
        static_cast<void>(store->prune({.max_bytes = 0}));
        static_cast<void>(store->clear());
        CHECK(fingerprint(elsewhere) == before);
    }
    log::set_level(log::Level::warning);
}

TEST_CASE("LayerOfRootServesAUserAndRefusesAnotherUsers") {
    if (::geteuid() != 0) {
        MESSAGE("skipped: only root can make folders of several users");
        return;
    }
    const TemporaryFolder temporary;
    fs::permissions(temporary.path(), fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
    const auto folder = temporary.path() / "layer";
    REQUIRE(open_store(folder)->put(make_key(1), make_entry(1)));
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        fs::permissions(item.path(), item.is_directory() ? fs::perms(0755) : fs::perms(0644));
    }
    fs::permissions(folder, fs::perms(0755));
    const auto as_user = [&](uid_t user) {
        return wait_for(in_child([&] {
            if (::setresuid(user, user, user) != 0) {
                return 9;
            }
            log::set_level(log::Level::off);
            const auto layer = open_layer(folder);
            if (!layer) {
                return layer.error().message.find("root or to user") != std::string::npos ? 1 : 8;
            }
            const auto got = (*layer)->get(make_key(1));
            return got && *got && **got == make_entry(1) ? 0 : 2;
        }));
    };
    CHECK(as_user(kNobody) == 0);
    // An entry of a third user.
    REQUIRE(::chown(only_entry(*open_store(folder)).c_str(), kNobody - 1, 0) == 0);
    CHECK(as_user(kNobody) == 2);
    REQUIRE(::chown(folder.c_str(), kNobody - 1, 0) == 0);
    CHECK(as_user(kNobody) == 1);
}
