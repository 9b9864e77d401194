/* A double of CUDA's driver: the entry points that kiln requires and nothing behind them.
 * KILN_DOUBLE_DEVICES says how many devices it reports; double_launch_error what a launch answers.
 */
#include <stdlib.h>
#include <string.h>

int double_launch_error;

static char contexts[16];
static _Thread_local void* current;

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
/* 9 for the major and the minor number of the compute capability too, and for all else. */
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)attribute, (void)device;
    *value = 9;
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    *bytes = 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = &contexts[device];
    return 0;
}
int cuCtxGetCurrent(void** context) {
    *context = current;
    return 0;
}
int cuCtxSetCurrent(void* context) {
    current = context;
    return 0;
}
int cuCtxGetDevice(int* device) {
    *device = (int)((char*)current - contexts);
    return current != NULL ? 0 : 201;
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
    return current != NULL ? double_launch_error : 201;
}
