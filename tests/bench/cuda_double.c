/* A libcuda that does nothing, for bench_gpu and for kiln under it: memory is the host's, a kernel does not
 * run, a graph knows how many kernels were captured, and every replay takes KILN_DOUBLE_MS milliseconds, 1.5
 * where it is not set. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))
#define UNUSED __attribute__((unused))
/* An entry point that has nothing to do. */
#define NOTHING(name, ...)        \
    ENTRY int name(__VA_ARGS__) { \
        return 0;                 \
    }

static void* const some = (void*)0x1000;
static int capturing;
static uintptr_t num_captured;

NOTHING(cuInit, UNUSED unsigned flags)
NOTHING(cuCtxSetCurrent, UNUSED void* context)
NOTHING(cuModuleUnload, UNUSED void* module)
NOTHING(cuFuncLoad, UNUSED void* function)
NOTHING(cuFuncSetAttribute, UNUSED void* function, UNUSED int attribute, UNUSED int value)
NOTHING(cuThreadExchangeStreamCaptureMode, UNUSED int* mode)
NOTHING(cuStreamSynchronize, UNUSED void* stream)
NOTHING(cuStreamDestroy_v2, UNUSED void* stream)
NOTHING(cuGraphLaunch, UNUSED void* executable, UNUSED void* stream)
NOTHING(cuGraphDestroy, UNUSED void* graph)
NOTHING(cuGraphExecDestroy, UNUSED void* executable)
NOTHING(cuEventRecord, UNUSED void* event, UNUSED void* stream)
NOTHING(cuEventSynchronize, UNUSED void* event)
NOTHING(cuEventDestroy_v2, UNUSED void* event)

ENTRY int cuDriverGetVersion(int* version) {
    *version = 13000;
    return 0;
}
ENTRY int cuDeviceGetCount(int* count) {
    *count = 1;
    return 0;
}
ENTRY int cuDeviceGet(int* device, UNUSED int ordinal) {
    *device = 0;
    return 0;
}
ENTRY int cuDeviceGetName(char* name, int length, UNUSED int device) {
    strncpy(name, "double of an H200", (size_t)length);
    return 0;
}
/* As an H200 answers, but for an L2 that is filled soon. */
ENTRY int cuDeviceGetAttribute(int* value, int attribute, UNUSED int device) {
    switch (attribute) {
        case 8:
            *value = 49152;
            break; /* MAX_SHARED_MEMORY_PER_BLOCK */
        case 16:
            *value = 132;
            break; /* MULTIPROCESSOR_COUNT */
        case 38:
            *value = 1 << 20;
            break; /* L2_CACHE_SIZE */
        case 75:
            *value = 9;
            break; /* COMPUTE_CAPABILITY_MAJOR */
        case 97:
            *value = 232448;
            break; /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
        default:
            *value = 0;
            break;
    }
    return 0;
}
ENTRY int cuDeviceTotalMem_v2(size_t* bytes, UNUSED int device) {
    *bytes = (size_t)1 << 37;
    return 0;
}
ENTRY int cuDevicePrimaryCtxRetain(void** context, UNUSED int device) {
    *context = some;
    return 0;
}
ENTRY int cuCtxGetCurrent(void** context) {
    *context = some;
    return 0;
}
ENTRY int cuCtxGetDevice(int* device) {
    *device = 0;
    return 0;
}
ENTRY int cuModuleLoadData(void** module, UNUSED const void* image) {
    *module = some;
    return 0;
}
ENTRY int cuModuleGetFunction(void** function, UNUSED void* module, UNUSED const char* name) {
    *function = some;
    return 0;
}
ENTRY int cuFuncGetAttribute(int* value, int attribute, UNUSED void* function) {
    *value = attribute == 0 ? 1024 : 0; /* MAX_THREADS_PER_BLOCK */
    return 0;
}
ENTRY int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    void* const memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    *address = (uint64_t)(uintptr_t)memory;
    return memory != NULL ? 0 : 2;
}
ENTRY int cuMemFree_v2(uint64_t address) {
    free((void*)(uintptr_t)address);
    return 0;
}
ENTRY int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
    memcpy((void*)(uintptr_t)to, from, bytes);
    return 0;
}
ENTRY int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
    memcpy(to, (const void*)(uintptr_t)from, bytes);
    return 0;
}
ENTRY int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
    memcpy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
    return 0;
}
ENTRY int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
    memset((void*)(uintptr_t)to, value, bytes);
    return 0;
}
ENTRY int cuStreamCreate(void** stream, UNUSED unsigned flags) {
    *stream = some;
    return 0;
}
ENTRY int cuStreamIsCapturing(UNUSED void* stream, int* status) {
    *status = capturing;
    return 0;
}
ENTRY int cuStreamBeginCapture_v2(UNUSED void* stream, UNUSED int mode) {
    capturing = 1;
    num_captured = 0;
    return 0;
}
/* A graph is the number of its kernels, and one more so that it is not null. */
ENTRY int cuStreamEndCapture(UNUSED void* stream, void** graph) {
    capturing = 0;
    *graph = (void*)(num_captured + 1);
    return 0;
}
ENTRY int cuGraphGetNodes(void* graph, UNUSED void** nodes, size_t* count) {
    *count = (uintptr_t)graph - 1;
    return 0;
}
ENTRY int cuGraphKernelNodeGetParams_v2(UNUSED void* node, void** parameters) {
    memset(parameters, 0, 72); /* CUDA_KERNEL_NODE_PARAMS_v2 */
    parameters[0] = some;
    return 0;
}
ENTRY int cuGraphInstantiateWithFlags(void** executable, void* graph, UNUSED unsigned long long flags) {
    *executable = graph;
    return 0;
}
ENTRY int cuEventCreate(void** event, UNUSED unsigned flags) {
    *event = some;
    return 0;
}
ENTRY int cuEventElapsedTime(float* milliseconds, UNUSED void* begin, UNUSED void* end) {
    const char* const set = getenv("KILN_DOUBLE_MS");
    *milliseconds = set != NULL ? strtof(set, NULL) : 1.5f;
    return 0;
}
ENTRY int cuLaunchKernel(UNUSED void* function, UNUSED unsigned grid_x, UNUSED unsigned grid_y,
                         UNUSED unsigned grid_z, UNUSED unsigned block_x, UNUSED unsigned block_y,
                         UNUSED unsigned block_z, UNUSED unsigned shared_bytes, UNUSED void* stream,
                         UNUSED void** arguments, UNUSED void** extra) {
    num_captured += (uintptr_t)capturing;
    return 0;
}
ENTRY int cuGetErrorName(UNUSED int error, const char** name) {
    *name = "CUDA_ERROR_OF_THE_DOUBLE";
    return 0;
}
ENTRY int cuGetErrorString(UNUSED int error, const char** text) {
    *text = "an error";
    return 0;
}
