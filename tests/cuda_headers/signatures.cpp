// Our declarations against the header. What is wrong does not compile; what only a running program can
// compare is a test case at the end.

#include <type_traits>

#include "runtime/device/cuda/api.hpp"
#include "tests/same_signature.hpp"

#include <cuda.h>

// The header declares the later version of this one alone, by a macro; the two are called alike.
#undef cuEventElapsedTime
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;

#include <doctest/doctest.h>

namespace {

#define KILN_BOUND(name)                                                                                    \
    static_assert(kiln::test::SameSignature<std::remove_pointer_t<decltype(kiln::device::cuda::Api::name)>, \
                                            decltype(::name)>::value,                                       \
                  "runtime/device/cuda/api.hpp: " #name);
#include "bound.inc"

#define KILN_ENUMERATOR(name)                                                                 \
    static_assert(static_cast<long long>(kiln::cuda::name) == static_cast<long long>(::name), \
                  "runtime/device/cuda/types.hpp: " #name);
#include "enumerators.inc"

}  // namespace

// The header has them as pointers, which no constant expression compares.
TEST_CASE("LaunchKeysAreCudas") {
    CHECK(kiln::cuda::kLaunchParamBufferPointer ==
          reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_BUFFER_POINTER));
    CHECK(kiln::cuda::kLaunchParamBufferSize ==
          reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_BUFFER_SIZE));
    CHECK(kiln::cuda::kLaunchParamEnd == reinterpret_cast<std::uintptr_t>(CU_LAUNCH_PARAM_END));
}
