// Many threads on one service at once: launching one plan, preparing in every mode, asking, reloading,
// releasing. ThreadSanitizer is the judge, in the preset of that name.
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/lifetime/engine.hpp"
#include "tests/lifetime/programs.hpp"

using namespace kiln::test;

namespace {

void require_usable(const kiln::Status& status) {
    ENGINE_REQUIRE(status.ok() || status.decline() == KILN_DECLINE_COMPILING, "%s", status.text());
}

}  // namespace

int kiln::test::run_threads(char** argv) {
    const int rounds = std::atoi(argv[1]);
    // Arrays of its own for each thread: what they compute must not meet.
    std::vector<kiln::Linear::Args> arrays;
    for (int i = 0; i < 7; ++i) {
        arrays.push_back(make_arrays(0));
    }
    const auto service = open_service();
    const auto plan = prepare(service);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&, i, args = arrays[threads.size()]] {
            engine::set_device(0);
            void* const stream = engine::create_stream();
            for (int n = 0; n < rounds * 4; ++n) {
                const auto copy = plan;
                require_usable(copy.launch(stream, 1 + (n + i) % 16, args));
            }
            ENGINE_REQUIRE(engine::synchronize_stream(stream) == 0);
            engine::destroy_stream(stream);
        });
    }
    for (const auto mode :
         {kiln::PrepareMode::blocking, kiln::PrepareMode::lazy, kiln::PrepareMode::background}) {
        threads.emplace_back([&, mode, args = arrays[threads.size()]] {
            engine::set_device(0);
            for (int n = 0; n < rounds; ++n) {
                const auto own = service.prepare(0, kSmall, mode);
                ENGINE_REQUIRE(own, "%s", own.failure().message.c_str());
                require_usable(own.launch(nullptr, 1, args));
                require_usable(own.ready(1));
            }
        });
    }
    threads.emplace_back([&] {
        for (int n = 0; n < rounds; ++n) {
            ENGINE_REQUIRE(service.reload());
        }
    });
    threads.emplace_back([&, args = arrays[threads.size()]] {
        engine::set_device(0);
        for (int n = 0; n < rounds; ++n) {
            const auto another = open_service();
            require_usable(another.prepare(0, kSmall).launch(nullptr, 1, args));
            ENGINE_REQUIRE(service.supports(0, kSmall));
            static_cast<void>(service.statistics());
        }
    });
    for (auto& thread : threads) {
        thread.join();
    }
    ENGINE_REQUIRE(engine::synchronize() == 0);
    std::puts("end");
    return 0;
}
