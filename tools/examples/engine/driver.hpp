// A driver's entry points by name.
#pragma once

#include <dlfcn.h>

#include <string>

#include "gpu.hpp"

namespace engine {

// What HIP and CUDA number alike.
inline constexpr unsigned kNonBlocking = 1;    // of streams
inline constexpr int kCaptureThreadLocal = 1;  // of captures

class Driver {
  public:
    // The copy of that name that the process holds already.
    explicit Driver(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
        if (handle_ == nullptr) {
            throw Error(std::string(name) + ": expected the driver that kiln bound, found none of that name");
        }
    }

    // Null where the driver has no such entry point.
    template <class Signature>
    [[nodiscard]] Signature* find(const char* name) const {
        return reinterpret_cast<Signature*>(dlsym(handle_, name));
    }

    // The driver's value. `Arguments` must be the entry point's own types.
    template <class... Arguments>
    int call(const char* name, Arguments... arguments) const {
        auto* const entry = find<int(Arguments...)>(name);
        if (entry == nullptr) {
            throw Error(std::string("the driver has no ") + name);
        }
        return entry(arguments...);
    }
    template <class... Arguments>
    void require(const char* name, Arguments... arguments) const {
        if (const int error = call(name, arguments...); error != 0) {
            throw Error(std::string(name) + ": the driver's error " + std::to_string(error) +
                        simulator_words());
        }
    }

    // Why the simulator refused the last call; nothing of a GPU's driver.
    [[nodiscard]] std::string simulator_words() const {
        auto* const last_message = find<const char*()>("kiln_sim_last_message");
        return last_message != nullptr ? std::string(": ") + last_message() : std::string();
    }

  private:
    void* handle_;  // never closed: kiln uses it until the process ends
};

}  // namespace engine
