// Which process of a family of forks this is, for one load of a global word.
//
// What holds a driver, threads or worker processes does not survive a fork: it notes the generation in which
// it was made, and is of no use in another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace kiln {

namespace detail {
extern std::atomic<std::uint32_t> current_fork_generation;
}

// Counts forks from now on. Called by whoever makes the first thing that does not survive one; more than once
// is fine.
void watch_forks();

// One more in a child than in its parent, if forks were watched when it was forked. No system call.
[[nodiscard]] inline std::uint32_t fork_generation() noexcept {
    return detail::current_fork_generation.load(std::memory_order_relaxed);
}

// The T of this process, made at the first call: in a child another one than its parent's, which a thread
// that is not there may have locked or half changed. Never destroyed, and only right once watch_forks() was
// called.
template <class T>
[[nodiscard]] T& of_this_process() {
    struct Own {
        std::uint32_t generation = fork_generation();
        T value;
    };
    static std::atomic<Own*> current{nullptr};
    Own* own = current.load();
    while (own == nullptr || own->generation != fork_generation()) {
        auto made = std::make_unique<Own>();
        if (current.compare_exchange_strong(own, made.get())) {
            own = made.release();
        }
    }
    return own->value;
}

}  // namespace kiln
