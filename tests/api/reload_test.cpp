// An operator edits the tables of a running engine: a real file, threads that launch on the simulator
// meanwhile, and the counters that say what was compiled.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "tests/api/small_case.hpp"

using kiln::test::Folder;
using kiln::test::small_problem;
using kiln::test::small_row;
using kiln::test::small_table;
using kiln::test::SmallCase;

namespace engine = kiln::test::engine;

namespace {

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Threads that launch one plan until they are told to stop, each with a stream and arrays of its own.
class Engine {
  public:
    Engine(const kiln::Plan<kiln::Linear>& plan, std::int64_t n) : plan_(plan) {
        for (std::int64_t m : {3, 16}) {
            threads_.emplace_back([this, n, m] { run(n, m); });
        }
    }
    ~Engine() {
        stop_ = true;
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }
    // Until every thread has launched once more, and seen what came out.
    void go_on() const {
        const unsigned long before = launches_;
        while (launches_ < before + 2 * threads_.size() && failures_ == 0) {
            std::this_thread::yield();
        }
    }
    [[nodiscard]] unsigned failures() const { return failures_; }

  private:
    void run(std::int64_t n, std::int64_t m) {
        const SmallCase arrays(m, n);
        void* const stream = engine::create_stream();
        while (!stop_) {
            const bool launched =
                plan_.launch(stream, m, arrays.args()).ok() && engine::synchronize_stream(stream) == 0;
            failures_ += !launched || !arrays.is_right();
            ++launches_;
        }
        engine::destroy_stream(stream);
    }

    const kiln::Plan<kiln::Linear> plan_;
    std::atomic<bool> stop_{false};
    std::atomic<unsigned long> launches_{0};
    std::atomic<unsigned> failures_{0};
    std::vector<std::thread> threads_;
};

struct Running {
    Folder folder;
    std::string cache = (folder.path() / "cache").string();
    std::string shapes = folder.write("shapes/mine.json", small_table({small_row(16, 1), small_row(32, 1)}));
    kiln::Service service = open();

    kiln::Service open() const {
        kiln::test::shared_cache();
        return kiln::Service::open({.cache_dir = cache.c_str(),
                                    .shapes_path = shapes.c_str(),
                                    .device = engine::device(),
                                    .log = "off"});
    }
    void edit(const std::string& text) const { folder.write("shapes/mine.json", text); }
    kiln::Plan<kiln::Linear> prepare(std::int64_t n) const {
        auto plan = service.prepare(0, small_problem(n));
        REQUIRE_MESSAGE(plan, plan.failure().message);
        return plan;
    }
    // Fails, and says all of `parts`.
    void refuses(const std::vector<std::string>& parts) const {
        kiln::Failure why;
        CHECK(service.reload(&why).error_code() == KILN_ERROR_BAD_INPUT);
        for (const std::string& part : parts) {
            CHECK_MESSAGE(mentions(why.message, part), why.message);
        }
    }
};

}  // namespace

TEST_CASE_FIXTURE(Running, "reload: what changed is compiled, what did not is not, and running plans go on") {
    REQUIRE_MESSAGE(service, service.failure().message);
    INFO("seed ", kiln::test::kSmallSeed);
    const auto before = prepare(16);
    CHECK(prepare(32));
    CHECK(service.statistics().compiles == 4);
    const Engine engine(before, 16);
    engine.go_on();

    edit(small_table({small_row(16, 2), small_row(32, 1), small_row(48, 1)}));
    // Nobody looks at the file before reload() does.
    CHECK(prepare(16));
    CHECK(service.supports(0, small_problem(48)).decline() == KILN_DECLINE_SHAPE);
    CHECK(service.statistics().compiles == 4);

    REQUIRE(service.reload());
    CHECK(service.statistics().reloads == 1);
    CHECK(service.statistics().compiles == 4);
    engine.go_on();
    const auto after = prepare(16);
    CHECK(service.statistics().compiles == 6);
    const std::uint64_t hits = service.statistics().cache_hits;
    CHECK(prepare(32));
    CHECK(service.statistics().compiles == 6);
    CHECK(service.statistics().cache_hits == hits + 2);
    CHECK(service.supports(0, small_problem(48)).ok());
    const SmallCase arrays(16, 16);
    REQUIRE(after.launch(nullptr, 16, arrays.args()));
    CHECK(arrays.is_right());
    engine.go_on();

    // Back to what was: everything is in the cache.
    edit(small_table({small_row(16, 1), small_row(32, 1)}));
    REQUIRE(service.reload());
    CHECK(prepare(16));
    CHECK(service.statistics().compiles == 6);
    CHECK(service.supports(0, small_problem(48)).decline() == KILN_DECLINE_SHAPE);
    engine.go_on();
    CHECK(engine.failures() == 0);
}

TEST_CASE_FIXTURE(Running, "reload: a broken edit is refused whole, with every fault, and changes nothing") {
    const auto before = prepare(16);
    const Engine engine(before, 16);
    std::string broken = small_row(16, 2);
    broken.replace(broken.find("\"max_m\": 4"), 10, "\"max_m\": 0");
    edit(small_table({broken, small_row(32, 3), small_row(48, 1)}));
    refuses({"mine.json:2:", "/rows/0/buckets/0/max_m",
             "mine.json:3:", std::string("/rows/1/buckets/0/constants/") + engine::variant_name()});
    CHECK(service.supports(0, small_problem(48)).decline() == KILN_DECLINE_SHAPE);
    CHECK(prepare(16));
    CHECK(prepare(32));
    CHECK(service.statistics().compiles == 4);
    CHECK(service.statistics().reloads == 0);

    std::filesystem::remove(shapes);
    kiln::Failure why;
    CHECK(service.reload(&why).failed());
    CHECK_MESSAGE(mentions(why.message, "mine.json"), why.message);
    CHECK(prepare(16));
    engine.go_on();
    CHECK(engine.failures() == 0);
    // Put right, it is taken.
    edit(small_table({small_row(48, 1)}));
    REQUIRE(service.reload());
    CHECK(service.supports(0, small_problem(48)).ok());
    CHECK(service.supports(0, small_problem(16)).decline() == KILN_DECLINE_SHAPE);
}

TEST_CASE("reload: templates are taken with the tables, whole or not at all") {
    kiln::test::shared_cache();
    const Folder folder;
    const std::string cache = (folder.path() / "cache").string();
    const std::string shapes = folder.write("mine.json", small_table({small_row(16, 1)}));
    const std::string kernels = (folder.path() / "kernels").string();
    const std::string name = std::string("kernels/") + engine::template_file();
    folder.write(name, "#include \"gone.h\"\n");
    const kiln::Config config{.cache_dir = cache.c_str(),
                              .shapes_path = shapes.c_str(),
                              .kernel_path = kernels.c_str(),
                              .device = engine::device(),
                              .log = "off"};
    CHECK(!kiln::Service::open(config));  // an include that leads nowhere
    std::filesystem::remove(folder.path() / name);
    const auto service = kiln::Service::open(config);
    REQUIRE_MESSAGE(service, service.failure().message);
    const kiln::Linear problem = small_problem(16);
    REQUIRE(service.prepare(0, problem));

    folder.write(name, "this is no C++;\n");
    CHECK(service.prepare(0, problem));  // nobody looks before reload() does
    REQUIRE(service.reload());
    CHECK(service.prepare(0, problem).failure().status.error_code() == KILN_ERROR_COMPILE_FAILED);
    // Disabled is what was compiled, not the problem: another text is another specialisation.
    CHECK(service.prepare(0, problem).failure().status.decline() == KILN_DECLINE_DISABLED);

    folder.write(name, "#include \"gone.h\"\n");
    kiln::Failure why;
    CHECK(service.reload(&why).error_code() == KILN_ERROR_BAD_INPUT);
    CHECK_MESSAGE(mentions(why.message, "gone.h"), why.message);
    CHECK(service.prepare(0, problem).failure().status.decline() == KILN_DECLINE_DISABLED);

    std::filesystem::remove(folder.path() / name);
    REQUIRE(service.reload());
    CHECK(service.prepare(0, problem));
    CHECK(service.statistics().compiles == 2);
    CHECK(service.statistics().reloads == 2);
}

TEST_CASE_FIXTURE(Running, "reload: threads prepare and reload at once") {
    std::atomic<unsigned> failures{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    CHECK(prepare(16));
    std::atomic<unsigned> rounds[2] = {};
    for (std::atomic<unsigned>& its_rounds : rounds) {
        threads.emplace_back([&] {
            while (!stop) {
                failures += !service.prepare(0, small_problem(16));
                failures += !service.supports(0, small_problem(32));
                ++its_rounds;
            }
        });
    }
    for (int i = 0; i < 10; ++i) {
        // Between two reloads every thread begins and ends a round.
        for (const std::atomic<unsigned>& its_rounds : rounds) {
            for (const unsigned before = its_rounds; its_rounds < before + 2;) {
                std::this_thread::yield();
            }
        }
        edit(small_table({small_row(32, 1), small_row(16, 1), small_row(48 + 16 * i, 1)}));
        failures += !service.reload();
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(failures == 0);
    CHECK(service.statistics().reloads == 10);
    CHECK(service.statistics().compiles == 2);
}
