#include <map>

#include "runtime/compile/compiler.hpp"
#include "tests/lookalike/support.hpp"

namespace kiln::test {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
// x = factor * x + addend: two of these in the wrong order give another result.
extern "C" __global__ void affine(int* x, int factor, int addend, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) x[i] = factor * x[i] + addend;
}
// Three arguments with padding between them.
extern "C" __global__ void mixed(char tag, double* out, short step) {
    out[threadIdx.x] = tag + 0.5 * step;
}
// Each work-group's place in the order of all, and whether the first one's plain store was seen by then.
extern "C" __global__ void places(int* counter, int* plain, int* place, int* seen) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) *plain = 1;
    place[blockIdx.x] = __hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    asm volatile("" ::: "memory");
    seen[blockIdx.x] = *plain;
}
extern "C" __global__ void endless(const volatile int* flag) {
    while (*flag == 0) {}
}
)";

}  // namespace

const Bytes& code_object(const std::string& target) {
    static std::map<std::string, Bytes> made;
    auto& bytes = made[target];
    if (bytes.empty()) {
        auto compiler = compile::Compiler::create({});
        REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().message));
        auto result = (*compiler)->compile({.name = "tests/kernels.hip",
                                            .source = kSource,
                                            .headers = {},
                                            .target = target,
                                            .options = {"-O3", "-std=c++20", "-mcumode"}});
        REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
        bytes = std::move(result->code_object);
    }
    return bytes;
}

}  // namespace kiln::test
