/* The few calls of the GPU driver that a small engine makes itself, found in the driver that it chose. */
#ifndef DRIVER_H_
#define DRIVER_H_

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct driver {
    int (*allocate)(void** pointer, size_t bytes);
    int (*copy)(void* to, const void* from, size_t bytes, int kind);
    int (*synchronise)(void);
};
enum { kToDevice = 1, kToHost = 2 };

static void* driver_entry(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        printf("%s has no %s\n", DRIVER, name);
        exit(1);
    }
    return found;
}

/* Stored through void**, since ISO C has no conversion from an object pointer to a function pointer. */
static struct driver open_driver(void) {
    struct driver driver;
    void* library = dlopen(DRIVER, RTLD_NOW);
    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    *(void**)(&driver.allocate) = driver_entry(library, "hipMalloc");
    *(void**)(&driver.copy) = driver_entry(library, "hipMemcpy");
    *(void**)(&driver.synchronise) = driver_entry(library, "hipDeviceSynchronize");
    return driver;
}

static void* to_device(const struct driver* driver, const void* host, size_t bytes) {
    void* device = NULL;
    if (driver->allocate(&device, bytes) != 0 || driver->copy(device, host, bytes, kToDevice) != 0) {
        printf("the driver refused %zu bytes\n", bytes);
        exit(1);
    }
    return device;
}

#endif
