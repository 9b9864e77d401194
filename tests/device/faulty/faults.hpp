// The part of faulty.h that is the same for every driver: which calls fail, and what is alive. For one source
// of each library: it defines the controls.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/device/faulty/faulty.h"

#define KILN_FAULTY extern "C" __attribute__((visibility("default")))

namespace kiln::test::faults {

struct Order {
    std::string entry;
    int nth = 0;
    int times = 0;
    int error = 0;
};

inline std::mutex mutex;
// Protected by mutex.
inline Order order;
inline std::map<std::string, int, std::less<>> calls;
inline int injected = 0;
inline bool fail_when_done = false;
inline faulty_live live{};

// An entry point of the look-alike.
template <class Function>
Function* real(const char* name) {
    static void* const library = dlopen(KILN_TEST_LOOKALIKE, RTLD_NOW | RTLD_LOCAL);
    void* const entry = library != nullptr ? dlsym(library, name) : nullptr;
    if (entry == nullptr) {
        std::fprintf(stderr, "faulty driver: %s\n", dlerror());
        std::abort();
    }
    return reinterpret_cast<Function*>(entry);
}

// What this call is to answer in place of the truth; 0 where it is to be itself.
inline int fault_of(std::string_view entry) {
    const std::scoped_lock lock(mutex);
    const int number = ++calls.try_emplace(std::string(entry), 0).first->second;
    if (order.entry != entry || number < order.nth ||
        (order.times != 0 && number >= order.nth + order.times)) {
        return 0;
    }
    ++injected;
    return order.error;
}

inline void count(int faulty_live::*object, int change) {
    const std::scoped_lock lock(mutex);
    live.*object += change;
}

enum class Effect { none, destroys };
struct Outcome {
    int error;
    bool on_purpose;
};

// One call; `change` is what it makes or destroys when it succeeds.
template <class Call>
Outcome forward(std::string_view entry, Effect effect, int faulty_live::*object, int change,
                const Call& call) {
    const int fault = fault_of(entry);
    int error = 0;
    if (fault == 0 || effect == Effect::destroys || fail_when_done) {
        error = static_cast<int>(call());
        if (error == 0 && object != nullptr) {
            count(object, change);
        }
    }
    return fault == 0 ? Outcome{error, false} : Outcome{fault, true};
}

}  // namespace kiln::test::faults

KILN_FAULTY void faulty_arm(const char* entry, int nth, int times, int error) {
    using namespace kiln::test::faults;
    const std::scoped_lock lock(mutex);
    order = {entry != nullptr ? entry : "", nth, times, error};
    calls.clear();
    injected = 0;
}

KILN_FAULTY void faulty_fail_when_done(int done) {
    const std::scoped_lock lock(kiln::test::faults::mutex);
    kiln::test::faults::fail_when_done = done != 0;
}

KILN_FAULTY int faulty_calls(const char* entry) {
    using namespace kiln::test::faults;
    const std::scoped_lock lock(mutex);
    const auto found = calls.find(entry);
    return found != calls.end() ? found->second : 0;
}

KILN_FAULTY int faulty_injected(void) {
    const std::scoped_lock lock(kiln::test::faults::mutex);
    return kiln::test::faults::injected;
}

KILN_FAULTY void faulty_count_live(faulty_live* counts) {
    const std::scoped_lock lock(kiln::test::faults::mutex);
    *counts = kiln::test::faults::live;
}

KILN_FAULTY int faulty_capture_mode(void) {
    static auto* const entry = kiln::test::faults::real<int(unsigned*)>("hipThreadExchangeStreamCaptureMode");
    unsigned mode = 2;  // relaxed
    entry(&mode);
    const int was = static_cast<int>(mode);
    entry(&mode);
    return was;
}
