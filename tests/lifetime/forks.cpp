// What a child that was forked from an engine meets. It may open a service of its own; the parent's handles
// answer with a clear error and can be released; it ends like any process, and the parent notices nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/lifetime/engine.hpp"
#include "tests/lifetime/programs.hpp"

using namespace kiln::test;

namespace {

void require_forked(kiln_status status, const char* call) {
    ENGINE_REQUIRE(status == -KILN_ERROR_ENVIRONMENT, "%s answered %d: %s", call, static_cast<int>(status),
                   kiln_status_text(status));
}

void require_forked(kiln_error* error, kiln_status status, const char* call) {
    require_forked(status, call);
    ENGINE_REQUIRE(std::strstr(kiln_error_get_message(error), "fork") != nullptr, "%s: %s", call,
                   kiln_error_get_message(error));
    kiln_error_free(error);
}

// The parent's handles, in the child.
void use_parents(kiln_service* service, kiln_plan* plan, const kiln_linear_args& args) {
    kiln_error* error = nullptr;
    kiln_linear problem = KILN_LINEAR_INIT;
    problem.n = 16;
    problem.k = 128;
    std::int32_t count = 0;
    kiln_plan* another = nullptr;
    kiln_device_info info{};
    info.struct_size = sizeof info;
    kiln_statistics statistics = KILN_STATISTICS_INIT;
    require_forked(error, kiln_linear_supports(service, 0, &problem, &error), "kiln_linear_supports");
    require_forked(error, kiln_linear_prepare(service, 0, &problem, nullptr, &another, &error),
                   "kiln_linear_prepare");
    require_forked(error, kiln_device_count(service, &count, &error), "kiln_device_count");
    require_forked(error, kiln_device_get_info(service, 0, &info, &error), "kiln_device_get_info");
    require_forked(error, kiln_service_reload(service, &error), "kiln_service_reload");
    require_forked(kiln_service_statistics(service, &statistics), "kiln_service_statistics");
    require_forked(kiln_plan_ready(plan, 1), "kiln_plan_ready");
    require_forked(error, kiln_plan_wait(plan, 0, &error), "kiln_plan_wait");
    ENGINE_REQUIRE(kiln_plan_device(plan) == -1);
    ENGINE_REQUIRE(kiln_plan_max_m(plan) == 0);
    ENGINE_REQUIRE(kiln_plan_kernel_name(plan, 1) == nullptr);
    require_forked(kiln_linear_launch(plan, nullptr, 1, &args), "kiln_linear_launch");
    require_forked(kiln_linear_launch(plan, nullptr, 0, nullptr), "kiln_linear_launch of nothing");
    require_forked(kiln_plan_ready(plan, 1), "kiln_plan_ready");
    require_forked(error, kiln_plan_wait(plan, 0, &error), "kiln_plan_wait");
    ENGINE_REQUIRE(kiln_plan_device(plan) == -1);
    ENGINE_REQUIRE(kiln_plan_max_m(plan) == 0);
    ENGINE_REQUIRE(kiln_plan_kernel_name(plan, 1) == nullptr);
    kiln_plan_release(kiln_plan_retain(plan));
}

// The child's own.
void use_own() {
    const auto service = open_service();
    ENGINE_REQUIRE(service.supports(KILN_NO_DEVICE, kSmall));
    std::int32_t count = 0;
    kiln::Failure why;
    const auto status = service.device_count(count, &why);
    ENGINE_REQUIRE(status.error_code() == KILN_ERROR_ENVIRONMENT);
    ENGINE_REQUIRE(why.message.find("fork") != std::string::npos, "%s", why.message.c_str());
}

// glibc makes its allocator ready for a fork; the sanitizers' run-time does so from LLVM 18 on. With an
// older one, a child that was forked while another thread was inside the allocator finds it locked for ever,
// whatever kiln does. There the fork waits until every thread sleeps outside of it; everywhere else nothing
// waits.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kForkQuietly = true;
#else
constexpr bool kForkQuietly = false;
#endif

// The threads of this program pass through between two rounds.
class Gate {
  public:
    void pass() {
        if (closed_) {
            ++parked_;
            closed_.wait(true);
            --parked_;
        }
    }
    // Returns once `threads` are parked and all others, kiln's and the driver's, sleep with nothing left to
    // do.
    void close(int threads) {
        closed_ = true;
        while (parked_ != threads) {
            std::this_thread::yield();
        }
        for (std::string before, now; now.empty() || now != before;) {
            before = std::exchange(now, look_at_other_threads());
        }
    }
    void open() {
        closed_ = false;
        closed_.notify_all();
        while (parked_ != 0) {
            std::this_thread::yield();
        }
    }

  private:
    // What does not change while no other thread runs; empty when one does.
    static std::string look_at_other_threads() {
        std::string seen = "threads:";
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            if (task.path().filename() == std::to_string(gettid())) {
                continue;
            }
            std::ifstream status(task.path() / "status");
            for (std::string line; std::getline(status, line);) {
                if (line.starts_with("State:") && line.find('S', sizeof "State:") == std::string::npos) {
                    return {};
                }
                if (line.starts_with("Pid:") || line.find("ctxt_switches:") != std::string::npos) {
                    seen += line;
                }
            }
        }
        return seen;
    }
    std::atomic<bool> closed_{false};
    std::atomic<int> parked_{0};
};

void wait_for(pid_t child) {
    int status = 0;
    ENGINE_REQUIRE(waitpid(child, &status, 0) == child);
    ENGINE_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

}  // namespace

int kiln::test::run_forks(char** argv) {
    const std::string how = argv[1];
    if (how == "before") {
        // Nothing was bound yet: the child is an engine like any other.
        const auto before = open_service();
        const pid_t child = fork();
        if (child == 0) {
            const auto plan = prepare(open_service());
            ENGINE_REQUIRE(plan.launch(nullptr, 1, make_arrays(0)));
            engine::synchronize();
            return 0;
        }
        wait_for(child);
        ENGINE_REQUIRE(prepare(before).launch(nullptr, 1, make_arrays(0)));
        return 0;
    }
    kiln_error* error = nullptr;
    static kiln_service* service = nullptr;  // what a child leaves behind is in reach, not leaked
    static kiln_plan* plan = nullptr;
    kiln_linear problem = KILN_LINEAR_INIT;
    problem.n = 16;
    problem.k = 128;
    ENGINE_REQUIRE(kiln_service_open(nullptr, &service, &error) == KILN_OK, "%s",
                   kiln_error_get_message(error));
    ENGINE_REQUIRE(kiln_linear_prepare(service, 0, &problem, nullptr, &plan, &error) == KILN_OK, "%s",
                   kiln_error_get_message(error));
    const auto arrays = make_arrays(0);
    const kiln_linear_args args{arrays.x, arrays.ldx, arrays.w, arrays.w_scale, arrays.out};
    ENGINE_REQUIRE(kiln_linear_launch(plan, nullptr, 1, &args) == KILN_OK);

    // Forked in the middle of launches and of a service that comes and goes.
    std::atomic<bool> stop{false};
    std::atomic<int> rounds{0};
    Gate gate;
    std::thread launching([&] {
        engine::set_device(0);
        while (!stop) {
            gate.pass();
            ENGINE_REQUIRE(kiln_linear_launch(plan, nullptr, 1 + rounds % 16, &args) == KILN_OK);
            ENGINE_REQUIRE(engine::synchronize_stream(nullptr) == 0);
            ++rounds;
        }
    });
    // And of compiles, which say so in the log.
    std::thread compiling([&] {
        const auto own = open_service();
        for (std::int64_t n = 32; !stop; n = n < 1024 ? n + 16 : 32) {
            gate.pass();
            const auto wanted = own.prepare(0, kiln::Linear{.n = n, .k = 128}, kiln::PrepareMode::background);
            static_cast<void>(kForkQuietly ? wanted.wait() : wanted.wait(std::chrono::milliseconds(50)));
        }
    });
    for (int i = 0; i < 5; ++i) {
        if (kForkQuietly) {
            gate.close(2);
        }
        const pid_t child = fork();
        if (child == 0) {
            use_parents(service, plan, args);
            use_own();
            kiln_plan_release(plan);
            kiln_service_release(service);
            if (how == "_exit") {
                _exit(0);
            }
            std::exit(0);
        }
        gate.open();
        wait_for(child);
        const int before = rounds;
        while (rounds == before) {
            std::this_thread::yield();
        }
    }
    stop = true;
    launching.join();
    compiling.join();
    engine::synchronize();
    ENGINE_REQUIRE(kiln_linear_launch(plan, nullptr, 16, &args) == KILN_OK);
    ENGINE_REQUIRE(engine::synchronize() == 0);
    kiln_plan_release(plan);
    kiln_service_release(service);
    return 0;
}
