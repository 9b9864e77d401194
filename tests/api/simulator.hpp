// The simulator's HIP, for tests that are about HIP itself.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "tests/api/story.hpp"

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

}  // namespace kiln::test
