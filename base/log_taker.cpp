// Whoever calls a taker is counted, so that who replaces it can wait for the last call of it.
//
// No lock: a child that was forked while another thread held it could never take it. The count knows whose it
// is instead: in a child, calls of threads that are not there count for nothing.

#include "base/log_taker.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/fork_guard.hpp"

namespace kiln::log {
namespace {

std::atomic<const Taker*> g_taker{nullptr};

// The generation of forks in the upper half, how many calls are under way in the lower.
std::atomic<std::uint64_t> g_calls{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a child may find a lock taken");

thread_local bool t_within_taker = false;

class CountedCall {
  public:
    CountedCall() {
        t_within_taker = true;
        std::uint64_t seen = g_calls.load();
        while (!g_calls.compare_exchange_weak(
            seen, (is_of(generation_, seen) ? seen : std::uint64_t{generation_} << 32) + 1)) {
        }
    }
    ~CountedCall() {
        std::uint64_t seen = g_calls.load();
        while (is_of(generation_, seen) && !g_calls.compare_exchange_weak(seen, seen - 1)) {
        }
        t_within_taker = false;
    }
    CountedCall(const CountedCall&) = delete;
    CountedCall& operator=(const CountedCall&) = delete;

    [[nodiscard]] static bool any_under_way() {
        const std::uint64_t seen = g_calls.load();
        return is_of(fork_generation(), seen) && static_cast<std::uint32_t>(seen) != 0;
    }

  private:
    static bool is_of(std::uint32_t generation, std::uint64_t calls) { return calls >> 32 == generation; }

    const std::uint32_t generation_ = fork_generation();
};

}  // namespace

bool call_taker(Level level, const char* line) {
    if (t_within_taker || g_taker.load() == nullptr) {
        return false;
    }
    const CountedCall counted;
    // Read after it was counted: who replaces it from here on waits.
    const Taker* const taker = g_taker.load();
    if (taker == nullptr) {
        return false;
    }
    (*taker)(level, line);
    return true;
}

bool set_taker(Taker taker) {
    if (t_within_taker) {
        return false;
    }
    watch_forks();
    auto named = taker ? std::make_unique<const Taker>(std::move(taker)) : nullptr;
    const std::unique_ptr<const Taker> before(g_taker.exchange(named.release()));
    // Of none there is nobody to wait for; and while many speak, calls of the new one may never be none.
    while (before != nullptr && CountedCall::any_under_way()) {
        std::this_thread::yield();
    }
    return true;
}

}  // namespace kiln::log
