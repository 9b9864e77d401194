// bare_hiprtc LIBHIPRTC REQUESTS: compiles every request of a JSON file, one after the other, in this
// process. What kiln's pool of workers is measured against. Runs under the toolchain's own dynamic loader
// where it has one.

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/compile/backend/rtc.hpp"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: bare_hiprtc LIBHIPRTC REQUESTS.json\n");
        return 2;
    }
    auto hiprtc = kiln::compile::backend::Rtc::open(kiln::compile::Family::amdgpu, argv[1]);
    if (!hiprtc) {
        std::fprintf(stderr, "bare_hiprtc: %s\n", hiprtc.error().message.c_str());
        return 3;
    }
    std::ifstream file(argv[2]);
    for (const auto& described : nlohmann::json::parse(file)) {
        kiln::compile::CompileRequest request;
        request.name = described["name"];
        request.source = described["source"];
        for (const auto& header : described["headers"]) {
            request.headers.push_back({header["name"], header["text"]});
        }
        request.target = described["target"];
        request.options = described["options"];
        const auto compiled = hiprtc->compile(request);
        if (!compiled) {
            std::fprintf(stderr, "bare_hiprtc: %s\n", compiled.error().message.c_str());
            return 1;
        }
    }
    return 0;
}
