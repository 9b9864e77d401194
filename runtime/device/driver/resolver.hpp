// Fills a table of entry points from a library.
#pragma once

#include <dlfcn.h>

#include <string>

namespace kiln::device::driver {

class Resolver {
  public:
    explicit Resolver(void* handle) : handle_(handle) {}

    // Null where the library has no such name.
    template <class Function>
    bool find(Function*& entry, const char* name) {
        entry = reinterpret_cast<Function*>(dlsym(handle_, name));
        return entry != nullptr;
    }
    template <class Function>
    void require(Function*& entry, const char* name) {
        if (!find(entry, name) && missing_.empty()) {
            missing_ = name;
        }
    }
    // The first required name that the library lacks; empty when it has all.
    [[nodiscard]] const std::string& missing() const { return missing_; }

  private:
    void* handle_;
    std::string missing_;
};

}  // namespace kiln::device::driver
