// What the tests of this room share: the real compiler, a kernel for it, and a look at this process's
// children.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/compiler.hpp"

namespace kiln::compile::test {

// The compiler that tools/setup provides; its absence is a failure with the reason, never a skipped test.
inline std::unique_ptr<Compiler> make_compiler(const CompilerConfig& config = {}) {
    auto compiler = Compiler::create(config);
    REQUIRE_MESSAGE(compiler, (compiler ? std::string() : compiler.error().message));
    return std::move(*compiler);
}

// A compiler whose worker is the misbehaving one of bad_worker.cpp: it does what the request's name says.
inline std::unique_ptr<Compiler> make_bad_compiler(CompilerConfig config = {}) {
    config.worker = KILN_BAD_WORKER;
    return make_compiler(config);
}

inline CompileRequest kernel_request(std::string name = "group/kernel.gfx950.hip") {
    return {
        .name = std::move(name),
        .source =
            "#include \"device/scale.h\"\n"
            "extern \"C\" __global__ void scale_all(float* values, int count) {\n"
            "    __shared__ float first[64];\n"
            "    first[threadIdx.x] = values[threadIdx.x];\n"
            "    __syncthreads();\n"
            "    for (int i = threadIdx.x; i < count; i += 64) {\n"
            "        values[i] = expf(scaled(values[i])) + first[63 - threadIdx.x];\n"
            "    }\n"
            "}\n",
        .headers = {{.name = "device/scale.h",
                     .text = "#pragma once\ninline __device__ float scaled(float x) { return 2 * x; }\n"}},
        .target = "gfx950",
        .options = {"-O3", "-std=c++20", "-mcumode", "-fhip-kernel-arg-name"}};
}

// The same for NVRTC.
inline CompileRequest cuda_request(std::string name = "group/kernel.sm_90a.cu") {
    CompileRequest request = kernel_request(std::move(name));
    request.target = "sm_90a";
    request.options = {"-std=c++20"};
    return request;
}

// False on a machine without NVRTC, after it was said that the test case is skipped, and why.
bool has_cuda();

// What comes of a request that must be served, and of one that must not.
CompileResult compile_well(Compiler& compiler, const CompileRequest& request);
Error compile_badly(Compiler& compiler, const CompileRequest& request);

// Options change what is compiled, and an unknown one is an error that names it.
void check_that_options_reach(Compiler& compiler, CompileRequest request);

bool is_within(std::string_view text, std::string_view part);

// Process ids of the living and unreaped children of this process.
std::vector<int> children();
// The text of /proc/PID/FILE; empty when the process is gone.
std::string proc_text(int pid, const std::string& file);
// True once `condition` holds, asked again and again for a minute: machines can be slow.
template <class Condition>
bool eventually(Condition condition);

std::size_t count_open_descriptors();
std::size_t count_threads();

// A folder that is removed with what is in it.
class TemporaryFolder {
  public:
    TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// Sets a variable of this process's environment until the end of the scope.
class ScopedVariable {
  public:
    ScopedVariable(const char* name, const char* value);
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;
    ~ScopedVariable();

  private:
    const char* name_;
    bool was_set_;
    std::string old_;
};

bool wait_a_little();  // ten milliseconds; true

template <class Condition>
bool eventually(Condition condition) {
    for (int i = 0; i < 6000 && wait_a_little(); ++i) {
        if (condition()) {
            return true;
        }
    }
    return false;
}

}  // namespace kiln::compile::test
