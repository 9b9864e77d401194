// What a fuzz target is: one function over arbitrary bytes, and how it says that a promise was broken.
//
// The same target is linked twice: with libFuzzer (fuzz_main.cpp, the preset `fuzz`), and with a program that
// runs the corpus through it (replay.cpp, every other preset), so that what was found once stays tested.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "base/bytes.hpp"

namespace kiln::fuzz {

// Hands the bytes to the parser under test and checks every promise that its header makes. True when the
// parser took them. Deterministic: it reads nothing but `input`.
[[nodiscard]] bool run(ByteView input);

[[noreturn]] inline void broken(const char* promise, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
    std::abort();
}

}  // namespace kiln::fuzz

// Like assert(), in every kind of build.
#define KILN_FUZZ_PROMISE(condition) \
    ((condition) ? static_cast<void>(0) : kiln::fuzz::broken(#condition, __FILE__, __LINE__))
