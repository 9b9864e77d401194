#include "base/fork_guard.hpp"

#include <pthread.h>

namespace kiln {

namespace detail {
constinit std::atomic<std::uint32_t> current_fork_generation{0};
}

void watch_forks() {
    static const int registered = pthread_atfork(
        nullptr, nullptr, [] { detail::current_fork_generation.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(registered);
}

}  // namespace kiln
