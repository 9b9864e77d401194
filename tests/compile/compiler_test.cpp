// The compiler with the real worker and the real hipRTC.

#include "runtime/compile/compiler.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/file.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/listing.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using kiln::ErrorCode;
using namespace kiln::compile;
using test::check_that_options_reach;
using test::children;
using test::compile_badly;
using test::compile_well;
using test::eventually;
using test::is_within;
using test::make_compiler;

TEST_CASE("CompilerBuildsAKernelWithItsListing") {
    auto compiler = make_compiler();
    CHECK(children().empty());  // nothing starts before the first request
    const auto result = compile_well(*compiler, test::kernel_request());
    const auto object = read_code_object(result.code_object);
    REQUIRE(object);
    CHECK(object->target == "gfx950");
    CHECK(result.log.empty());
    CHECK(result.seconds > 0);
    const auto listing = parse_listing(result.listing);
    REQUIRE(listing);
    CHECK(listing->text_digest == kiln::sha256(object->text));
    CHECK(children().size() == 1);
}

TEST_CASE("CompilerBuildsForATargetWithAPinnedFeature") {
    auto compiler = make_compiler();
    auto request = test::kernel_request();
    request.target = "gfx950:xnack-";
    const auto object = read_code_object(compile_well(*compiler, request).code_object);
    REQUIRE(object);
    CHECK(object->target == "gfx950:xnack-");
}

TEST_CASE("CompilerGivesTheSameBytesInEveryWorker") {
    auto first = make_compiler();
    auto second = make_compiler();
    const auto a = compile_well(*first, test::kernel_request());
    const auto b = compile_well(*second, test::kernel_request());
    CHECK(a.code_object == b.code_object);
    CHECK(a.listing == b.listing);
}

TEST_CASE("DisassemblyOfACodeObjectIsTheListingOfItsCompile") {
    auto compiler = make_compiler();
    const auto result = compile_well(*compiler, test::kernel_request());
    auto other = make_compiler();
    const auto listing = other->disassemble(result.code_object);
    REQUIRE_MESSAGE(listing, (listing ? "" : listing.error().message));
    CHECK(*listing == result.listing);
}

TEST_CASE("DisassemblyListsWhatIsNoInstructionAsWords") {
    auto compiler = make_compiler();
    auto bytes = compile_well(*compiler, test::kernel_request()).code_object;
    const auto text = read_code_object(bytes)->text;
    // The last words of .text are padding; 0xffffffff is no encoding of any instruction.
    auto* const last = const_cast<std::byte*>(text.data() + text.size() - 4);
    std::fill_n(last, 4, std::byte{0xff});
    const auto listing = compiler->disassemble(bytes);
    REQUIRE_MESSAGE(listing, (listing ? "" : listing.error().message));
    CHECK(is_within(*listing, " ffffffff .word\n"));
}

TEST_CASE("DisassemblyOfBytesThatAreNoCodeObjectIsBadInput") {
    auto compiler = make_compiler();
    const auto listing = compiler->disassemble(kiln::as_bytes("nonsense"));
    REQUIRE(!listing);
    CHECK(listing.error().code == ErrorCode::bad_input);
    CHECK(children().empty());
}

TEST_CASE("DiagnosticsNameTheTemplateAndTheLine") {
    auto compiler = make_compiler();
    auto request = test::kernel_request("linear/broken.gfx950.hip");
    request.source += "\nint broken = undeclared_thing;\n";
    const auto error = compile_badly(*compiler, request);
    CHECK(error.code == ErrorCode::compile_failed);
    CHECK_MESSAGE(error.message.starts_with("linear/broken.gfx950.hip:11:14: error: "), error.message);
    CHECK_MESSAGE(!is_within(error.message, "comgr-"), error.message);
}

TEST_CASE("DiagnosticsNameTheHeaderAndTheLine") {
    auto compiler = make_compiler();
    auto request = test::kernel_request();
    request.headers[0].text += "#warning look here\n";
    const auto result = compile_well(*compiler, request);
    CHECK_MESSAGE(is_within(result.log, "\ndevice/scale.h:3:2: warning: look here"), result.log);
    CHECK_MESSAGE(!is_within(result.log, "comgr-"), result.log);
}

TEST_CASE("OptionsReachTheCompiler") {
    auto compiler = make_compiler();
    const auto request = test::kernel_request();
    check_that_options_reach(*compiler, request);
}

TEST_CASE("CompilerThatCanNotBuildForATargetIsRefusedByName") {
    auto compiler = make_compiler();
    auto request = test::kernel_request();
    request.target = "gfx12345";
    const auto error = compile_badly(*compiler, request);
    CHECK(error.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(error.message, "libhiprtc.so."), error.message);
    CHECK_MESSAGE(is_within(error.message, "gfx12345"), error.message);
    CHECK(compiler->probe("gfx950"));
    CHECK(compiler->probe("gfx12345").error().code == ErrorCode::compile_failed);
}

TEST_CASE("RequestsThatCanNotBeMeantReachNoWorker") {
    auto compiler = make_compiler();
    const auto with = [](auto change) {
        auto request = test::kernel_request();
        change(request);
        return request;
    };
    const std::vector<CompileRequest> requests{
        with([](auto& r) { r.name = ""; }),
        with([](auto& r) { r.name = "/tmp/kernel.hip"; }),
        with([](auto& r) { r.name = "../kernel.hip"; }),
        with([](auto& r) { r.source = ""; }),
        with([](auto& r) { r.source += '\0'; }),
        with([](auto& r) { r.headers[0].name = "a/../../b.h"; }),
        with([](auto& r) { r.headers[0].text += '\0'; }),
        with([](auto& r) { r.target = ""; }),
        with([](auto& r) { r.target = "gfx950 --evil"; }),
        with([](auto& r) { r.options.push_back(""); }),
        with([](auto& r) { r.options.push_back("--offload-arch=gfx942"); }),
        with([](auto& r) { r.options.push_back("--gpu-architecture=gfx942"); }),
        with([](auto& r) { r.options.push_back("-arch=sm_80"); }),
    };
    for (const auto& request : requests) {
        CHECK(compile_badly(*compiler, request).code == ErrorCode::invalid_argument);
    }
    CHECK(children().empty());
}

TEST_CASE("FourThreadsCompileInFourWorkers") {
    auto compiler = make_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 4});
    std::barrier start(4);
    std::vector<std::string> failures(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            auto request = test::kernel_request("group/kernel" + std::to_string(i) + ".hip");
            start.arrive_and_wait();
            const auto result = compiler->compile(request);
            failures[i] = result ? "" : result.error().message;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(failures == std::vector<std::string>(4));
    CHECK(children().size() == 4);
    compile_well(*compiler, test::kernel_request());
    CHECK(children().size() == 4);  // an idle worker was used
}

TEST_CASE("NoMoreWorkersThanAllowedAreStarted") {
    auto compiler = make_compiler({.worker = {}, .toolchain_prefix = {}, .workers = 1});
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] { CHECK(compiler->compile(test::kernel_request())); });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(children().size() == 1);
}

TEST_CASE("WorkerAndItsFolderAreGoneWithTheCompiler") {
    const auto descriptors = test::count_open_descriptors();
    fs::path folder;
    int worker = 0;
    {
        auto compiler = make_compiler();
        compile_well(*compiler, test::kernel_request());
        REQUIRE(children().size() == 1);
        worker = children()[0];
        folder = fs::read_symlink("/proc/" + std::to_string(worker) + "/cwd");
        CHECK(fs::exists(folder));
        CHECK(folder != fs::current_path());
        CHECK(fs::is_empty(folder));  // hipRTC left nothing behind
    }
    CHECK(children().empty());
    CHECK(!fs::exists(folder));
    CHECK(test::count_open_descriptors() == descriptors);
}

TEST_CASE("WorkerHasOnlyItsStatedEnvironmentAndDescriptors") {
    const test::TemporaryFolder folder;
    const test::ScopedVariable preload("LD_PRELOAD", "/nonexistent/poison.so");
    const test::ScopedVariable library_path("LD_LIBRARY_PATH", folder.path().c_str());
    const test::ScopedVariable append("HIPRTC_COMPILE_OPTIONS_APPEND", "-DPOISON");
    const test::ScopedVariable driver("AMD_COMGR_DRIVER_OPTIONS_APPEND", "-DPOISON");
    const test::ScopedVariable saved("AMD_COMGR_SAVE_TEMPS", "1");
    // Inheritable, unlike anything of ours.
    const kiln::UniqueFd leaked(::open((folder.path() / "secret").c_str(), O_RDWR | O_CREAT, 0600));
    REQUIRE(leaked.valid());

    auto compiler = make_compiler();
    auto request = test::kernel_request();
    request.source = "#ifdef POISON\n#error poisoned\n#endif\n" + request.source;
    compile_well(*compiler, request);
    REQUIRE(children().size() == 1);
    const std::string process = "/proc/" + std::to_string(children()[0]);

    std::vector<std::string> names;
    std::string environment = test::proc_text(children()[0], "environ");
    for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
        names.push_back(environment.substr(at, environment.find('=', at) - at));
    }
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"AMD_COMGR_CACHE", "CLANG_NO_DEFAULT_CONFIG",
                                            "CUDA_CACHE_DISABLE", "HOME", "LC_ALL", "PATH", "TMPDIR"});
    for (const auto& entry : fs::directory_iterator(process + "/fd")) {
        CHECK(fs::read_symlink(entry.path()) != folder.path() / "secret");
    }
}

TEST_CASE("LoadedLibrariesAreThoseOfTheIdentity") {
    auto compiler = make_compiler();
    const auto before = compiler->identity("gfx950");
    REQUIRE_MESSAGE(before, (before ? "" : before.error().message));
    const auto result = compile_well(*compiler, test::kernel_request());
    int compilers = 0;
    for (const auto& path : result.loaded) {
        const std::string name = fs::path(path).filename().string();
        if (name.starts_with("libhiprtc") || name.starts_with("libamd_comgr") ||
            name.starts_with("libLLVM")) {
            CHECK_MESSAGE(is_within(before->document, "\"name\":\"" + name + "\""), name);
            ++compilers;
        }
        CHECK_MESSAGE(!name.starts_with("libamdhip64"), name);  // a compile needs no HIP runtime
    }
    CHECK(compilers >= 2);
    CHECK(compiler->identity("gfx950")->document == before->document);
}

TEST_CASE("WorkerThatWasKilledWhileIdleIsReplaced") {
    auto compiler = make_compiler();
    compile_well(*compiler, test::kernel_request());
    const auto first = children();
    REQUIRE(first.size() == 1);
    ::kill(first[0], SIGKILL);
    siginfo_t ending{};  // known once all its threads are gone, and its socket with them
    REQUIRE(::waitid(P_PID, static_cast<id_t>(first[0]), &ending, WEXITED | WNOWAIT) == 0);
    compile_well(*compiler, test::kernel_request());
    REQUIRE(children().size() == 1);
    CHECK(children()[0] != first[0]);
}

TEST_CASE("ForkedProcessMustMakeItsOwnCompiler") {
    auto compiler = make_compiler();
    compile_well(*compiler, test::kernel_request());
    const pid_t child = ::fork();
    if (child == 0) {
        const auto result = compiler->compile(test::kernel_request());
        const auto probed = compiler->probe(test::kernel_request().target);  // which the parent has built for
        const bool refused = !result && result.error().code == ErrorCode::environment && !probed &&
                             probed.error().code == ErrorCode::environment;
        compiler.reset();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    // The fork's end took neither the worker nor its folder away.
    compile_well(*compiler, test::kernel_request());
    CHECK(children().size() == 1);
}

TEST_CASE("WorkerEndsWithAHostThatIsKilled") {
    // A host that dies by SIGKILL runs no destructor: idle, and in the middle of a compile.
    for (const bool busy : {false, true}) {
        CAPTURE(busy);
        int report[2];
        REQUIRE(::pipe2(report, O_CLOEXEC) == 0);
        const pid_t host = ::fork();
        if (host == 0) {
            auto compiler = Compiler::create({});
            if (!compiler || !(*compiler)->compile(test::kernel_request())) {
                ::_exit(1);
            }
            const int worker = children().at(0);
            const auto folder = fs::read_symlink("/proc/" + std::to_string(worker) + "/cwd").string();
            const std::string line = std::to_string(worker) + " " + folder;
            [[maybe_unused]] const auto written = ::write(report[1], line.data(), line.size());
            auto request = test::kernel_request();
            request.source =  // minutes of constant evaluation
                "constexpr int count(int n) { return n < 2 ? n : count(n - 1) + count(n - 2); }\n"
                "constexpr int forever = count(60);\n" +
                request.source;
            request.options.push_back("-fconstexpr-steps=2147483647");
            while (busy) {
                [[maybe_unused]] const auto never = (*compiler)->compile(request);
            }
            while (true) {
                ::pause();
            }
        }
        char line[512] = {};
        REQUIRE(::read(report[0], line, sizeof line - 1) > 0);
        ::close(report[0]);
        ::close(report[1]);
        const std::string text(line);
        const int worker = std::stoi(text);
        const std::string folder = text.substr(text.find(' ') + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(busy ? 300 : 0));
        CHECK(test::proc_text(worker, "stat") != "");
        ::kill(host, SIGKILL);
        ::waitpid(host, nullptr, 0);
        CHECK(eventually([&] {
            const auto stat = test::proc_text(worker, "stat");
            return stat.empty() || stat.find(" Z ") != std::string::npos;
        }));
        CHECK(eventually([&] { return !fs::exists(folder); }));
    }
}

TEST_CASE("WorkerThatGoesMissingLaterIsNamedAndFoundAgain") {
    const test::TemporaryFolder folder;
    const fs::path worker = folder.path() / "kiln-compile";
    fs::copy_file(std::getenv("KILN_WORKER"), worker);
    auto compiler = make_compiler({.worker = worker, .toolchain_prefix = {}});
    fs::rename(worker, folder.path() / "away");
    const auto error = compile_badly(*compiler, test::kernel_request());
    CHECK(error.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(error.message, worker.string()), error.message);
    CHECK(children().empty());
    fs::rename(folder.path() / "away", worker);
    compile_well(*compiler, test::kernel_request());
}

TEST_CASE("WorkerEndsWithAKilledHostWhoseChildHoldsTheSocket") {
    int report[2];
    REQUIRE(::pipe2(report, O_CLOEXEC) == 0);
    const pid_t host = ::fork();
    if (host == 0) {
        auto compiler = Compiler::create({});
        if (!compiler || !(*compiler)->compile(test::kernel_request())) {
            ::_exit(1);
        }
        const int worker = children().at(0);
        const pid_t child = ::fork();
        if (child == 0) {
            while (true) {
                ::pause();
            }
        }
        const std::string line = std::to_string(worker) + " " + std::to_string(child);
        [[maybe_unused]] const auto written = ::write(report[1], line.data(), line.size());
        while (true) {
            ::pause();
        }
    }
    char line[128] = {};
    REQUIRE(::read(report[0], line, sizeof line - 1) > 0);
    ::close(report[0]);
    ::close(report[1]);
    int worker = 0;
    int child = 0;
    REQUIRE(std::sscanf(line, "%d %d", &worker, &child) == 2);
    CHECK(test::proc_text(worker, "stat") != "");
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    CHECK(eventually([&] {
        const auto stat = test::proc_text(worker, "stat");
        return stat.empty() || stat.find(" Z ") != std::string::npos;
    }));
    CHECK(test::proc_text(child, "stat") != "");
    ::kill(child, SIGKILL);
}

TEST_CASE("MissingPartsAreNamedWhenTheCompilerIsCreated") {
    const test::TemporaryFolder empty;
    const auto no_worker =
        Compiler::create({.worker = empty.path() / "kiln-compile", .toolchain_prefix = {}});
    REQUIRE(!no_worker);
    CHECK(no_worker.error().code == ErrorCode::environment);
    CHECK(is_within(no_worker.error().message, (empty.path() / "kiln-compile").string()));

    const auto no_toolchain =
        Compiler::create({.worker = {}, .toolchain_prefix = empty.path(), .cuda_prefix = empty.path()});
    REQUIRE(!no_toolchain);
    CHECK(no_toolchain.error().code == ErrorCode::environment);
    CHECK(is_within(no_toolchain.error().message, empty.path().string()));
    CHECK(is_within(no_toolchain.error().message, "libhiprtc.so.7"));
    CHECK(is_within(no_toolchain.error().message, "libnvrtc.so.12"));

    // There, and no program.
    const fs::path text = empty.path() / "kiln-compile";
    std::ofstream(text) << "not a program\n";
    for (const fs::path& path : {empty.path(), text}) {
        const auto unusable = Compiler::create({.worker = path, .toolchain_prefix = {}});
        REQUIRE(!unusable);
        CHECK(unusable.error().code == ErrorCode::environment);
        CHECK(is_within(unusable.error().message, path.string()));
    }
    fs::permissions(text, fs::perms::owner_all);
    const auto error =
        compile_badly(*make_compiler({.worker = text, .toolchain_prefix = {}}), test::kernel_request());
    CHECK(error.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(error.message, text.string()), error.message);
    CHECK(children().empty());

    const test::ScopedVariable variable("KILN_WORKER", "/nonexistent/kiln-compile");
    const auto named = Compiler::create({});
    REQUIRE(!named);
    CHECK(is_within(named.error().message, "KILN_WORKER"));
}

TEST_CASE("WorkerIsFoundAroundTheProgramWithoutBeingNamed") {
    // Copies the layout of an installation: PREFIX/bin/program, PREFIX/lib/kiln/kiln-compile. The program
    // asks itself.
    const test::TemporaryFolder prefix;
    fs::create_directories(prefix.path() / "bin");
    fs::create_directories(prefix.path() / "lib" / "kiln");
    fs::copy_file("/proc/self/exe", prefix.path() / "bin" / "program");
    fs::copy_file(std::getenv("KILN_WORKER"), prefix.path() / "lib" / "kiln" / "kiln-compile");
    const std::string command = "env -u KILN_WORKER '" + (prefix.path() / "bin" / "program").string() +
                                "' --test-case=CompilerBuildsAKernelWithItsListing > '" +
                                (prefix.path() / "log").string() + "' 2>&1";
    CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("FindingsNameWorkerAndToolchain") {
    auto compiler = make_compiler();
    std::vector<std::string> whats;
    for (const auto& finding : compiler->findings()) {
        whats.push_back(finding.what);
        CHECK(!finding.where.empty());
    }
    CHECK(std::find(whats.begin(), whats.end(), "worker") != whats.end());
    CHECK(std::find(whats.begin(), whats.end(), "ROCm toolchain") != whats.end());
    CHECK(children().empty());
}

TEST_CASE("CompilerIsTakenFromANamedPrefixAndFromNowhereElse") {
    const auto elsewhere = find_toolchain({}, Family::amdgpu);
    REQUIRE(elsewhere);
    const test::TemporaryFolder folder;
    const char* const old = std::getenv("KILN_ROCM_PREFIX");
    const std::string kept = old != nullptr ? old : "";
    const auto check_refused = [](const CompilerConfig& config, const fs::path& prefix,
                                  const std::string& named_by) {
        const auto found = find_toolchain(config, Family::amdgpu);
        REQUIRE(!found);
        CHECK(found.error().code == ErrorCode::environment);
        CHECK(is_within(found.error().message, "in " + prefix.string() + " (from " + named_by + ")"));
    };
    for (const auto& prefix : {folder.path(), folder.path() / "none"}) {
        check_refused({.worker = {}, .toolchain_prefix = prefix}, prefix, "the configuration");
        REQUIRE(::setenv("KILN_ROCM_PREFIX", prefix.c_str(), 1) == 0);
        check_refused({}, prefix, "KILN_ROCM_PREFIX");
    }
    fs::create_directory_symlink(elsewhere->folder, folder.path() / "lib");
    REQUIRE(::setenv("KILN_ROCM_PREFIX", folder.path().c_str(), 1) == 0);
    const auto there = find_toolchain({}, Family::amdgpu);
    REQUIRE(there);
    CHECK(there->folder == folder.path() / "lib");
    // An empty value names nothing.
    REQUIRE(::setenv("KILN_ROCM_PREFIX", kept.c_str(), 1) == 0);
    CHECK(find_toolchain({}, Family::amdgpu)->folder == elsewhere->folder);
    if (old == nullptr) {
        ::unsetenv("KILN_ROCM_PREFIX");
    }
}
