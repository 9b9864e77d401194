// Part of a shared library, for all that is linked into it: its static objects are never destroyed.
//
// Threads of the host may call while it exits, and so may the destructors of its own static objects; they
// must not meet a destroyed table of ours, or of a library that we carry. The compiler registers a destructor
// with the address of its object: that is dropped. A handler given to atexit() has none: that goes on to the
// C library. Hidden like all of the library's symbols, so that the host's own objects are not touched.
#include <dlfcn.h>

extern "C" int __cxa_atexit(void (*function)(void*), void* object, void* library) noexcept {
    using Register = int (*)(void (*)(void*), void*, void*);
    static const Register c_library = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "__cxa_atexit"));
    return object != nullptr ? 0 : c_library(function, object, library);
}
