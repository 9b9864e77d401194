/* A double of the HIP driver: the entry points that kiln requires and nothing behind them.
 * KILN_DOUBLE_DEVICES says how many devices it reports; built with KILN_DOUBLE_LACKS_LAUNCH it is no HIP
 * runtime; built with KILN_DOUBLE_CONTROLLED, variables that it exports say what it answers.
 */
#include <stdlib.h>
#include <string.h>

static int device;

#ifdef KILN_DOUBLE_CONTROLLED
int double_launch_error; /* what a launch answers */
int double_capturing;    /* whether any stream captures: a hipStreamCaptureStatus */
void double_set_device(int wanted) {
    device = wanted;
}
int hipStreamIsCapturing(void* stream, int* status) {
    (void)stream;
    *status = double_capturing;
    return 0;
}
#else
enum { double_launch_error = 0 };
#endif

int hipGetDeviceCount(int* count) {
    const char* const text = getenv("KILN_DOUBLE_DEVICES");
    *count = text != NULL ? atoi(text) : 1;
    return *count > 0 ? 0 : 100;
}
int hipGetDevice(int* current) {
    *current = device;
    return 0;
}
int hipSetDevice(int wanted) {
    device = wanted;
    return 0;
}
int hipGetDevicePropertiesR0600(char* properties, int ordinal) {
    (void)ordinal;
    memset(properties, 0, 1472);
    strcpy(properties, "double");
    strcpy(properties + 1160, "gfx950:sramecc+:xnack-");
    return 0;
}
int hipModuleLoadData(void** module, const void* image) {
    *module = (void*)image;
    return 0;
}
int hipModuleUnload(void* module) {
    (void)module;
    return 0;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
    (void)name;
    *function = module;
    return 0;
}
#ifndef KILN_DOUBLE_LACKS_LAUNCH
int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                          void** params, void** extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)params, (void)extra;
    return double_launch_error;
}
#endif
int hipGetLastError(void) {
    return 0;
}
