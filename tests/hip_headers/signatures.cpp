// Our declarations against the headers. What is wrong does not compile; what only a running program can
// compare is a test case at the end.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/compile/backend/comgr_api.hpp"
#include "runtime/compile/backend/rtc_api.hpp"
#include "runtime/device/hip/api.hpp"
#include "runtime/sim/hip/entry_points.hpp"
#include "tests/same_signature.hpp"

// HIP's header makes macros of some of these names, so ours are read before it is included.
namespace ours {

using namespace kiln::hip;

using Properties = hipDeviceProp_t;
constexpr unsigned kStreamFlags[] = {hipStreamDefault, hipStreamNonBlocking};
constexpr unsigned kEventFlags[] = {hipEventDefault, hipEventBlockingSync, hipEventDisableTiming};

// Of the look-alike, by name.
#define KILN_DECLARE(result, name, parameters) using name = result parameters;
KILN_HIP_ENTRY_POINTS(KILN_DECLARE)
#undef KILN_DECLARE

}  // namespace ours

#include <amd_comgr/amd_comgr.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

// After HIP's headers, which come without it.
#include <doctest/doctest.h>

namespace {

// The functions as the headers declare them. One is overloaded for C++: the exported one is named by its
// type.
namespace real {
#define KILN_REAL(name) using name = decltype(::name);
#include "real.inc"
using hipMallocAsync = hipError_t(void**, size_t, hipStream_t);
static_assert(std::is_same_v<decltype(static_cast<hipMallocAsync*>(&::hipMallocAsync)), hipMallocAsync*>);
}  // namespace real

using kiln::test::SameSignature;

#define KILN_BOUND(name)                                                                                 \
    static_assert(                                                                                       \
        SameSignature<std::remove_pointer_t<decltype(kiln::device::hip::Api::name)>, real::name>::value, \
        "runtime/device/hip/api.hpp: " #name);
#include "bound.inc"

#define KILN_LISTED(name) \
    static_assert(SameSignature<ours::name, real::name>::value, "runtime/sim/hip/entry_points.hpp: " #name);
#include "listed.inc"

#define KILN_HIPRTC(name)                                                                              \
    static_assert(SameSignature<std::remove_pointer_t<decltype(kiln::compile::backend::RtcApi::name)>, \
                                decltype(::hiprtc##name)>::value,                                      \
                  "runtime/compile/backend/rtc_api.hpp: " #name);
#include "hiprtc.inc"

#define KILN_COMGR(name)                                                                                 \
    static_assert(SameSignature<std::remove_pointer_t<decltype(kiln::compile::backend::ComgrApi::name)>, \
                                decltype(::name)>::value,                                                \
                  "runtime/compile/backend/comgr_api.hpp: " #name);
#include "comgr.inc"

// Callbacks are parameters as well: what they are called with.
static_assert(std::is_same_v<ours::hipHostFn_t, ::hipHostFn_t>);

#define KILN_ENUMERATOR(name)                                                                \
    static_assert(static_cast<long long>(kiln::hip::name) == static_cast<long long>(::name), \
                  "runtime/device/hip/types.hpp: " #name);
#include "enumerators.inc"

static_assert(ours::kStreamFlags[0] == hipStreamDefault && ours::kStreamFlags[1] == hipStreamNonBlocking);
static_assert(ours::kEventFlags[0] == hipEventDefault && ours::kEventFlags[1] == hipEventBlockingSync &&
              ours::kEventFlags[2] == hipEventDisableTiming);
static_assert(kiln::compile::backend::RtcApi::kSuccess == HIPRTC_SUCCESS &&
              kiln::compile::backend::RtcApi::kOutOfMemory == HIPRTC_ERROR_OUT_OF_MEMORY &&
              kiln::compile::backend::RtcApi::kInvalidOption == HIPRTC_ERROR_INVALID_OPTION &&
              kiln::compile::backend::RtcApi::kCompilationError == HIPRTC_ERROR_COMPILATION);
static_assert(kiln::compile::backend::ComgrApi::kSuccess == AMD_COMGR_STATUS_SUCCESS);

template <class Ours, class Theirs>
constexpr bool same_field(std::size_t offset, std::size_t their_offset) {
    return offset == their_offset && sizeof(Ours) == sizeof(Theirs);
}
#define KILN_SAME_FIELD(Ours, Theirs, name)                                                         \
    static_assert(same_field<decltype(Ours::name), decltype(Theirs::name)>(offsetof(Ours, name),    \
                                                                           offsetof(Theirs, name)), \
                  #Ours "::" #name);

#define KILN_FIELD(name) KILN_SAME_FIELD(ours::Properties, ::hipDeviceProp_tR0600, name)
#include "fields.inc"
static_assert(offsetof(ours::Properties, textureAndSurfaceLimits) ==
              offsetof(::hipDeviceProp_tR0600, maxTexture1D));
static_assert(sizeof(ours::Properties) == sizeof(::hipDeviceProp_tR0600));
static_assert(sizeof(ours::hipUUID) == sizeof(::hipUUID));

KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, binaryVersion)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, cacheModeCA)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, constSizeBytes)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, localSizeBytes)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, maxDynamicSharedSizeBytes)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, maxThreadsPerBlock)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, numRegs)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, preferredShmemCarveout)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, ptxVersion)
KILN_SAME_FIELD(ours::hipFuncAttributes, ::hipFuncAttributes, sharedSizeBytes)
static_assert(sizeof(ours::hipFuncAttributes) == sizeof(::hipFuncAttributes));

KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, type)
KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, device)
KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, devicePointer)
KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, hostPointer)
KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, isManaged)
KILN_SAME_FIELD(ours::hipPointerAttribute_t, ::hipPointerAttribute_t, allocationFlags)
static_assert(sizeof(ours::hipPointerAttribute_t) == sizeof(::hipPointerAttribute_t));

}  // namespace

// The header has them as pointers, which no constant expression compares.
TEST_CASE("SpecialStreamsAndLaunchKeysAreHips") {
    CHECK(kiln::hip::kStreamLegacy == reinterpret_cast<std::uintptr_t>(hipStreamLegacy));
    CHECK(kiln::hip::kStreamPerThread == reinterpret_cast<std::uintptr_t>(hipStreamPerThread));
    CHECK(kiln::hip::kLaunchParamBufferPointer ==
          reinterpret_cast<std::uintptr_t>(HIP_LAUNCH_PARAM_BUFFER_POINTER));
    CHECK(kiln::hip::kLaunchParamBufferSize ==
          reinterpret_cast<std::uintptr_t>(HIP_LAUNCH_PARAM_BUFFER_SIZE));
    CHECK(kiln::hip::kLaunchParamEnd == reinterpret_cast<std::uintptr_t>(HIP_LAUNCH_PARAM_END));
}
