/* A program that ends while its kernels have not, and never will: endless CODE_OBJECT_FILE */
#include <stdio.h>

#include "hip_plain.h"

#define CHECK(call)                                                      \
    do {                                                                 \
        const int error_ = (call);                                       \
        if (error_ != 0) {                                               \
            fprintf(stderr, "%s: %s\n", #call, hipGetErrorName(error_)); \
            return 1;                                                    \
        }                                                                \
    } while (0)

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: endless CODE_OBJECT_FILE\n");
        return 2;
    }
    hipModule_t module;
    hipFunction_t endless;
    int* flag;
    CHECK(hipModuleLoad(&module, argv[1]));
    CHECK(hipModuleGetFunction(&endless, module, "endless"));
    CHECK(hipMalloc((void**)&flag, sizeof *flag));
    CHECK(hipMemset(flag, 0, sizeof *flag));
    hipStream_t streams[] = {NULL, (hipStream_t)2}; /* the null stream and hipStreamPerThread */
    for (int n = 0; n < 2; ++n) {
        void* arguments[] = {&flag};
        CHECK(hipModuleLaunchKernel(endless, 3, 1, 1, 64, 1, 1, 0, streams[n], arguments, NULL));
    }
    printf("PASSED\n");
    return 0;
}
