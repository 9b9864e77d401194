// The pool with a worker that misbehaves: each way is worker_failed, says what happened, and the next request
// is served.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <thread>

#include "failing_allocation.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/pool.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

using kiln::ErrorCode;
using kiln::Result;
using namespace kiln::compile;
using namespace std::chrono_literals;
using test::children;
using test::is_within;
using test::make_bad_compiler;
using test::make_compiler;

namespace {

kiln::Error ask(Compiler& compiler, const std::string& behaviour) {
    auto request = test::kernel_request(behaviour);
    const auto result = compiler.compile(request);
    REQUIRE(!result);  // this worker never compiles anything
    return result.error();
}

void check_served(Compiler& compiler) {
    const auto error = ask(compiler, "ordinary");
    CHECK_MESSAGE(error.code == ErrorCode::bad_input, error.message);
    CHECK(error.message == "served");
}

// Asks for `behaviour` between two ordinary requests.
void check_fails(Compiler& compiler, const std::string& behaviour, std::string_view what,
                 std::string_view last_words = "") {
    CAPTURE(behaviour);
    check_served(compiler);
    const auto descriptors = test::count_open_descriptors();
    const auto error = ask(compiler, behaviour);
    CHECK(error.code == ErrorCode::worker_failed);
    CHECK_MESSAGE(is_within(error.message, what), error.message);
    CHECK_MESSAGE(is_within(error.message, last_words), error.message);
    check_served(compiler);
    CHECK(children().size() == 1);
    CHECK(test::count_open_descriptors() == descriptors);
}

// The error's last words end with the number of a child that the worker had.
void check_grandchild_ended(const kiln::Error& error, const std::string& words) {
    const auto at = error.message.find(words);
    REQUIRE_MESSAGE(at != std::string::npos, error.message);
    const int grandchild = std::stoi(error.message.substr(at + words.size()));
    CHECK(test::eventually([&] {
        const auto stat = test::proc_text(grandchild, "stat");
        return stat.empty() || is_within(stat, ") Z ");
    }));
}

// Requests of the behaviour "until told", each on a thread of its own.
class Requests {
  public:
    Requests(std::size_t count, const std::function<void()>& ask_one) {
        for (std::size_t i = 0; i < count; ++i) {
            threads_.emplace_back(ask_one);
        }
        CHECK(test::eventually([&] { return asked().size() == count; }));
        folders_ = asked();
    }
    // The folders of the workers, all of which are at work.
    [[nodiscard]] const std::vector<std::filesystem::path>& folders() const { return folders_; }
    void finish() {
        for (const auto& folder : folders_) {
            std::ofstream(folder / "go");
        }
        for (auto& thread : threads_) {
            thread.join();
        }
    }

  private:
    static std::vector<std::filesystem::path> asked() {
        std::vector<std::filesystem::path> folders;
        for (const int child : children()) {
            std::error_code error;
            const auto folder =
                std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/cwd", error);
            if (!error && std::filesystem::exists(folder / "asked", error)) {
                folders.push_back(folder);
            }
        }
        return folders;
    }

    std::vector<std::thread> threads_;
    std::vector<std::filesystem::path> folders_;
};

}  // namespace

TEST_CASE("WorkerThatCrashesIsNamedWithItsSignalAndLastWords") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "crash", "SIGSEGV", "about to crash");
}

TEST_CASE("WorkerThatEndsIsNamedWithItsStatusAndLastWords") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "exit", "status 7", "about to give up");
}

TEST_CASE("WorkersThatDoNotAnswerAreEndedAtTheLimit") {
    const struct {
        const char* behaviour;
        const char* what;
        const char* last_words;
    } hangs[] = {{"hang", "did not answer within 2000 ms", "about to hang"},
                 {"slow half", "did not answer within 2000 ms", ""},
                 {"shorter than it says", "did not answer within 2000 ms", ""},
                 {"stopped", "did not answer within 2000 ms", ""},
                 {"flood", "did not answer within 2000 ms", "xxxx"},
                 {"deaf", "did not answer within 2000 ms", "not listening"},
                 {"closed", "closed its output", ""},
                 {"closed but alive", "closed its output and was ended", ""}};
    auto compiler = make_bad_compiler({.worker = {},
                                       .toolchain_prefix = {},
                                       .workers = static_cast<unsigned>(std::size(hangs)),
                                       .time_limit = 2000ms});
    check_served(*compiler);
    const auto descriptors = test::count_open_descriptors();
    // Beside each other, since each takes the whole limit.
    std::vector<std::thread> requests;
    for (const auto& one : hangs) {
        requests.emplace_back([&] {
            const auto error = ask(*compiler, one.behaviour);
            CHECK(error.code == ErrorCode::worker_failed);
            CHECK_MESSAGE(is_within(error.message, one.what), error.message);
            CHECK_MESSAGE(is_within(error.message, one.last_words), error.message);
        });
    }
    for (auto& request : requests) {
        request.join();
    }
    CHECK(children().empty());
    check_served(*compiler);
    CHECK(children().size() == 1);
    CHECK(test::count_open_descriptors() == descriptors);
}

TEST_CASE("WorkerThatWasStoppedWhileIdleIsEndedAtTheLimit") {
    auto compiler =
        make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 1000ms});
    check_served(*compiler);
    ::kill(children().at(0), SIGSTOP);
    CHECK(is_within(ask(*compiler, "ordinary").message, "did not answer within 1000 ms"));
    check_served(*compiler);
    CHECK(children().size() == 1);
}

TEST_CASE("LimitsThatNoClockReachesAreNone") {
    auto compiler = make_bad_compiler({.worker = {},
                                       .toolchain_prefix = {},
                                       .workers = 1,
                                       .time_limit = std::chrono::milliseconds::max(),
                                       .start_limit = std::chrono::milliseconds::max(),
                                       .idle_limit = std::chrono::milliseconds::max()});
    check_served(*compiler);
    const auto worker = children();
    check_served(*compiler);
    CHECK(children() == worker);
}

TEST_CASE("FailedCompileIsTheTemplatesWhereTheCompilerCanNotBeAsked") {
    // This worker answers the question whether the compiler can build anything with bad_input.
    auto compiler = make_bad_compiler();
    const auto error = ask(*compiler, "refused");
    CHECK(error.code == ErrorCode::compile_failed);
    CHECK(error.message == "the template's own fault");
}

TEST_CASE("WorkerThatSpeaksOfMemoryInPassingDidNotRunOutOfIt") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "misleading words", "was ended by SIGSEGV", "ran out of its registers");
    CHECK(!is_within(ask(*compiler, "misleading words").message, "ran out of its 0 MiB"));
}

TEST_CASE("WorkerThatWritesMuchToItsLogIsServedAllTheSame") {
    auto compiler = make_bad_compiler();
    CHECK(ask(*compiler, "flood before the answer").message == "served");
    check_served(*compiler);
}

TEST_CASE("WorkerThatLeavesItsSocketToAChildIsSeenToEnd") {
    auto compiler = make_bad_compiler();
    check_served(*compiler);
    const auto error = ask(*compiler, "child that holds the socket");
    CHECK_MESSAGE(is_within(error.message, "ended with status 7"), error.message);
    check_grandchild_ended(error, "leaving the child ");
    check_served(*compiler);
}

TEST_CASE("WorkerThatHangsTakesItsOwnChildrenAlong") {
    auto compiler =
        make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 1000ms});
    check_served(*compiler);
    const auto error = ask(*compiler, "grandchild");
    CHECK(error.code == ErrorCode::worker_failed);
    check_grandchild_ended(error, "about to hang with the child ");
}

TEST_CASE("WorkerThatTalksNonsenseIsReplaced") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "garbage", "not of the protocol");
    check_fails(*compiler, "huge", "not of the protocol");
    check_fails(*compiler, "other request", "another request");
    check_fails(*compiler, "two replies", "more than one reply");
    check_fails(*compiler, "longer than it says", "more than one reply");
    check_fails(*compiler, "fields beyond the body", "not as the protocol has it");
    check_fails(*compiler, "unknown kind", "unknown kind 127");
}

TEST_CASE("WorkerThatStopsInTheMiddleOfAReplyIsReplaced") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "half reply", "status 0");
    check_fails(*compiler, "half head", "status 0");
}

TEST_CASE("AnswersThatDoNotHoldAreTheWorkersFailure") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "other kind", "another kind of request");
    check_fails(*compiler, "no code object", "expected an ELF file");
}

TEST_CASE("WorkerThatSpeaksUnaskedIsNotAskedAgain") {
    auto compiler = make_bad_compiler();
    CHECK(ask(*compiler, "late word").message == "served");
    const int worker = children().at(0);
    CHECK(test::eventually(
        [&] { return std::filesystem::exists("/proc/" + std::to_string(worker) + "/cwd/said"); }));
    check_served(*compiler);
    CHECK(children().at(0) != worker);
}

TEST_CASE("WorkerThatEndsBeforeItHasReadRaisesNoSigpipe") {
    // More than any socket buffers, so that the host is still sending; SIGPIPE would end this program.
    ::signal(SIGPIPE, SIG_DFL);
    auto compiler = make_bad_compiler();
    auto request = test::kernel_request("vanish");
    request.source = std::string(32 << 20, ' ');
    const auto result = compiler->compile(request);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::worker_failed);
    check_served(*compiler);
}

TEST_CASE("HostThatIgnoresSigchldIsServedAllTheSame") {
    const auto before = ::signal(SIGCHLD, SIG_IGN);
    {
        auto compiler = make_bad_compiler();
        check_fails(*compiler, "crash", "ended", "about to crash");
        check_fails(*compiler, "garbage", "not of the protocol");
        check_grandchild_ended(ask(*compiler, "child that holds the socket"), "leaving the child ");
    }
    CHECK(children().empty());
    ::signal(SIGCHLD, before);
}

TEST_CASE("HostThatCollectsEveryChildIsServedAllTheSame") {
    std::atomic<bool> stop = false;
    std::thread collector([&] {
        while (!stop) {
            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
            }
            std::this_thread::sleep_for(1ms);
        }
    });
    {
        auto compiler = make_bad_compiler();
        check_fails(*compiler, "crash", "ended", "about to crash");
        check_fails(*compiler, "exit", "ended", "about to give up");
        check_grandchild_ended(ask(*compiler, "child that holds the socket"), "leaving the child ");
    }
    stop = true;
    collector.join();
    CHECK(children().empty());
}

TEST_CASE("RequestsOfSeveralThreadsRunAtTheSameTime") {
    auto compiler = make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 4});
    Requests requests(4, [&] { CHECK(ask(*compiler, "until told").message == "served"); });
    requests.finish();
    CHECK(children().size() == 4);
}

TEST_CASE("FailuresOfOneThreadDoNotDisturbAnother") {
    auto compiler = make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 3});
    std::vector<std::thread> threads;
    for (const char* behaviour : {"crash", "garbage", "half reply", "ordinary", "ordinary", "ordinary"}) {
        threads.emplace_back([&, behaviour] {
            for (int i = 0; i < 5; ++i) {
                const auto error = ask(*compiler, behaviour);
                const bool ordinary = std::string(behaviour) == "ordinary";
                CHECK(error.code == (ordinary ? ErrorCode::bad_input : ErrorCode::worker_failed));
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    check_served(*compiler);
}

namespace {

PoolConfig pool_of(unsigned workers) {
    auto toolchain = find_toolchain({}, Family::amdgpu);
    REQUIRE(toolchain);
    return {
        .worker = {.toolchain = *toolchain, .worker = KILN_BAD_WORKER, .start_limit = 60s, .time_limit = 60s},
        .workers = workers,
        .idle_limit = 60s};
}

Result<Reply> ask(Pool& pool, const std::string& behaviour) {
    return pool.exchange(
        [&](std::uint64_t sequence) { return encode_compile(sequence, test::kernel_request(behaviour)); },
        behaviour, "");
}

void check_served(Pool& pool) {
    const auto reply = ask(pool, "ordinary");
    REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().message));
    CHECK(reply->error.message == "served");
}

// False when the request needs fewer allocations than `passed`.
bool fail_in_request(Pool& pool, const std::string& behaviour, std::uint64_t passed) {
    const test::FailingAllocation failing(passed);
    try {
        static_cast<void>(ask(pool, behaviour));
    } catch (const std::bad_alloc&) {  // of which this is about what comes after
    }
    return failing.happened();
}

}  // namespace

TEST_CASE("PlaceOfARequestThatThrowsIsGivenBack") {
    Pool pool(pool_of(1));
    for (int round = 0; round < 2; ++round) {
        CHECK_THROWS_AS(static_cast<void>(pool.exchange(
                            [](std::uint64_t) -> std::string { throw std::bad_alloc(); }, "", "")),
                        std::bad_alloc);
        check_served(pool);
    }
}

TEST_CASE("WorkerWhoseRequestRanOutOfTheHostsMemoryIsNotAskedAgain") {
    Pool pool(pool_of(1));
    check_served(pool);
    std::uint64_t passed = 0;
    for (bool failed = true; failed; ++passed) {
        CAPTURE(passed);
        failed = fail_in_request(pool, "words, then a moment", passed);
        check_served(pool);
    }
    CHECK(passed > 10);
    CHECK(children().size() == 1);
}

TEST_CASE("StartOfAWorkerThatRunsOutOfTheHostsMemoryLeavesNothing") {
    Pool pool(pool_of(2));
    // Keeps the first place, so that each request here starts a worker, and nothing but that.
    Requests other(1, [&] { CHECK(ask(pool, "until told")); });
    const auto descriptors = test::count_open_descriptors();
    std::uint64_t passed = 0;
    while (fail_in_request(pool, "ordinary", passed)) {
        CAPTURE(passed);
        CHECK(children().size() == 1);
        CHECK(test::count_open_descriptors() == descriptors);
        ++passed;
    }
    CHECK(passed > 50);
    other.finish();
    pool.stop();  // reaches no worker that is gone
    CHECK(children().empty());
}

namespace {

// A copy of the misbehaving worker, and how it starts.
struct Starting {
    test::TemporaryFolder folder;
    std::filesystem::path worker = folder.path() / "worker";

    Starting() { std::filesystem::copy_file(KILN_BAD_WORKER, worker); }
    void as(const char* how) const { std::ofstream(worker.string() + ".start") << how; }
};

}  // namespace

TEST_CASE_FIXTURE(Starting, "WorkerThatDoesNotStartAsOneIsAnEnvironmentErrorThatNamesIt") {
    const auto check = [&](Compiler& compiler, const char* how, std::string_view what) {
        CAPTURE(how);
        as(how);
        const auto error = ask(compiler, "ordinary");
        CHECK(error.code == ErrorCode::environment);
        CHECK_MESSAGE(is_within(error.message, what), error.message);
        CHECK_MESSAGE(is_within(error.message, worker.string()), error.message);
        CHECK(children().empty());
    };
    auto compiler = make_compiler({.worker = worker, .toolchain_prefix = {}});
    check(*compiler, "garbage", "not of the protocol");
    check(*compiler, "exit", "ended with status 3");
    check(*compiler, "other version", "is of kiln 99.1.2: expected the kiln-compile of kiln ");
    std::filesystem::remove(worker.string() + ".start");
    check_served(*compiler);
    auto hasty = make_compiler(
        {.worker = worker, .toolchain_prefix = {}, .workers = 1, .time_limit = 60s, .start_limit = 500ms});
    compiler.reset();
    check(*hasty, "silent", "did not answer within 500 ms");
}

TEST_CASE_FIXTURE(Starting, "StopEndsTheStartOfAWorker") {
    as("silent");
    auto compiler = make_compiler({.worker = worker, .toolchain_prefix = {}});
    std::thread request([&] {
        const auto error = ask(*compiler, "ordinary");
        CHECK(error.code == ErrorCode::worker_failed);
        CHECK_MESSAGE(error.message == "ordinary: stopped", error.message);
    });
    CHECK(test::eventually([] { return !children().empty(); }));
    compiler->stop();
    request.join();
    CHECK(children().empty());
}

TEST_CASE("IdleWorkersEndAfterAWhile") {
    const auto descriptors = test::count_open_descriptors();
    auto compiler = make_bad_compiler(
        {.worker = {}, .toolchain_prefix = {}, .workers = 2, .time_limit = 60s, .idle_limit = 300ms});
    for (int round = 0; round < 2; ++round) {
        Requests requests(2, [&] { CHECK(ask(*compiler, "until told").message == "served"); });
        requests.finish();
        CHECK(test::eventually([] { return children().empty(); }));
        for (const auto& folder : requests.folders()) {
            CHECK(test::eventually([&] { return !std::filesystem::exists(folder); }));
        }
        // Nor a thread that waits for nothing.
        CHECK(test::eventually([] { return test::count_threads() == 1; }));
        CHECK(test::count_open_descriptors() == descriptors);
    }
}

TEST_CASE("IdleWorkerThatIsUsedInTimeGoesOn") {
    constexpr auto kLimit = 1000ms;
    auto compiler = make_bad_compiler(
        {.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 60s, .idle_limit = kLimit});
    bool in_time = false;  // a machine that stalls shows nothing: once more
    for (int attempt = 0; attempt < 10 && !in_time; ++attempt) {
        check_served(*compiler);
        const auto first = children();
        in_time = true;
        const auto start = std::chrono::steady_clock::now();
        for (auto used = start; used - start < 3 * kLimit / 2;) {
            std::this_thread::sleep_for(kLimit / 20);
            check_served(*compiler);
            const auto now = std::chrono::steady_clock::now();
            in_time = in_time && now - used < kLimit / 2;
            used = now;
        }
        CHECK((!in_time || children() == first));
    }
    CHECK(in_time);
}

TEST_CASE("CompilerMayGoWhileWorkersAreIdle") {
    auto compiler = make_bad_compiler();
    check_served(*compiler);
    CHECK(test::count_threads() == 2);
    compiler.reset();
    CHECK(children().empty());
    CHECK(test::eventually([] { return test::count_threads() == 1; }));
}

TEST_CASE("NoIdleWorkerIsKeptWhereTheLimitIsZero") {
    auto compiler = make_bad_compiler(
        {.worker = {}, .toolchain_prefix = {}, .workers = 2, .time_limit = 60s, .idle_limit = 0ms});
    check_served(*compiler);
    CHECK(children().empty());
    check_served(*compiler);
}

TEST_CASE("StopEndsRequestsInFlightAndThoseThatWait") {
    auto compiler = make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1});
    check_served(*compiler);
    const auto folder = std::filesystem::read_symlink("/proc/" + std::to_string(children().at(0)) + "/cwd");
    std::atomic<pid_t> ids[3] = {};
    std::vector<std::thread> threads;
    for (auto& id : ids) {
        threads.emplace_back([&] {
            id = ::gettid();
            const auto error = ask(*compiler, "until told");
            CHECK(error.code == ErrorCode::worker_failed);
            CHECK_MESSAGE(error.message == "until told: stopped", error.message);
        });
    }
    // One is in flight, and the others sleep: they wait for the worker.
    CHECK(test::eventually([&] { return std::filesystem::exists(folder / "asked"); }));
    CHECK(test::eventually([&] {
        return std::all_of(std::begin(ids), std::end(ids), [](pid_t id) {
            return id != 0 && is_within(test::proc_text(id, "stat"), ") S ");
        });
    }));
    compiler->stop();
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(children().empty());
    CHECK(ask(*compiler, "ordinary").message == "ordinary: stopped");
    compiler->stop();
}
