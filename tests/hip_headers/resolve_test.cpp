// Every function that kiln binds or stands in for is in the toolchain's real library, looked up under its own
// loader.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/compile/toolchain.hpp"

namespace {

#define KILN_BOUND(name) #name,
#define KILN_LISTED(name) #name,
#define KILN_EXPORTED(name) #name,
#define KILN_HIPRTC(name) "hiprtc" #name,
#define KILN_COMGR(name) #name,
const std::vector<std::string> kBound{
#include "bound.inc"
};
const std::vector<std::string> kListed{
#include "listed.inc"
};
const std::vector<std::string> kExported{
#include "exported.inc"
};
const std::vector<std::string> kHiprtc{
#include "hiprtc.inc"
};
const std::vector<std::string> kComgr{
#include "comgr.inc"
};

void check_resolved(const kiln::compile::Toolchain& toolchain, const std::filesystem::path& library,
                    const std::vector<std::string>& names) {
    const std::string loader =
        toolchain.loader.empty()
            ? std::string()
            : fmt::format("'{}' --library-path '{}' ", toolchain.loader.string(), toolchain.folder.string());
    const std::string command =
        fmt::format("{}'{}' '{}' {} 2>&1", loader, KILN_RESOLVE, library.string(), fmt::join(names, " "));
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string missing;
    char buffer[4096];
    for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        missing.append(buffer, got);
    }
    CHECK_MESSAGE(::pclose(pipe) == 0, library.string() << " lacks " << missing);
    CHECK(missing.empty());
}

}  // namespace

TEST_CASE("EveryEntryPointIsInTheRealLibrary") {
    const auto toolchain = kiln::compile::find_toolchain({}, kiln::compile::Family::amdgpu);
    REQUIRE(toolchain);
    check_resolved(*toolchain, toolchain->rtc, kHiprtc);
    check_resolved(*toolchain, toolchain->companion, kComgr);
    const auto hip = toolchain->folder / "libamdhip64.so.7";
    if (!std::filesystem::exists(hip)) {
        MESSAGE("skipped: the toolchain has no libamdhip64");
        return;
    }
    CHECK(kBound.size() > 25);
    check_resolved(*toolchain, hip, kBound);
    check_resolved(*toolchain, hip, kListed);
}

TEST_CASE("SignaturesOfTheLookAlikeAreListedForWhatItExports") {
    auto listed = kListed;
    auto exported = kExported;
    std::sort(listed.begin(), listed.end());
    std::sort(exported.begin(), exported.end());
    CHECK(listed == exported);
}
