// What stories about an engine have in common: its arrays, and its folders.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/engine.hpp"

namespace kiln::test {

template <class T>
class DeviceVector {
  public:
    explicit DeviceVector(std::span<const T> values)
        : count_(values.size()), pointer_(engine::allocate(count_ * sizeof(T))) {
        engine::copy_in(pointer_, values.data(), count_ * sizeof(T));
    }
    ~DeviceVector() { engine::release(pointer_); }
    DeviceVector(const DeviceVector&) = delete;
    DeviceVector& operator=(const DeviceVector&) = delete;

    [[nodiscard]] T* get() const { return static_cast<T*>(pointer_); }
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
    [[nodiscard]] std::vector<T> read() const {
        std::vector<T> values(count_);
        engine::copy_out(values.data(), pointer_, count_ * sizeof(T));
        return values;
    }

  private:
    std::size_t count_;
    void* pointer_;
};

// A folder of a test's own. The first one is where the process keeps its cache, and stays until the process
// ends.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "kiln-api-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    std::string write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name) << text;
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

// One cache for every service of the program, the simulator's listings included.
inline const std::filesystem::path& shared_cache() {
    static const Folder folder;
    static const bool told = setenv("KILN_CACHE_DIR", folder.path().c_str(), 1) == 0;
    REQUIRE(told);
    return folder.path();
}

}  // namespace kiln::test
