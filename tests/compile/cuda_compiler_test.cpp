// The compiler with the real worker and the real NVRTC, where there is one: a CUDA toolkit needs no GPU.

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/compile/code_object.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using kiln::ErrorCode;
using namespace kiln::compile;
using namespace std::chrono_literals;
using test::check_that_options_reach;
using test::children;
using test::compile_badly;
using test::compile_well;
using test::cuda_request;
using test::has_cuda;
using test::is_within;
using test::make_compiler;

namespace {

// Seconds, and hundreds of megabytes: 4 ** 11 elements.
CompileRequest heavy_request() {
    CompileRequest request = cuda_request();
    request.source = "#define A0 1,1,1,1,\n";
    for (int i = 1; i < 11; ++i) {
        const std::string before = " A" + std::to_string(i - 1);
        request.source += "#define A" + std::to_string(i) + before + before + before + before + "\n";
    }
    request.source +=
        "__device__ const int many[] = {A10};\n"
        "extern \"C\" __global__ void pick(int* out) { *out = many[threadIdx.x]; }\n";
    return request;
}

}  // namespace

TEST_CASE("CudaCompilerBuildsACubinWithoutAListing") {
    if (!has_cuda()) {
        return;
    }
    auto compiler = make_compiler();
    CHECK(children().empty());  // nothing starts before the first request
    const auto result = compile_well(*compiler, cuda_request());
    const auto object = read_code_object(result.code_object);
    REQUIRE_MESSAGE(object, (object ? "" : object.error().message));
    CHECK(object->target == "sm_90a");
    REQUIRE(object->kernels.size() == 1);
    CHECK(object->kernels[0].name == "scale_all");
    CHECK(result.listing.empty());
    CHECK(result.log.empty());
    CHECK(result.seconds > 0);
    CHECK(children().size() == 1);
    CHECK(compiler->probe("sm_90a"));
    // Another toolchain's request goes to a worker of its own.
    CHECK(read_code_object(compile_well(*compiler, test::kernel_request()).code_object)->target == "gfx950");
    CHECK(children().size() == 2);
}

TEST_CASE("CudaCompilerGivesTheSameBytesInEveryWorker") {
    if (!has_cuda()) {
        return;
    }
    const auto a = compile_well(*make_compiler(), cuda_request());
    const auto b = compile_well(*make_compiler(), cuda_request());
    CHECK(a.code_object == b.code_object);
}

TEST_CASE("CudaDiagnosticsNameTemplateHeaderAndLine") {
    if (!has_cuda()) {
        return;
    }
    auto compiler = make_compiler();
    auto request = cuda_request("linear/broken.sm_90a.cu");
    request.source += "\n__device__ int broken = undeclared_thing;\n";
    const auto error = compile_badly(*compiler, request);
    CHECK(error.code == ErrorCode::compile_failed);
    CHECK_MESSAGE(error.message.starts_with("linear/broken.sm_90a.cu(11): error: "), error.message);
    request = cuda_request();
    request.headers[0].text += "#warning look here\n";
    const auto warned = compile_well(*compiler, request);
    CHECK_MESSAGE(warned.log.starts_with("device/scale.h(3): warning"), warned.log);
    CHECK_MESSAGE(is_within(warned.log, "look here"), warned.log);
}

TEST_CASE("CudaOptionsReachTheCompiler") {
    if (!has_cuda()) {
        return;
    }
    auto compiler = make_compiler();
    const auto request = cuda_request();
    check_that_options_reach(*compiler, request);
}

TEST_CASE("CudaCompilerThatCanNotBuildForATargetIsRefusedByName") {
    if (!has_cuda()) {
        return;
    }
    auto compiler = make_compiler();
    auto request = cuda_request();
    request.target = "sm_12345";
    const auto error = compile_badly(*compiler, request);
    CHECK(error.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(error.message, "libnvrtc.so."), error.message);
    CHECK_MESSAGE(is_within(error.message, "sm_12345"), error.message);
    CHECK(compiler->probe("sm_12345").error().code == ErrorCode::compile_failed);
}

TEST_CASE("CudaCompilerSeesNoVariableAndNoFileOfTheHost") {
    if (!has_cuda()) {
        return;
    }
    const test::ScopedVariable append("NVRTC_APPEND_FLAGS", "-DPOISON");
    auto compiler = make_compiler();
    auto request = cuda_request();
    request.source = "#ifdef POISON\n#error poisoned\n#endif\n" + request.source;
    compile_well(*compiler, request);
    REQUIRE(children().size() == 1);
    const auto folder = fs::read_symlink("/proc/" + std::to_string(children()[0]) + "/cwd");
    CHECK(fs::is_empty(folder));  // which is its HOME as well: NVRTC kept nothing there
    // A toolkit's headers beside the compiler are not found: the next machine may have none.
    request.source = "#include <cuda_fp8.h>\n" + request.source;
    CHECK_MESSAGE(is_within(compile_badly(*compiler, request).message, "cuda_fp8.h"), "found a header");
}

TEST_CASE("CudaLibrariesThatAreLoadedAreThoseOfTheIdentity") {
    if (!has_cuda()) {
        return;
    }
    // A prefix with builtins of its own, which the system's loader does not know.
    const auto found = find_toolchain({}, Family::cuda);
    REQUIRE(found);
    const test::TemporaryFolder prefix;
    const fs::path folder = prefix.path() / "lib64";
    fs::create_directories(folder);
    fs::create_symlink(found->rtc, folder / found->rtc.filename());
    fs::copy_file(found->companion, folder / found->companion.filename());
    CompilerConfig config;
    config.cuda_prefix = prefix.path();
    auto compiler = make_compiler(config);
    const auto result = compile_well(*compiler, cuda_request());
    std::vector<std::string> loaded;
    std::copy_if(result.loaded.begin(), result.loaded.end(), std::back_inserter(loaded),
                 [](const std::string& path) { return is_within(path, "/libnvrtc"); });
    std::sort(loaded.begin(), loaded.end());
    CHECK(loaded ==
          std::vector<std::string>{folder / found->companion.filename(), folder / found->rtc.filename()});
    const auto identity = compiler->identity("sm_90a");
    REQUIRE(identity);
    CHECK(is_within(identity->document, found->rtc.filename().string()));
    CHECK(is_within(identity->document, found->companion.filename().string()));
    CHECK(identity->document != compiler->identity("gfx950")->document);
    // The same files elsewhere are the same compiler.
    CHECK(identity->document == make_compiler()->identity("sm_90a")->document);
}

TEST_CASE("CudaCompilesAreHeldByTheSameLimits") {
    if (!has_cuda()) {
        return;
    }
    CompilerConfig impatient;
    impatient.workers = 1;
    impatient.time_limit = 300ms;
    const auto late = compile_badly(*make_compiler(impatient), heavy_request());
    CHECK(late.code == ErrorCode::worker_failed);
    CHECK_MESSAGE(is_within(late.message, "did not answer within 300 ms"), late.message);

    CompilerConfig small;
    small.workers = 1;
    small.memory_limit = std::uint64_t{384} << 20;
    auto compiler = make_compiler(small);
    const auto large = compile_badly(*compiler, heavy_request());
    CHECK(large.code == ErrorCode::worker_failed);
    CHECK_MESSAGE(is_within(large.message, "ran out of "), large.message);
    compile_well(*compiler, cuda_request());
}

TEST_CASE("OneToolchainServesWhereTheOtherIsMissing") {
    const test::TemporaryFolder empty;
    CompilerConfig config;
    config.cuda_prefix = empty.path();
    auto without_cuda = make_compiler(config);
    compile_well(*without_cuda, test::kernel_request());
    const auto no_cuda = compile_badly(*without_cuda, cuda_request());
    CHECK(no_cuda.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(no_cuda.message, "libnvrtc.so.12"), no_cuda.message);
    CHECK_MESSAGE(is_within(no_cuda.message, empty.path().string()), no_cuda.message);
    CHECK(without_cuda->identity("sm_90a").error().code == ErrorCode::environment);
    CHECK(without_cuda->probe("sm_90a").error().code == ErrorCode::environment);
    if (!has_cuda()) {
        return;
    }
    // It is looked for again: it may have been installed.
    const auto found = find_toolchain({}, Family::cuda);
    REQUIRE(found);
    fs::create_directory_symlink(found->folder, empty.path() / "lib64");
    compile_well(*without_cuda, cuda_request());

    const test::TemporaryFolder nothing;
    CompilerConfig other;
    other.toolchain_prefix = nothing.path();
    auto without_rocm = make_compiler(other);
    compile_well(*without_rocm, cuda_request());
    const auto no_rocm = compile_badly(*without_rocm, test::kernel_request());
    CHECK(no_rocm.code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(no_rocm.message, "libhiprtc.so.7"), no_rocm.message);
}

TEST_CASE("StoppedCompilerRefusesAToolchainThatItMeetsLater") {
    if (!has_cuda()) {
        return;
    }
    const test::TemporaryFolder folder;
    CompilerConfig config;
    config.cuda_prefix = folder.path();
    auto compiler = make_compiler(config);
    compiler->stop();
    fs::create_directory_symlink(find_toolchain({}, Family::cuda)->folder, folder.path() / "lib64");
    const auto error = compile_badly(*compiler, cuda_request());
    CHECK(error.code == ErrorCode::worker_failed);
    CHECK_MESSAGE(is_within(error.message, "stopped"), error.message);
    CHECK(children().empty());
}
