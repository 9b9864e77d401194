// Services that come and go, from several threads: what they leave behind.
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/lifetime/engine.hpp"
#include "tests/lifetime/programs.hpp"

using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

std::size_t count_entries(const char* folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

std::size_t count_maps() {
    std::size_t lines = 0;
    std::FILE* const maps = std::fopen("/proc/self/maps", "r");
    for (int c = 0; (c = std::fgetc(maps)) != EOF;) {
        lines += c == '\n' ? 1 : 0;
    }
    std::fclose(maps);
    return lines;
}

// Another device than 0, where there is one.
int last_device() {
    return engine::num_devices() - 1;
}

void open_use_and_close(const kiln::Linear::Args& args) {
    const auto service = open_service();
    const auto plan = prepare(service, last_device());
    static_cast<void>(plan.launch(nullptr, 1, args));  // declines: another device is current
    ENGINE_REQUIRE(prepare(service).launch(nullptr, 1, args));
}

}  // namespace

int kiln::test::run_many(char**) {
    // Two at once, the driver's binding included.
    std::vector<std::thread> both;
    for (int i = 0; i < 2; ++i) {
        both.emplace_back([] {
            for (int n = 0; n < 10; ++n) {
                const auto plan = prepare(open_service());
            }
        });
    }
    for (auto& thread : both) {
        thread.join();
    }

    const auto args = make_arrays(0);
    for (int i = 0; i < 10; ++i) {
        open_use_and_close(args);
    }
    engine::synchronize();
    const auto files = count_entries("/proc/self/fd");
    const auto threads = count_entries("/proc/self/task");
    const auto maps = count_maps();
    for (int i = 0; i < KILN_TEST_SERVICES; ++i) {
        open_use_and_close(args);
    }
    engine::synchronize();
    ENGINE_REQUIRE(count_entries("/proc/self/fd") == files, "%zu", files);
    ENGINE_REQUIRE(count_entries("/proc/self/task") == threads, "%zu", threads);
    // The allocator may take another piece or two.
    ENGINE_REQUIRE(count_maps() <= maps + 4, "%zu, then %zu", maps, count_maps());

    // A plan that another thread releases while another device is current there.
    auto plan = new kiln::Plan<kiln::Linear>(prepare(open_service(), last_device()));
    std::thread([&] {
        engine::set_device(0);
        delete plan;
        ENGINE_REQUIRE(engine::current_device() == 0);
        ENGINE_REQUIRE(engine::last_error() == 0);
    }).join();
    std::puts("end");
    return 0;
}
