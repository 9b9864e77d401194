// Entry points by name of a driver that the process opens itself.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace kiln::test::engine {

class Library {
  public:
    // Stays open: what ends the process may come after every destructor.
    explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) {
            why_ = dlerror();
        }
    }
    explicit operator bool() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& why() const { return why_; }

    // The driver's value. `Arguments` must be the entry point's own types.
    template <class... Arguments>
    int call(const char* name, Arguments... arguments) const {
        void* const entry = handle_ != nullptr ? dlsym(handle_, name) : nullptr;
        if (entry == nullptr) {
            give_up(name, why_.empty() ? "no such entry point" : why_.c_str());
        }
        return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
    }
    template <class... Arguments>
    void require(const char* name, Arguments... arguments) const {
        if (const int error = call(name, arguments...); error != 0) {
            give_up(name, std::to_string(error).c_str());
        }
    }

    [[noreturn]] static void give_up(const char* name, const char* why) {
        std::fprintf(stderr, "the engine's own %s: not so: %s\n", name, why);
        _exit(1);
    }

  private:
    void* handle_;
    std::string why_;
};

}  // namespace kiln::test::engine
