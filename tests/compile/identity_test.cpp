#include "runtime/compile/identity.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using kiln::ErrorCode;
using namespace kiln::compile;

namespace {

std::string contents(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Some ELF library with a build id: the C library of this process.
std::string some_library() {
    Dl_info info{};
    REQUIRE(::dladdr(reinterpret_cast<const void*>(&::getppid), &info) != 0);
    return contents(info.dli_fname);
}

// Where the build id note's type stands: owner length 4, descriptor length 20, type 3, owner "GNU".
std::size_t find_build_id(const std::string& library) {
    const auto at = library.find(std::string("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16));
    REQUIRE(at != std::string::npos);
    return at;
}

// A prefix whose toolchain is made of copies of one library.
struct FakeToolchain {
    explicit FakeToolchain(const std::string& library) {
        fs::create_directories(folder.path() / "lib");
        write(hiprtc(), library);
        write(comgr(), library);
    }
    fs::path hiprtc() const { return folder.path() / "lib" / "libhiprtc.so.7"; }
    fs::path comgr() const { return folder.path() / "lib" / "libamd_comgr.so.3"; }
    std::unique_ptr<Compiler> compiler() const {
        return test::make_compiler({.worker = {}, .toolchain_prefix = folder.path()});
    }
    test::TemporaryFolder folder;
};

std::string document_of(Compiler& compiler) {
    const auto identity = compiler.identity("gfx950");
    REQUIRE_MESSAGE(identity, (identity ? "" : identity.error().message));
    return identity->document;
}

}  // namespace

TEST_CASE("IdentityIsCanonicalStableAndStartsNothing") {
    auto compiler = test::make_compiler();
    const std::string document = document_of(*compiler);
    CHECK(document == document_of(*compiler));
    CHECK(document == document_of(*test::make_compiler()));
    CHECK(test::children().empty());
    CHECK(test::proc_text(::getpid(), "maps").find("libamd_comgr") == std::string::npos);  // nor loaded

    const auto json = nlohmann::json::parse(document);
    CHECK(json.dump() == document);
    std::vector<std::string> names;
    for (const auto& component : json.at("components")) {
        names.push_back(component.at("name"));
        CHECK((component.contains("build_id") != component.contains("sha256")));
    }
    CHECK(std::is_sorted(names.begin(), names.end()));
    const auto has = [&](std::string_view stem) {
        return std::any_of(names.begin(), names.end(),
                           [&](const auto& name) { return name.starts_with(stem); });
    };
    CHECK(has("libhiprtc.so."));
    CHECK(has("libamd_comgr.so."));
    CHECK(document.find('/') == std::string::npos);  // where the files lie does not matter
}

TEST_CASE("IdentityFollowsTheBuildId") {
    const std::string library = some_library();
    const FakeToolchain toolchain(library);
    auto compiler = toolchain.compiler();
    const std::string before = document_of(*compiler);

    std::string rebuilt = library;
    rebuilt[find_build_id(library) + 16] ^= 1;
    write(toolchain.comgr(), rebuilt);
    const std::string after = document_of(*compiler);
    CHECK(after != before);

    write(toolchain.comgr(), library);
    CHECK(document_of(*compiler) == before);

    // Elsewhere, and with other bytes behind the same build id.
    std::string same_build = library;
    same_build.back() ^= 1;
    const FakeToolchain copy(same_build);
    CHECK(document_of(*copy.compiler()) == before);
}

TEST_CASE("IdentityWithoutABuildIdIsTheDigestOfTheContents") {
    std::string library = some_library();
    library[find_build_id(library) + 8] = '\x7f';  // a note of another type
    const FakeToolchain toolchain(library);
    CHECK(document_of(*toolchain.compiler()) ==
          "{\"components\":[{\"name\":\"libamd_comgr.so.3\",\"sha256\":\"" + kiln::sha256(library).hex() +
              "\"},{\"name\":\"libhiprtc.so.7\",\"sha256\":\"" + kiln::sha256(library).hex() + "\"}]}");
}

TEST_CASE("IdentityOfAFileThatIsNoLibraryIsAnEnvironmentError") {
    const FakeToolchain toolchain("not an ELF file");
    auto compiler = toolchain.compiler();
    const auto identity = compiler->identity("gfx950");
    REQUIRE(!identity);
    CHECK(identity.error().code == ErrorCode::environment);
    CHECK(identity.error().message.find(toolchain.hiprtc().string()) != std::string::npos);
    // Nor does it compile, or start a worker in order to find out.
    const auto result = compiler->compile(test::kernel_request());
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::environment);
    CHECK(test::children().empty());
}

TEST_CASE("ToolchainThatCanNotBeLoadedIsAnEnvironmentErrorOfTheCompile") {
    // A C library is a library, but no hipRTC.
    const FakeToolchain toolchain(some_library());
    const auto result = toolchain.compiler()->compile(test::kernel_request());
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::environment);
    CHECK_MESSAGE(result.error().message.find("libamd_comgr.so.3") != std::string::npos,
                  result.error().message);
}
