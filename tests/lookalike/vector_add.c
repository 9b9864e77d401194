/* A plain HIP program: vector addition through the module interface, with streams, events and a graph.
 *
 * Knows nothing of kiln or of simulators; it is linked against libamdhip64 and runs on whichever one it
 * finds. vector_add CODE_OBJECT_FILE
 */
#include <stdio.h>
#include <stdlib.h>

#include "hip_plain.h"

#define CHECK(call)                                                                                      \
    do {                                                                                                 \
        const int error_ = (call);                                                                       \
        if (error_ != 0) {                                                                               \
            fprintf(stderr, "%s: %s (%s)\n", #call, hipGetErrorName(error_), hipGetErrorString(error_)); \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

enum { kCount = 1000, kBlock = 256 };

static void expect(const float* c, const float* a, const float* b, const char* what) {
    for (int i = 0; i < kCount; ++i) {
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "%s: element %d is %g, expected %g\n", what, i, c[i], a[i] + b[i]);
            exit(1);
        }
    }
    printf("%s is right\n", what);
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: vector_add CODE_OBJECT_FILE\n");
        return 2;
    }
    int devices = 0;
    char name[256];
    CHECK(hipInit(0));
    CHECK(hipGetDeviceCount(&devices));
    CHECK(hipDeviceGetName(name, sizeof name, 0));
    printf("%d devices, the first is %s\n", devices, name);

    hipModule_t module;
    hipFunction_t add;
    CHECK(hipModuleLoad(&module, argv[1]));
    CHECK(hipModuleGetFunction(&add, module, "vector_add"));

    const size_t bytes = kCount * sizeof(float);
    float *a, *b, *c, *device_a, *device_b, *device_c;
    CHECK(hipHostMalloc((void**)&a, bytes, 0));
    CHECK(hipHostMalloc((void**)&b, bytes, 0));
    CHECK(hipHostMalloc((void**)&c, bytes, 0));
    CHECK(hipMalloc((void**)&device_a, bytes));
    CHECK(hipMalloc((void**)&device_b, bytes));
    CHECK(hipMalloc((void**)&device_c, bytes));
    for (int i = 0; i < kCount; ++i) {
        a[i] = (float)i;
        b[i] = (float)(3 * i) / 2;
    }

    hipStream_t stream;
    hipEvent_t start, stop;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    int count = kCount;
    void* arguments[] = {&device_a, &device_b, &device_c, &count};
    const unsigned blocks = (kCount + kBlock - 1) / kBlock;

    CHECK(hipMemcpyAsync(device_a, a, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipMemcpyAsync(device_b, b, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipMemsetAsync(device_c, 0, bytes, stream));
    CHECK(hipEventRecord(start, stream));
    CHECK(hipModuleLaunchKernel(add, blocks, 1, 1, kBlock, 1, 1, 0, stream, arguments, NULL));
    CHECK(hipEventRecord(stop, stream));
    CHECK(hipMemcpyAsync(c, device_c, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    expect(c, a, b, "the launch");
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));
    if (!(milliseconds > 0)) {
        fprintf(stderr, "the kernel took %g ms\n", milliseconds);
        return 1;
    }

    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipMemcpyAsync(device_a, a, bytes, hipMemcpyHostToDevice, stream));
    CHECK(hipModuleLaunchKernel(add, blocks, 1, 1, kBlock, 1, 1, 0, stream, arguments, NULL));
    CHECK(hipMemcpyAsync(c, device_c, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    for (int round = 1; round <= 2; ++round) {
        for (int i = 0; i < kCount; ++i) {
            a[i] = (float)(round * i);
        }
        CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipStreamSynchronize(stream));
        expect(c, a, b, "a replay");
    }

    CHECK(hipGraphExecDestroy(executable));
    CHECK(hipEventDestroy(start));
    CHECK(hipEventDestroy(stop));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(device_a));
    CHECK(hipFree(device_b));
    CHECK(hipFree(device_c));
    CHECK(hipHostFree(a));
    CHECK(hipHostFree(b));
    CHECK(hipHostFree(c));
    CHECK(hipModuleUnload(module));
    printf("PASSED\n");
    return 0;
}
