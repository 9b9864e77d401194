/* A host that opens libkiln itself and closes it again: as a plug-in system does. Arguments: libkiln, the
 * simulator's libamdhip64, and "released" or "live" for what is held when it is closed. Returns 1 and says
 * what is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                               \
        }                                                                           \
    } while (0)

static void* library;
static void* driver;
static kiln_service* service;
static kiln_plan* plan;
static kiln_linear_args args;

/* Of the library as it is open now. */
#define KILN(name) ((__typeof__(&name))dlsym(library, #name))

static int make_arrays(void) {
    int (*const allocate)(void**, size_t) = (int (*)(void**, size_t))dlsym(driver, "hipMalloc");
    int (*const fill)(void*, int, size_t) = (int (*)(void*, int, size_t))dlsym(driver, "hipMemset");
    void* arrays[4];
    for (int i = 0; i < 4; ++i) {
        REQUIRE(allocate(&arrays[i], 1 << 14) == 0);
        REQUIRE(fill(arrays[i], 0, 1 << 14) == 0);
    }
    args.x = arrays[0];
    args.ldx = 128;
    args.w = arrays[1];
    args.w_scale = arrays[2];
    args.out = arrays[3];
    return 0;
}

static int use(void) {
    kiln_error* error = NULL;
    kiln_linear problem = KILN_LINEAR_INIT;
    problem.n = 16;
    problem.k = 128;
    REQUIRE(KILN(kiln_service_open)(NULL, &service, &error) == KILN_OK);
    REQUIRE(KILN(kiln_linear_prepare)(service, 0, &problem, NULL, &plan, &error) == KILN_OK);
    REQUIRE(KILN(kiln_linear_launch)(plan, NULL, 1, &args) == KILN_OK);
    return 0;
}

int main(int argc, char** argv) {
    REQUIRE(argc == 4);
    const int live = strcmp(argv[3], "live") == 0;
    driver = dlopen(argv[2], RTLD_NOW);
    REQUIRE(driver != NULL);
    REQUIRE(make_arrays() == 0);
    void* first = NULL;
    for (int round = 0; round < 3; ++round) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        REQUIRE(library != NULL);
        first = first != NULL ? first : library;
        REQUIRE(library == first);
        REQUIRE(use() == 0);
        __typeof__(&kiln_linear_launch) launch = KILN(kiln_linear_launch);
        if (!live) {
            KILN(kiln_plan_release)(plan);
            KILN(kiln_service_release)(service);
        }
        REQUIRE(dlclose(library) == 0);
        /* It stays where it is: what is held may be used. */
        library = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
        REQUIRE(library == first);
        REQUIRE(dlclose(library) == 0);
        REQUIRE(!live || launch(plan, NULL, 2, &args) == KILN_OK);
    }
    puts("end");
    return 0;
}
