#include "base/at_exit.hpp"

#include <dlfcn.h>

namespace kiln {

void call_at_exit(void (*function)()) {
    using Register = int (*)(void (*)(void*), void*, void*);
    // By name, because the symbol that a shared library of ours would bind to drops what it is given.
    static const auto c_library = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "__cxa_atexit"));
    // Of a library that nobody ever closes. Not null: ThreadSanitizer takes that for atexit(), whose
    // functions get no argument.
    static char never_closed;
    c_library([](void* given) { reinterpret_cast<void (*)()>(given)(); }, reinterpret_cast<void*>(function),
              &never_closed);
}

}  // namespace kiln
