// The driver has ended when the last module goes, as where a static object of the engine holds a plan. The
// last file of its program: what stays loaded in the double would be found by the others.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/device/faulty/cubin.hpp"
#include "tests/device/faulty/faulty.hpp"
#include "tests/device/under_test.hpp"

using namespace kiln;

namespace {

// What is written to stderr meanwhile.
template <class Body>
std::string stderr_of(const Body& body) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    REQUIRE(file != nullptr);
    const int kept = dup(STDERR_FILENO);
    REQUIRE(dup2(fileno(file.get()), STDERR_FILENO) >= 0);
    body();
    REQUIRE(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    std::rewind(file.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    return text;
}

// CUDA_ERROR_DEINITIALIZED, and one that is none of its end.
constexpr int kEnded = 4, kOther = 999;

}  // namespace

TEST_CASE("AModuleThatOutlivesTheDriverGoesWithoutAWord") {
    const test::Faulty faulty;
    const auto devices = test::open_driver(test::kFaultyLibrary);
    for (const int error : {kEnded, kOther}) {
        for (const char* entry : {"cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode"}) {
            CAPTURE(error);
            CAPTURE(entry);
            auto module = devices.front()->load(test::cubin());
            REQUIRE(module);
            faulty.arm(entry, 1, 0, error);
            const auto said = stderr_of([&] { module->reset(); });
            CHECK(faulty.calls("cuModuleUnload") == 0);
            CHECK((said.find("stays loaded") != std::string::npos) == (error == kOther));
            CHECK((said.empty() || error == kOther));
            faulty.disarm();
        }
    }
}
