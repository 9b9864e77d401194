/* What a plain HIP program needs of HIP, written down from HIP's documentation and not from kiln's own
 * declarations, so that a wrong value there does not agree with itself here. C and C++.
 */
#ifndef KILN_TESTS_HIP_PLAIN_H
#define KILN_TESTS_HIP_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef struct ihipGraph* hipGraph_t;
typedef struct hipGraphNode* hipGraphNode_t;
typedef struct hipGraphExec* hipGraphExec_t;

enum {
    hipMemcpyHostToDevice = 1,
    hipMemcpyDeviceToHost = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault = 4
};
enum { hipStreamNonBlocking = 1 };
enum { hipEventDisableTiming = 2 };
enum { hipStreamCaptureModeGlobal = 0, hipStreamCaptureModeThreadLocal = 1, hipStreamCaptureModeRelaxed = 2 };
enum {
    hipStreamCaptureStatusNone = 0,
    hipStreamCaptureStatusActive = 1,
    hipStreamCaptureStatusInvalidated = 2
};
enum { hipMemoryTypeUnregistered = 0, hipMemoryTypeHost = 1, hipMemoryTypeDevice = 2 };
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void*)0x01)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void*)0x02)
#define HIP_LAUNCH_PARAM_END ((void*)0x03)

typedef struct {
    int type;
    int device;
    void* devicePointer;
    void* hostPointer;
    int isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

int hipInit(unsigned flags);
int hipGetDeviceCount(int* count);
int hipGetDevice(int* device);
int hipSetDevice(int device);
int hipDeviceGet(int* device, int ordinal);
int hipDeviceGetName(char* name, int bytes, int device);
int hipGetDevicePropertiesR0600(void* properties, int device);
int hipDeviceGetAttribute(int* value, int attribute, int device);
int hipDeviceSynchronize(void);
int hipDeviceReset(void);
int hipRuntimeGetVersion(int* version);
int hipMalloc(void** pointer, size_t bytes);
int hipFree(void* pointer);
int hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream);
int hipFreeAsync(void* pointer, hipStream_t stream);
int hipHostMalloc(void** pointer, size_t bytes, unsigned flags);
int hipHostFree(void* pointer);
int hipMemGetInfo(size_t* free, size_t* total);
int hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer);
int hipMemcpy(void* to, const void* from, size_t bytes, int kind);
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, hipStream_t stream);
int hipMemcpyHtoD(void* to, const void* from, size_t bytes);
int hipMemcpyDtoH(void* to, void* from, size_t bytes);
int hipMemset(void* to, int value, size_t bytes);
int hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream);
int hipMemsetD16(void* to, unsigned short value, size_t count);
int hipMemsetD32Async(void* to, int value, size_t count, hipStream_t stream);
int hipStreamCreate(hipStream_t* stream);
int hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags);
int hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority);
int hipStreamGetPriority(hipStream_t stream, int* priority);
int hipStreamDestroy(hipStream_t stream);
int hipStreamSynchronize(hipStream_t stream);
int hipStreamQuery(hipStream_t stream);
int hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
int hipStreamBeginCapture(hipStream_t stream, int mode);
int hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph);
int hipStreamIsCapturing(hipStream_t stream, int* status);
int hipStreamGetCaptureInfo(hipStream_t stream, int* status, unsigned long long* id);
int hipThreadExchangeStreamCaptureMode(int* mode);
int hipLaunchHostFunc(hipStream_t stream, void (*function)(void*), void* data);
int hipEventCreate(hipEvent_t* event);
int hipEventCreateWithFlags(hipEvent_t* event, unsigned flags);
int hipEventRecord(hipEvent_t event, hipStream_t stream);
int hipEventQuery(hipEvent_t event);
int hipEventSynchronize(hipEvent_t event);
int hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);
int hipEventDestroy(hipEvent_t event);
int hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t* error_node, char* log,
                        size_t bytes);
int hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
int hipGraphDestroy(hipGraph_t graph);
int hipGraphExecDestroy(hipGraphExec_t exec);
int hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
int hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
int hipGraphNodeGetType(hipGraphNode_t node, int* type);
int hipModuleLoad(hipModule_t* module, const char* path);
int hipModuleLoadData(hipModule_t* module, const void* image);
int hipModuleUnload(hipModule_t module);
int hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
int hipFuncGetAttribute(int* value, int attribute, hipFunction_t function);
int hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                          hipStream_t stream, void** params, void** extra);
int hipExtModuleLaunchKernel(hipFunction_t function, uint32_t global_x, uint32_t global_y, uint32_t global_z,
                             uint32_t local_x, uint32_t local_y, uint32_t local_z, size_t shared_bytes,
                             hipStream_t stream, void** params, void** extra, hipEvent_t start,
                             hipEvent_t stop, uint32_t flags);
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function, int block_threads,
                                                       size_t dynamic_bytes);
int hipGetLastError(void);
int hipPeekAtLastError(void);
int hipExtGetLastError(void);
const char* hipGetErrorName(int error);
const char* hipGetErrorString(int error);

#ifdef __cplusplus
}
#endif

#endif
