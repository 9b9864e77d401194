/* kiln from C: a problem is asked for, prepared, launched on the simulator and checked. Prints what is wrong
 * and returns 1. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/formats.h"
#include "kiln/kiln.h"

enum { N = 4096, K = 1024, M = 3, LDX = K + 8 };

typedef int (*malloc_fn)(void**, size_t);
typedef int (*copy_fn)(void*, const void*, size_t, int);
typedef int (*free_fn)(void*);

static void* entry(void* library, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return symbol;
}

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                               \
        }                                                                           \
    } while (0)

static int fail(const char* what, kiln_error* error) {
    fprintf(stderr, "%s: %s (status %d, stage %d)\n", what, kiln_error_get_message(error),
            (int)kiln_error_get_status(error), (int)kiln_error_get_stage(error));
    kiln_error_free(error);
    return 1;
}

/* A callback of the log: counts in its context. */
static void count_line(void* context, int32_t level, const char* line) {
    *(int*)context += level == KILN_LOG_INFO && strncmp(line, "{\"time\":", 8) == 0;
}

int main(void) {
    char folder[] = "/tmp/kiln-c-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE(setenv("KILN_CACHE_DIR", folder, 1) == 0);

    kiln_config config = KILN_CONFIG_INIT;
    config.device = "sim";
    kiln_service* service = NULL;
    kiln_plan* plan = NULL;
    kiln_error* error = NULL;
    if (kiln_service_open(&config, &service, &error) != KILN_OK) {
        return fail("open", error);
    }
    int32_t devices = 0;
    if (kiln_device_count(service, &devices, &error) != KILN_OK) {
        return fail("count", error);
    }
    REQUIRE(devices >= 1);
    kiln_device_info info;
    memset(&info, 0, sizeof(info));
    info.struct_size = sizeof(info);
    REQUIRE(kiln_device_get_info(service, 0, &info, NULL) == KILN_OK);
    REQUIRE(info.simulated == 1);
    REQUIRE(strncmp(info.target, "gfx950", 6) == 0);
    REQUIRE(kiln_device_get_info(service, devices, &info, NULL) == -KILN_ERROR_NOT_FOUND);

    kiln_linear problem = KILN_LINEAR_INIT;
    problem.n = N;
    problem.k = K;
    REQUIRE(kiln_linear_supports(service, 0, &problem, NULL) == KILN_OK);
    if (kiln_linear_prepare(service, 0, &problem, NULL, &plan, &error) != KILN_OK) {
        return fail("prepare", error);
    }
    REQUIRE(kiln_plan_device(plan) == 0);
    REQUIRE(kiln_plan_max_m(plan) == 32);
    REQUIRE(strcmp(kiln_plan_kernel_name(plan, 32), "kiln_linear_n4096_k1024_m32") == 0);
    REQUIRE(kiln_plan_kernel_name(plan, 33) == NULL);

    kiln_router routing = KILN_ROUTER_INIT;
    routing.hidden = 4096;
    routing.experts = 512;
    routing.top_k = 10;
    REQUIRE(kiln_router_supports(service, 0, &routing, NULL) == KILN_OK);
    routing.simulated = 1;
    REQUIRE(kiln_router_supports(service, 0, &routing, NULL) == KILN_DECLINE_SIMULATED_ROUTING);
    routing.simulated = 0;
    routing.reserved = 1;
    REQUIRE(kiln_router_supports(service, 0, &routing, NULL) == -KILN_ERROR_INVALID_ARGUMENT);
    REQUIRE(kiln_router_launch(plan, NULL, 0, NULL) ==
            -KILN_ERROR_INVALID_ARGUMENT); /* of another operator */

    /* x = 1, w = 1, scales 1: every output is K. */
    static uint16_t x[(M - 1) * LDX + K];
    static uint8_t row_major[N * K];
    static uint8_t w[N * K];
    static float w_scale[N / 128 * (K / 128)];
    static uint16_t out[M * N];
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); ++i) {
        x[i] = 0x3f80;
    }
    memset(row_major, 0x38, sizeof(row_major));
    if (kiln_shuffle_weights(row_major, 1, N, K, KILN_ROWS_AS_THEY_ARE, w, &error) != KILN_OK) {
        return fail("shuffle", error);
    }
    for (size_t i = 0; i < sizeof(w_scale) / sizeof(w_scale[0]); ++i) {
        w_scale[i] = 1.0f;
    }

    void* driver = dlopen(KILN_SIM_LIBRARY, RTLD_NOW);
    REQUIRE(driver != NULL);
    malloc_fn hip_malloc;
    copy_fn hip_memcpy;
    free_fn hip_free;
    *(void**)&hip_malloc = entry(driver, "hipMalloc");
    *(void**)&hip_memcpy = entry(driver, "hipMemcpy");
    *(void**)&hip_free = entry(driver, "hipFree");
    void *device_x, *device_w, *device_w_scale, *device_out;
    REQUIRE(hip_malloc(&device_x, sizeof(x)) == 0);
    REQUIRE(hip_malloc(&device_w, sizeof(w)) == 0);
    REQUIRE(hip_malloc(&device_w_scale, sizeof(w_scale)) == 0);
    REQUIRE(hip_malloc(&device_out, sizeof(out)) == 0);
    REQUIRE(hip_memcpy(device_x, x, sizeof(x), 1) == 0);
    REQUIRE(hip_memcpy(device_w, w, sizeof(w), 1) == 0);
    REQUIRE(hip_memcpy(device_w_scale, w_scale, sizeof(w_scale), 1) == 0);

    kiln_label rank = {"rank", "3"};
    char* metrics = NULL;
    if (kiln_service_metrics(service, &rank, 1, &metrics, &error) != KILN_OK) {
        return fail("metrics", error);
    }
    REQUIRE(strstr(metrics, "\n# TYPE kiln_loads_total counter\nkiln_loads_total{rank=\"3\"} 4\n") != NULL);
    kiln_text_free(metrics);

    int lines = 0;
    REQUIRE(kiln_log_set_callback(count_line, &lines) == KILN_OK);
    REQUIRE(kiln_log_set("info", "json", NULL) == KILN_OK);
    problem.n = 48;
    REQUIRE(kiln_linear_supports(service, 0, &problem, NULL) == KILN_DECLINE_SHAPE);
    REQUIRE(lines == 1);
    REQUIRE(kiln_log_set("warning", "text", NULL) == KILN_OK);
    REQUIRE(kiln_log_set("loud", NULL, NULL) == -KILN_ERROR_INVALID_ARGUMENT);
    REQUIRE(kiln_log_set_callback(NULL, NULL) == KILN_OK);

    /* A plan may outlive its service. */
    kiln_statistics statistics = KILN_STATISTICS_INIT;
    REQUIRE(kiln_service_statistics(service, &statistics) == KILN_OK);
    REQUIRE(statistics.compiles == 4);
    REQUIRE(statistics.loads == 4);
    kiln_service_release(service);

    kiln_linear_args args = {device_x, LDX, device_w, device_w_scale, device_out};
    REQUIRE(kiln_linear_launch(plan, NULL, M, &args) == KILN_OK);
    REQUIRE(kiln_linear_launch(plan, NULL, 0, NULL) == KILN_OK);
    REQUIRE(kiln_linear_launch(NULL, NULL, M, &args) == -KILN_ERROR_INVALID_ARGUMENT);
    REQUIRE(kiln_linear_launch(plan, NULL, M, NULL) == -KILN_ERROR_INVALID_ARGUMENT);
    REQUIRE(hip_memcpy(out, device_out, sizeof(out), 2) == 0);
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); ++i) {
        REQUIRE(out[i] == 0x4480); /* 1024 */
    }
    kiln_plan_release(plan);
    hip_free(device_x);
    hip_free(device_w);
    hip_free(device_w_scale);
    hip_free(device_out);
    kiln_service_release(NULL);
    kiln_plan_release(NULL);
    kiln_error_free(NULL);

    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}
