/* The same layer as in engine.cpp, at M = 1 and through the C interface alone. */
#include <string.h>

#include "driver.h"
#include "kiln/kiln.h"

enum { kN = 4096, kK = 2048, kBf16One = 0x3f80, kE4m3One = 0x38, kBf16K = 0x4500 };

static uint16_t x[kK];
static uint8_t w[kN * kK];
static float scale[kN / 128 * (kK / 128)];
static uint16_t out[kN];

static int fail(const char* what, kiln_error* error) {
    printf("%s: %s\n", what, kiln_error_get_message(error));
    kiln_error_free(error);
    return 1;
}

int main(void) {
    const struct driver gpu = open_driver();
    kiln_service* service = NULL;
    kiln_plan* plan = NULL;
    kiln_error* error = NULL;
    kiln_linear problem = KILN_LINEAR_INIT;
    problem.n = kN;
    problem.k = kK;
    if (kiln_service_open(NULL, &service, &error) != KILN_OK)
        return fail("open", error);
    if (kiln_linear_prepare(service, 0, &problem, NULL, &plan, &error) != KILN_OK)
        return fail("prepare", error);
    kiln_service_release(service); /* a plan outlives its service */

    for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i)
        x[i] = kBf16One;
    for (size_t i = 0; i < sizeof scale / sizeof scale[0]; ++i)
        scale[i] = 1.0F;
    memset(w, kE4m3One, sizeof w);
    const kiln_linear_args args = {to_device(&gpu, x, sizeof x), kK, to_device(&gpu, w, sizeof w),
                                   to_device(&gpu, scale, sizeof scale), to_device(&gpu, out, sizeof out)};
    const kiln_status status = kiln_linear_launch(plan, NULL, 1, &args);
    if (status != KILN_OK || gpu.synchronise() != 0 || gpu.copy(out, args.out, sizeof out, kToHost) != 0) {
        printf("launch: %s\n", kiln_status_text(status));
        return 1;
    }
    for (size_t i = 0; i < sizeof out / sizeof out[0]; ++i) {
        if (out[i] != kBf16K) {
            printf("result %zu is %#x, expected %#x\n", i, (unsigned)out[i], (unsigned)kBf16K);
            return 1;
        }
    }
    printf("C: kiln %s, %s ran, all results are right\n", kiln_version(), kiln_plan_kernel_name(plan, 1));
    kiln_plan_release(plan);
    return 0;
}
