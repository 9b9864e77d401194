// What the cache's tests share: a folder that goes away, keys and entries that differ by a number, child
// processes.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cache/store.hpp"

namespace kiln::cache {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "kiln-cache-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

inline Key make_key(int number) {
    auto key = Key::make(fmt::format(R"({{"schema": 1, "constants": {{"n": {}, "k": 64}}}})", number),
                         R"({"compiler": "0123abcd"})");
    REQUIRE(key);
    return *key;
}

// `flavour` tells apart two entries of one key. Code and listing compress, the tail of the code does not.
inline Entry make_entry(int number, int flavour = 0) {
    Entry entry;
    std::uint32_t state = static_cast<std::uint32_t>(1000 * number + flavour + 1);
    for (int i = 0; i < 3000; ++i) {
        state = state * 1664525U + 1013904223U;
        entry.code_object.push_back(i < 2000 ? static_cast<std::byte>(i / 100)
                                             : static_cast<std::byte>(state >> 24));
    }
    entry.metadata = fmt::format(R"({{"name": "entry {}", "flavour": {}}})", number, flavour);
    for (int i = 0; i < 100; ++i) {
        entry.listing += fmt::format("v_add_u32 v{}, v{}, v{}\n", i, flavour, number);
    }
    return entry;
}

inline std::unique_ptr<Store> open_store(const std::filesystem::path& folder) {
    auto store = Store::open(folder);
    REQUIRE_MESSAGE(store, store.error().message);
    return std::move(*store);
}

// The one entry file of a store that holds one.
inline std::filesystem::path only_entry(const Store& store) {
    const auto listed = store.list();
    REQUIRE(listed);
    REQUIRE(listed->size() == 1);
    return listed->front().path;
}

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::filesystem::path& path, const std::string& text,
                       bool make_folders = false) {
    if (make_folders) {
        std::filesystem::create_directories(path.parent_path());
    }
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    REQUIRE(out.good());
}

// Runs `work` in a forked child, whose exit status is what it returns; doctest's macros belong to the parent.
template <class Work>
pid_t in_child(const Work& work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::_exit(work());
    }
    return child;
}

// The exit status, or minus the signal that ended the child.
inline int wait_for(pid_t child) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace kiln::cache
