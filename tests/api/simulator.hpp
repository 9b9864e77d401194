// What an engine would do with HIP itself, on the simulator: memory, current device, streams and graphs.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

// The look-alike's entry points. kiln uses the same copy: there is one in the process.
class Driver {
  public:
    Driver() : library_(dlopen(KILN_SIM_LIBRARY, RTLD_NOW)) {
        REQUIRE_MESSAGE(library_ != nullptr, dlerror());
    }

    template <class... Arguments>
    int call(const char* name, Arguments... arguments) const {
        void* symbol = dlsym(library_, name);
        REQUIRE_MESSAGE(symbol != nullptr, name);
        return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
    }

  private:
    void* library_;
};

template <class T>
class DeviceVector {
  public:
    explicit DeviceVector(std::span<const T> values) : count_(values.size()) {
        REQUIRE(driver_.call("hipMalloc", &pointer_, count_ * sizeof(T)) == 0);
        REQUIRE(driver_.call("hipMemcpy", pointer_, static_cast<const void*>(values.data()),
                             count_ * sizeof(T), 1) == 0);
    }
    ~DeviceVector() { driver_.call("hipFree", pointer_); }
    DeviceVector(const DeviceVector&) = delete;
    DeviceVector& operator=(const DeviceVector&) = delete;

    [[nodiscard]] T* get() const { return static_cast<T*>(pointer_); }
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
    [[nodiscard]] std::vector<T> read() const {
        std::vector<T> values(count_);
        REQUIRE(driver_.call("hipMemcpy", static_cast<void*>(values.data()),
                             static_cast<const void*>(pointer_), count_ * sizeof(T), 2) == 0);
        return values;
    }

  private:
    Driver driver_;
    std::size_t count_;
    void* pointer_ = nullptr;
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
