// Ways for a process to end while it has services, plans and work. Each is one argument; the process must end
// by itself with 0, and say "end" before it does.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/lifetime/engine.hpp"
#include "tests/lifetime/programs.hpp"

using namespace kiln::test;

namespace {

// Made before main, so destroyed after whatever libkiln and the driver make while it runs.
struct Static {
    ~Static() {
        if (use) {
            // Whatever comes of it, each call comes back.
            static_cast<void>(plan.launch(nullptr, 1, args));
            engine::synchronize();
            static_cast<void>(service.supports(KILN_NO_DEVICE, kSmall));
            static_cast<void>(service.prepare(1, kSmall));
            const auto another = kiln::Service::open();
            static_cast<void>(another.prepare(0, kSmall).launch(nullptr, 1, args));
            std::puts("used");
            std::fflush(stdout);
        }
    }
    bool use = false;
    kiln::Service service = kiln::Service(kiln::Failure{});
    kiln::Plan<kiln::Linear> plan = kiln::Plan<kiln::Linear>(kiln::Failure{});
    kiln::Linear::Args args;
};
Static kept;

void keep(bool use) {
    kept.service = open_service();
    kept.plan = prepare(kept.service);
    kept.args = make_arrays(0);
    kept.use = use;
    ENGINE_REQUIRE(kept.plan.launch(nullptr, 1, kept.args));
}

void end() {
    std::puts("end");
    std::fflush(stdout);
}

// Threads that launch, open services, prepare what has to be compiled, and never stop, on handles that nobody
// releases; returns when each has begun its second round.
struct Busy {
    kiln::Service service = open_service();
    kiln::Plan<kiln::Linear> plan = prepare(service);
    kiln::Linear::Args args = make_arrays(0);
};
const Busy& be_busy() {
    static const auto& busy = *new Busy;
    static std::atomic<int> rounds[4];
    const auto forever = [](int index, auto body) {
        std::thread([index, body] {
            engine::set_device(0);
            for (;;) {
                body();
                ++rounds[index];
            }
        }).detach();
    };
    for (int i = 0; i < 2; ++i) {
        forever(i, [] {
            for (int n = 0; n < 100; ++n) {
                static_cast<void>(busy.plan.launch(nullptr, 1 + n % 16, busy.args));
            }
            engine::synchronize();
        });
    }
    forever(2, [] {
        const auto service = kiln::Service::open();
        static_cast<void>(service.prepare(1, kSmall).launch(nullptr, 1, busy.args));
    });
    std::thread([] {
        engine::set_device(0);
        for (std::int64_t n = 32;; n += 32) {
            ++rounds[3];
            const auto background =
                busy.service.prepare(0, kiln::Linear{.n = n, .k = 128}, kiln::PrepareMode::background);
            static_cast<void>(busy.service.prepare(0, kiln::Linear{.n = n + 16, .k = 128}));
        }
    }).detach();
    for (auto& count : rounds) {
        while (count == 0) {
            std::this_thread::yield();
        }
    }
    return busy;
}

}  // namespace

int kiln::test::run_ends(char** argv) {
    const std::string how = argv[1];
    if (how == "static") {
        keep(false);
    } else if (how == "static-use") {
        keep(true);
    } else if (how == "exit-live") {
        // Handles that nobody releases, and work that nobody waits for.
        static const auto* const service = new kiln::Service(open_service());
        static const auto* const plan = new kiln::Plan<kiln::Linear>(prepare(*service));
        const auto args = make_arrays(0);
        for (int i = 0; i < 100; ++i) {
            ENGINE_REQUIRE(plan->launch(nullptr, 16, args));
        }
        end();
        std::exit(0);
    } else if (how == "quick-exit") {
        keep(false);
        std::at_quick_exit([] { static_cast<void>(kept.plan.launch(nullptr, 1, kept.args)); });
        end();
        std::quick_exit(0);
    } else if (how == "busy") {
        be_busy();
    } else if (how == "busy-thread") {
        const auto& busy = be_busy();
        std::thread([] {
            end();
            std::exit(0);
        }).detach();
        for (;;) {
            static_cast<void>(busy.plan.launch(nullptr, 1, busy.args));
        }
    } else if (how == "busy-_exit") {
        be_busy();
        end();
        _exit(0);
    }
    end();
    return 0;
}
