// The pool with a worker that misbehaves: each way is worker_failed, says what happened, and the next request
// is served.

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <fstream>
#include <new>
#include <thread>

#include "runtime/compile/compiler.hpp"
#include "runtime/compile/pool.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

using kiln::ErrorCode;
using namespace kiln::compile;
using namespace std::chrono_literals;
using test::children;
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

bool is_within(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
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

}  // namespace

TEST_CASE("WorkerThatCrashesIsNamedWithItsSignalAndLastWords") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "crash", "SIGSEGV", "about to crash");
}

TEST_CASE("WorkerThatEndsIsNamedWithItsStatusAndLastWords") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "exit", "status 7", "about to give up");
}

TEST_CASE("WorkerThatHangsIsEndedAtTheLimit") {
    auto compiler =
        make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 500ms});
    const auto start = std::chrono::steady_clock::now();
    check_fails(*compiler, "hang", "did not answer within 500 ms", "about to hang");
    CHECK(std::chrono::steady_clock::now() - start < 8s);
    for (const char* behaviour : {"slow half", "shorter than it says", "stopped"}) {
        check_fails(*compiler, behaviour, "did not answer within 500 ms");
    }
    check_fails(*compiler, "flood", "did not answer within 500 ms", "xxxx");
    check_fails(*compiler, "deaf", "did not answer within 500 ms", "not listening");
}

TEST_CASE("WorkerThatWasStoppedWhileIdleIsEndedAtTheLimit") {
    auto compiler =
        make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 500ms});
    check_served(*compiler);
    ::kill(children().at(0), SIGSTOP);
    CHECK(is_within(ask(*compiler, "ordinary").message, "did not answer within 500 ms"));
    check_served(*compiler);
    CHECK(children().size() == 1);
}

TEST_CASE("WorkerThatWritesMuchToItsLogIsServedAllTheSame") {
    auto compiler = make_bad_compiler();
    CHECK(ask(*compiler, "flood before the answer").message == "served");
    check_served(*compiler);
}

TEST_CASE("WorkerThatLeavesItsSocketToAChildIsSeenToEnd") {
    auto compiler = make_bad_compiler();
    const auto start = std::chrono::steady_clock::now();
    check_fails(*compiler, "child that holds the socket", "status 7", "leaving a child behind");
    CHECK(std::chrono::steady_clock::now() - start < 20s);  // far from the limit of two minutes
}

TEST_CASE("WorkerThatHangsTakesItsOwnChildrenAlong") {
    auto compiler =
        make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1, .time_limit = 1000ms});
    check_served(*compiler);
    const int worker = children().at(0);
    std::thread request([&] { CHECK(ask(*compiler, "grandchild").code == ErrorCode::worker_failed); });
    std::string grandchild;
    CHECK(test::eventually([&] {
        const auto task = "task/" + std::to_string(worker) + "/children";
        grandchild = test::proc_text(worker, task);
        return !grandchild.empty();
    }));
    request.join();
    CHECK(test::eventually([&] {
        const auto stat = test::proc_text(std::stoi(grandchild), "stat");
        return stat.empty() || is_within(stat, ") Z ");
    }));
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
    check_fails(*compiler, "closed", "closed its output");
}

TEST_CASE("AnswersThatDoNotHoldAreTheWorkersFailure") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "other kind", "another kind of request");
    check_fails(*compiler, "no code object", "expected an ELF file");
}

TEST_CASE("WorkerThatSpeaksUnaskedIsNotAskedAgain") {
    auto compiler = make_bad_compiler();
    CHECK(ask(*compiler, "late word").message == "served");
    std::this_thread::sleep_for(300ms);
    check_served(*compiler);
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
    }
    stop = true;
    collector.join();
    CHECK(children().empty());
}

TEST_CASE("RequestsOfSeveralThreadsRunAtTheSameTime") {
    auto compiler = make_bad_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 4});
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { CHECK(ask(*compiler, "second").message == "served"); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(std::chrono::steady_clock::now() - start < 3500ms);
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

TEST_CASE("PlaceOfARequestThatThrowsIsGivenBack") {
    auto toolchain = find_toolchain({});
    REQUIRE(toolchain);
    Pool pool({.worker = {.toolchain = *toolchain, .worker = KILN_BAD_WORKER, .time_limit = 10s},
               .workers = 1,
               .idle_limit = 10s});
    const auto encode = [](std::uint64_t sequence) {
        return encode_compile(sequence, test::kernel_request("ordinary"));
    };
    for (int round = 0; round < 2; ++round) {
        CHECK_THROWS_AS(static_cast<void>(pool.exchange(
                            [](std::uint64_t) -> std::string { throw std::bad_alloc(); }, "", "")),
                        std::bad_alloc);
        const auto reply = pool.exchange(encode, "ordinary", "");
        REQUIRE(reply);
        CHECK(reply->error.message == "served");
    }
}

TEST_CASE("WorkerThatClosesItsDescriptorsButLivesIsReplaced") {
    auto compiler = make_bad_compiler();
    check_fails(*compiler, "closed but alive", "closed its output and was ended");
}

TEST_CASE("WorkerThatDoesNotStartAsOneIsAnEnvironmentErrorThatNamesIt") {
    const test::TemporaryFolder folder;
    const auto worker = folder.path() / "worker";
    std::filesystem::copy_file(KILN_BAD_WORKER, worker);
    auto compiler =
        make_compiler({.worker = worker, .toolchain_prefix = {}, .workers = 1, .time_limit = 1000ms});
    const struct {
        const char* how;
        const char* what;
    } starts[] = {{"silent", "did not answer within 1000 ms"},
                  {"garbage", "not of the protocol"},
                  {"exit", "ended with status 3"},
                  {"other version", "is of kiln 99.1.2: expected the kiln-compile of kiln "}};
    for (const auto& start : starts) {
        CAPTURE(start.how);
        std::ofstream(worker.string() + ".start") << start.how;
        const auto error = ask(*compiler, "ordinary");
        CHECK(error.code == ErrorCode::environment);
        CHECK_MESSAGE(is_within(error.message, start.what), error.message);
        CHECK_MESSAGE(is_within(error.message, worker.string()), error.message);
        CHECK(children().empty());
    }
    std::filesystem::remove(worker.string() + ".start");
    check_served(*compiler);
}

TEST_CASE("IdleWorkersEndAfterAWhile") {
    const auto descriptors = test::count_open_descriptors();
    auto compiler = make_bad_compiler(
        {.worker = {}, .toolchain_prefix = {}, .workers = 2, .time_limit = 60s, .idle_limit = 300ms});
    for (int round = 0; round < 2; ++round) {
        std::thread other([&] { CHECK(ask(*compiler, "moment").message == "served"); });
        CHECK(ask(*compiler, "moment").message == "served");
        other.join();
        const auto folder =
            std::filesystem::read_symlink("/proc/" + std::to_string(children().at(0)) + "/cwd");
        CHECK(test::eventually([] { return children().empty(); }));
        CHECK(test::eventually([&] { return !std::filesystem::exists(folder); }));
        // Nor a thread that waits for nothing.
        CHECK(test::eventually([] { return test::count_threads() == 1; }));
        CHECK(test::count_open_descriptors() == descriptors);
    }
    SUBCASE("one that is used goes on") {
        check_served(*compiler);
        const auto first = children();
        for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(20ms);  // shorter than the limit, longer than it in all
            check_served(*compiler);
        }
        CHECK(children() == first);
    }
    SUBCASE("the compiler may go while some are idle") {
        check_served(*compiler);
        compiler.reset();
        CHECK(children().empty());
        CHECK(test::count_threads() == 1);
    }
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
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            const auto error = ask(*compiler, "hang");
            CHECK(error.code == ErrorCode::worker_failed);
            CHECK_MESSAGE(error.message == "hang: stopped", error.message);
        });
    }
    CHECK(test::eventually([] { return test::count_threads() >= 4; }));
    compiler->stop();
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(std::chrono::steady_clock::now() - start < 30s);
    CHECK(children().empty());
    CHECK(ask(*compiler, "ordinary").message == "ordinary: stopped");
    compiler->stop();
}
