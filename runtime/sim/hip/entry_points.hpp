// The signature of every function of HIP that the look-alike exports, in one list: what entry_*.cpp define
// must agree with it, and a test compares it with HIP's own header.
//
// KILN_HIP_ENTRY_POINTS(X) expands to X(RESULT, NAME, (PARAMETERS)) for each; the types are those of
// runtime/device/hip/.
#pragma once

#include "runtime/device/hip/device_prop.hpp"
#include "runtime/device/hip/types.hpp"

// clang-format off
#define KILN_HIP_ENTRY_POINTS(X) \
    X(hipError_t, hipDeviceCanAccessPeer, (int*, int, int)) \
    X(hipError_t, hipDeviceComputeCapability, (int*, int*, hipDevice_t)) \
    X(hipError_t, hipDeviceGet, (hipDevice_t*, int)) \
    X(hipError_t, hipDeviceGetAttribute, (int*, int, int)) \
    X(hipError_t, hipDeviceGetName, (char*, int, hipDevice_t)) \
    X(hipError_t, hipDeviceGetStreamPriorityRange, (int*, int*)) \
    X(hipError_t, hipDeviceReset, ()) \
    X(hipError_t, hipDeviceSynchronize, ()) \
    X(hipError_t, hipDeviceTotalMem, (std::size_t*, hipDevice_t)) \
    X(hipError_t, hipDriverGetVersion, (int*)) \
    X(hipError_t, hipDrvGetErrorName, (hipError_t, const char**)) \
    X(hipError_t, hipDrvGetErrorString, (hipError_t, const char**)) \
    X(hipError_t, hipEventCreate, (hipEvent_t*)) \
    X(hipError_t, hipEventCreateWithFlags, (hipEvent_t*, unsigned)) \
    X(hipError_t, hipEventDestroy, (hipEvent_t)) \
    X(hipError_t, hipEventElapsedTime, (float*, hipEvent_t, hipEvent_t)) \
    X(hipError_t, hipEventQuery, (hipEvent_t)) \
    X(hipError_t, hipEventRecord, (hipEvent_t, hipStream_t)) \
    X(hipError_t, hipEventSynchronize, (hipEvent_t)) \
    X(hipError_t, hipExtGetLastError, ()) \
    X(hipError_t, hipExtModuleLaunchKernel, (hipFunction_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::size_t, hipStream_t, void**, void**, hipEvent_t, hipEvent_t, std::uint32_t)) \
    X(hipError_t, hipFree, (void*)) \
    X(hipError_t, hipFreeAsync, (void*, hipStream_t)) \
    X(hipError_t, hipFreeHost, (void*)) \
    X(hipError_t, hipFuncGetAttribute, (int*, hipFunction_attribute, hipFunction_t)) \
    X(hipError_t, hipFuncGetAttributes, (hipFuncAttributes*, const void*)) \
    X(hipError_t, hipFuncSetAttribute, (const void*, hipFuncAttribute, int)) \
    X(hipError_t, hipGetDevice, (int*)) \
    X(hipError_t, hipGetDeviceCount, (int*)) \
    X(hipError_t, hipGetDevicePropertiesR0600, (hipDeviceProp_t*, int)) \
    X(const char*, hipGetErrorName, (hipError_t)) \
    X(const char*, hipGetErrorString, (hipError_t)) \
    X(hipError_t, hipGetLastError, ()) \
    X(hipError_t, hipGraphDestroy, (hipGraph_t)) \
    X(hipError_t, hipGraphExecDestroy, (hipGraphExec_t)) \
    X(hipError_t, hipGraphGetNodes, (hipGraph_t, hipGraphNode_t*, std::size_t*)) \
    X(hipError_t, hipGraphGetRootNodes, (hipGraph_t, hipGraphNode_t*, std::size_t*)) \
    X(hipError_t, hipGraphInstantiate, (hipGraphExec_t*, hipGraph_t, hipGraphNode_t*, char*, std::size_t)) \
    X(hipError_t, hipGraphInstantiateWithFlags, (hipGraphExec_t*, hipGraph_t, unsigned long long)) \
    X(hipError_t, hipGraphLaunch, (hipGraphExec_t, hipStream_t)) \
    X(hipError_t, hipGraphNodeGetDependencies, (hipGraphNode_t, hipGraphNode_t*, std::size_t*)) \
    X(hipError_t, hipGraphNodeGetType, (hipGraphNode_t, hipGraphNodeType*)) \
    X(hipError_t, hipGraphUpload, (hipGraphExec_t, hipStream_t)) \
    X(hipError_t, hipHostAlloc, (void**, std::size_t, unsigned)) \
    X(hipError_t, hipHostFree, (void*)) \
    X(hipError_t, hipHostGetDevicePointer, (void**, void*, unsigned)) \
    X(hipError_t, hipHostMalloc, (void**, std::size_t, unsigned)) \
    X(hipError_t, hipHostRegister, (void*, std::size_t, unsigned)) \
    X(hipError_t, hipHostUnregister, (void*)) \
    X(hipError_t, hipInit, (unsigned)) \
    X(hipError_t, hipLaunchHostFunc, (hipStream_t, hipHostFn_t, void*)) \
    X(hipError_t, hipMalloc, (void**, std::size_t)) \
    X(hipError_t, hipMallocAsync, (void**, std::size_t, hipStream_t)) \
    X(hipError_t, hipMallocHost, (void**, std::size_t)) \
    X(hipError_t, hipMallocManaged, (void**, std::size_t, unsigned)) \
    X(hipError_t, hipMemGetAddressRange, (hipDeviceptr_t*, std::size_t*, hipDeviceptr_t)) \
    X(hipError_t, hipMemGetInfo, (std::size_t*, std::size_t*)) \
    X(hipError_t, hipMemcpy, (void*, const void*, std::size_t, hipMemcpyKind)) \
    X(hipError_t, hipMemcpyAsync, (void*, const void*, std::size_t, hipMemcpyKind, hipStream_t)) \
    X(hipError_t, hipMemcpyDtoD, (hipDeviceptr_t, hipDeviceptr_t, std::size_t)) \
    X(hipError_t, hipMemcpyDtoDAsync, (hipDeviceptr_t, hipDeviceptr_t, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemcpyDtoH, (void*, hipDeviceptr_t, std::size_t)) \
    X(hipError_t, hipMemcpyDtoHAsync, (void*, hipDeviceptr_t, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemcpyHtoD, (hipDeviceptr_t, const void*, std::size_t)) \
    X(hipError_t, hipMemcpyHtoDAsync, (hipDeviceptr_t, const void*, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemcpyWithStream, (void*, const void*, std::size_t, hipMemcpyKind, hipStream_t)) \
    X(hipError_t, hipMemset, (void*, int, std::size_t)) \
    X(hipError_t, hipMemsetAsync, (void*, int, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemsetD16, (hipDeviceptr_t, unsigned short, std::size_t)) \
    X(hipError_t, hipMemsetD16Async, (hipDeviceptr_t, unsigned short, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemsetD32, (hipDeviceptr_t, int, std::size_t)) \
    X(hipError_t, hipMemsetD32Async, (hipDeviceptr_t, int, std::size_t, hipStream_t)) \
    X(hipError_t, hipMemsetD8, (hipDeviceptr_t, unsigned char, std::size_t)) \
    X(hipError_t, hipMemsetD8Async, (hipDeviceptr_t, unsigned char, std::size_t, hipStream_t)) \
    X(hipError_t, hipModuleGetFunction, (hipFunction_t*, hipModule_t, const char*)) \
    X(hipError_t, hipModuleGetFunctionCount, (unsigned*, hipModule_t)) \
    X(hipError_t, hipModuleLaunchKernel, (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hipStream_t, void**, void**)) \
    X(hipError_t, hipModuleLoad, (hipModule_t*, const char*)) \
    X(hipError_t, hipModuleLoadData, (hipModule_t*, const void*)) \
    X(hipError_t, hipModuleLoadDataEx, (hipModule_t*, const void*, unsigned, void*, void**)) \
    X(hipError_t, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int*, hipFunction_t, int, std::size_t)) \
    X(hipError_t, hipModuleUnload, (hipModule_t)) \
    X(hipError_t, hipPeekAtLastError, ()) \
    X(hipError_t, hipPointerGetAttributes, (hipPointerAttribute_t*, const void*)) \
    X(hipError_t, hipRuntimeGetVersion, (int*)) \
    X(hipError_t, hipSetDevice, (int)) \
    X(hipError_t, hipStreamBeginCapture, (hipStream_t, hipStreamCaptureMode)) \
    X(hipError_t, hipStreamCreate, (hipStream_t*)) \
    X(hipError_t, hipStreamCreateWithFlags, (hipStream_t*, unsigned)) \
    X(hipError_t, hipStreamCreateWithPriority, (hipStream_t*, unsigned, int)) \
    X(hipError_t, hipStreamDestroy, (hipStream_t)) \
    X(hipError_t, hipStreamEndCapture, (hipStream_t, hipGraph_t*)) \
    X(hipError_t, hipStreamGetCaptureInfo, (hipStream_t, hipStreamCaptureStatus*, unsigned long long*)) \
    X(hipError_t, hipStreamGetDevice, (hipStream_t, hipDevice_t*)) \
    X(hipError_t, hipStreamGetFlags, (hipStream_t, unsigned*)) \
    X(hipError_t, hipStreamGetPriority, (hipStream_t, int*)) \
    X(hipError_t, hipStreamIsCapturing, (hipStream_t, hipStreamCaptureStatus*)) \
    X(hipError_t, hipStreamQuery, (hipStream_t)) \
    X(hipError_t, hipStreamSynchronize, (hipStream_t)) \
    X(hipError_t, hipStreamWaitEvent, (hipStream_t, hipEvent_t, unsigned)) \
    X(hipError_t, hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode*))
// clang-format on
