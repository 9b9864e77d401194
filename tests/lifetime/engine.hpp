// What the programs of this folder have in common: an engine of one small problem, its memory, and a way to
// say what is wrong.
#pragma once

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "kiln/kiln.hpp"
#include "tests/engine/engine.hpp"

// Ends the process with 1 and says where: these programs run in processes of their own.
#define ENGINE_REQUIRE(condition, ...)                                                  \
    do {                                                                                \
        if (!(condition)) {                                                             \
            std::fprintf(stderr, "%s:%d: not so: %s ", __FILE__, __LINE__, #condition); \
            std::fprintf(stderr, " " __VA_ARGS__);                                      \
            _exit(1);                                                                   \
        }                                                                               \
    } while (0)

namespace kiln::test {

// SIGTERM is how `timeout` ends an engine that hangs, and the children of its process group with it: each
// says where its first thread is. Addresses are module and offset; addr2line reads them.
inline void say_where_it_hangs(int signal) {
    constexpr char kLine[] = "an engine was still running; its first thread, innermost call first:\n";
    std::array<void*, 48> frames{};
    const int count = backtrace(frames.data(), frames.size());
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kLine, sizeof kLine - 1);
    backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

inline const bool kSaysWhereItHangs = [] {
    void* frame = nullptr;
    backtrace(&frame, 1);  // loads the unwinder now: a signal handler must not
    return std::signal(SIGTERM, say_where_it_hangs) != SIG_ERR;
}();

inline const Linear kSmall{.n = 16, .k = 128};

// Never freed: the arrays live as long as the process, whatever ends it.
inline Linear::Args make_arrays(int device) {
    constexpr std::size_t kBytes = 1 << 14;
    std::array<void*, 4> arrays{};
    engine::set_device(device);
    for (auto& array : arrays) {
        array = engine::allocate(kBytes);
        engine::fill(array, 0, kBytes);
    }
    engine::set_device(0);
    return {.x = arrays[0],
            .ldx = 128,
            .w = arrays[1],
            .w_scale = static_cast<const float*>(arrays[2]),
            .out = arrays[3]};
}

inline Service open_service() {
    auto service = Service::open();
    ENGINE_REQUIRE(service, "%s", service.failure().message.c_str());
    return service;
}

inline Plan<Linear> prepare(const Service& service, int device = 0, const Linear& problem = kSmall) {
    auto plan = service.prepare(device, problem);
    ENGINE_REQUIRE(plan, "%s", plan.failure().message.c_str());
    return plan;
}

}  // namespace kiln::test
