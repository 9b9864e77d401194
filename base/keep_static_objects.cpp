// Part of a shared library, for all that is linked into it: its static objects are never destroyed.
//
// Threads of the host may call while it exits, and so may the destructors of its own static objects; they
// must not meet a destroyed table of ours, or of a library that we carry. Every such destructor, and every
// handler given to std::atexit(), is registered with the C library by this function: it drops them all (a
// destructor of an array can not be told from a handler). call_at_exit() goes past it. Hidden like all of the
// library's symbols, so that the host's own objects are not touched.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
    return 0;
}
