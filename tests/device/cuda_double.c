/* A double of CUDA's driver: the entry points that kiln requires and nothing behind them.
 * KILN_DOUBLE_DEVICES says how many devices it reports; built with KILN_DOUBLE_CONTROLLED, it exports what
 * says what it answers.
 */
#include <stdlib.h>
#include <string.h>

static char contexts[16];
/* In the thread's static block: to make room for it later would be an allocation of ours. */
static _Thread_local char* current __attribute__((tls_model("initial-exec")));

#ifdef KILN_DOUBLE_CONTROLLED
int double_launch_error;    /* what a launch answers */
int double_capturing;       /* whether any stream captures: a CUstreamCaptureStatus */
static char* of_all_others; /* the context of threads that have set none */
void double_set_device(int device) {
    of_all_others = device >= 0 ? &contexts[device] : NULL;
}
int cuStreamIsCapturing(void* stream, int* status) {
    (void)stream;
    *status = double_capturing;
    return 0;
}
#else
enum { double_launch_error = 0 };
static char* const of_all_others = NULL;
#endif

static char* context(void) {
    return current != NULL ? current : of_all_others;
}

int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}
int cuDeviceGetCount(int* count) {
    const char* const text = getenv("KILN_DOUBLE_DEVICES");
    *count = text != NULL ? atoi(text) : 1;
    return 0;
}
int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetName(char* name, int size, int device) {
    (void)size, (void)device;
    strcpy(name, "double");
    return 0;
}
/* Compute capability 9.0 and 227 KiB of shared memory; of all else 1. */
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 227 * 1024 : 1;
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    *bytes = 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(char** primary, int device) {
    *primary = &contexts[device];
    return 0;
}
int cuCtxGetCurrent(char** now) {
    *now = context();
    return 0;
}
int cuCtxSetCurrent(char* wanted) {
    current = wanted;
    return 0;
}
int cuCtxGetDevice(int* device) {
    if (context() == NULL) {
        return 201;
    }
    *device = (int)(context() - contexts);
    return 0;
}
int cuModuleLoadData(void** module, const void* image) {
    *module = (void*)image;
    return 0;
}
int cuModuleUnload(void* module) {
    (void)module;
    return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
    (void)name;
    *function = module;
    return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return 0;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** params,
                   void** extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)params, (void)extra;
    return context() != NULL ? double_launch_error : 201;
}
