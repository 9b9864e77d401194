// Where CUDA's compiler and the programs of a toolkit are looked for, with files that only bear the names: no
// CUDA is needed.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.hpp"
#include "runtime/compile/cuda_disassembly.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using kiln::ErrorCode;
using namespace kiln::compile;
using test::is_within;
using test::ScopedVariable;

namespace {

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// A prefix that holds what look like NVRTCs.
struct Prefix {
    explicit Prefix(const std::vector<std::string>& files) {
        for (const auto& file : files) {
            write(folder.path() / file, file);
        }
    }
    [[nodiscard]] std::string path() const { return folder.path().string(); }
    test::TemporaryFolder folder;
};

CompilerConfig in(const Prefix& prefix) {
    CompilerConfig config;
    config.cuda_prefix = prefix.folder.path();
    return config;
}

kiln::Error missing(const CompilerConfig& config) {
    const auto found = find_toolchain(config, Family::cuda);
    REQUIRE(!found);
    CHECK(found.error().code == ErrorCode::environment);
    return found.error();
}

}  // namespace

TEST_CASE("CudaToolchainIsTheNewestNvrtcOfAFolderWithItsOwnBuiltins") {
    const Prefix prefix({"lib64/libnvrtc.so", "lib64/libnvrtc.so.11.2", "lib64/libnvrtc.so.12",
                         "lib64/libnvrtc.so.13", "lib64/libnvrtc.alt.so.13",
                         "lib64/libnvrtc-builtins.so.12.9", "lib64/libnvrtc-builtins.so.13.0",
                         "lib64/libnvrtc-builtins.so.13.1", "lib64/libnvrtc-builtins.so.14.0"});
    const auto found = find_toolchain(in(prefix), Family::cuda);
    REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
    CHECK(found->family == Family::cuda);
    CHECK(found->origin == "configuration");
    CHECK(found->folder == prefix.folder.path() / "lib64");
    CHECK(found->rtc.filename() == "libnvrtc.so.13");
    CHECK(found->companion.filename() == "libnvrtc-builtins.so.13.1");
    CHECK(found->loader.empty());
}

TEST_CASE("CudaToolchainIsFoundInEveryLayoutOfAPrefix") {
    for (const std::string folder : {"lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"}) {
        const Prefix prefix({folder + "/libnvrtc.so.12", folder + "/libnvrtc-builtins.so.12.4"});
        CAPTURE(folder);
        const auto found = find_toolchain(in(prefix), Family::cuda);
        REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
        CHECK(found->folder == prefix.folder.path() / folder);
    }
}

TEST_CASE("CudaToolchainThatIsTooOldOrNotWholeIsNone") {
    for (const std::vector<std::string>& files :
         {std::vector<std::string>{},
          {"lib64/libnvrtc.so.11", "lib64/libnvrtc-builtins.so.11.8"},
          {"lib64/libnvrtc.so.13"},
          {"lib64/libnvrtc.so.13", "lib64/libnvrtc-builtins.so.12.9"},
          {"lib64/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"}}) {
        const Prefix prefix(files);
        const auto error = missing(in(prefix));
        CHECK_MESSAGE(is_within(error.message, "in " + prefix.path() + " (from the configuration)"),
                      error.message);
        CHECK_MESSAGE(is_within(error.message, "no other place was looked at"), error.message);
    }
}

TEST_CASE("CudaToolchainIsTakenFromANamedPrefixAndFromNowhereElse") {
    const Prefix whole({"lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0"});
    const Prefix empty({});
    {
        const ScopedVariable named("KILN_CUDA_PREFIX", empty.path().c_str());
        CHECK(is_within(missing({}).message, "in " + empty.path() + " (from KILN_CUDA_PREFIX)"));
        CHECK(find_toolchain(in(whole), Family::cuda));  // the configuration goes first
    }
    {
        const ScopedVariable named("KILN_CUDA_PREFIX", whole.path().c_str());
        const auto found = find_toolchain({}, Family::cuda);
        REQUIRE(found);
        CHECK(found->origin == "KILN_CUDA_PREFIX");
        CHECK(found->folder == whole.folder.path() / "lib");
        missing(in(empty));
    }
    // An empty value names nothing.
    const ScopedVariable named("KILN_CUDA_PREFIX", "");
    const auto machine = find_toolchain({}, Family::cuda);
    CHECK((machine ? machine->origin == "native"
                   : is_within(machine.error().message, "/usr/local/cuda/lib64")));
}

TEST_CASE("CubinIsDisassembledByAToolkitsProgram") {
    const auto cubin = kiln::read_file(KILN_CUBIN, kiln::Stage::compile);
    REQUIRE(cubin);
    const auto program = [](const Prefix& prefix, const std::string& name, const std::string& script) {
        const fs::path path = prefix.folder.path() / "bin" / name;
        write(path, "#!/bin/sh\n" + script);
        fs::permissions(path, fs::perms::owner_all);
        return path.string();
    };
    const Prefix toolkit({});
    const auto none = disassemble_cubin(*cubin, in(toolkit));
    REQUIRE(!none);
    CHECK(none.error().code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(none.error().message, "nvdisasm or cuobjdump"), none.error().message);
    CHECK_MESSAGE(is_within(none.error().message, toolkit.path() + "/bin"), none.error().message);

    program(toolkit, "cuobjdump", "echo \"object $1 $(wc -c < $2)\"\n");
    CHECK(disassemble_cubin(*cubin, in(toolkit)) ==
          "object --dump-sass " + std::to_string(cubin->size()) + "\n");
    const std::string name =
        program(toolkit, "nvdisasm", "echo \"code $1\"; cmp - \"$2\" < '" KILN_CUBIN "'\n");
    const auto listed = disassemble_cubin(*cubin, in(toolkit));
    REQUIRE_MESSAGE(listed, (listed ? "" : listed.error().message));
    CHECK(*listed == "code --print-code\n");
    CHECK(test::children().empty());

    // The compiler asks it too, by what the bytes are.
    const auto through = test::make_compiler(in(toolkit))->disassemble(*cubin);
    REQUIRE_MESSAGE(through, (through ? "" : through.error().message));
    CHECK(*through == *listed);

    program(toolkit, "nvdisasm", "echo nonsense >&2; exit 7\n");
    const auto failed = disassemble_cubin(*cubin, in(toolkit));
    REQUIRE(!failed);
    CHECK(failed.error().code == ErrorCode::environment);
    CHECK_MESSAGE(is_within(failed.error().message, name + " ended with status 7: nonsense"),
                  failed.error().message);
    program(toolkit, "nvdisasm", "kill -9 $$\n");
    CHECK(is_within(disassemble_cubin(*cubin, in(toolkit)).error().message, "was ended by signal 9"));
    program(toolkit, "nvdisasm", "exit 0\n");
    CHECK(is_within(disassemble_cubin(*cubin, in(toolkit)).error().message, "printed nothing"));
}
