#include "tools/bench/gpu.d/streaming_read.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace kiln::bench {

namespace {

// 16-byte loads that a thread has in flight, one kernel for each.
constexpr std::array<unsigned, 4> kInFlight = {2, 4, 8, 16};
constexpr unsigned kBulkThreads = 32;
constexpr unsigned kMaxStages = 32;

const char* const kSource = R"cuda(
struct Quad { unsigned a, b, c, d; };

__device__ Quad load(const Quad* from) {
    Quad q;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(q.a), "=r"(q.b), "=r"(q.c), "=r"(q.d) : "l"(from));
    return q;
}

// The sum is never this, as far as a compiler can know: what was read must arrive.
__device__ void keep(unsigned sum, unsigned* sink) {
    if (sum == 0x9e3779b9u) {
        *sink = sum;
    }
}

template <int kInFlight>
__device__ void by_loads(const Quad* data, unsigned long long quads, unsigned* sink) {
    const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    unsigned long long at = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (; at + (kInFlight - 1) * step < quads; at += kInFlight * step) {
        Quad q[kInFlight];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
            q[i] = load(data + at + i * step);
        }
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) {
            sum ^= q[i].a ^ q[i].b ^ q[i].c ^ q[i].d;
        }
    }
#pragma unroll
    for (int i = 0; i < kInFlight - 1; ++i) {
        if (at + i * step < quads) {
            const Quad q = load(data + at + i * step);
            sum ^= q.a ^ q.b ^ q.c ^ q.d;
        }
    }
    keep(sum, sink);
}

#define KILN_READ(n) \
    extern "C" __global__ void read_##n(const Quad* data, unsigned long long quads, unsigned* sink) { \
        by_loads<n>(data, quads, sink); \
    }
KILN_READ(2)
KILN_READ(4)
KILN_READ(8)
KILN_READ(16)

// A block reads every gridDim.x-th piece of stage_bytes into a ring of stages. One thread does it all.
extern "C" __global__ void read_bulk(const char* data, unsigned long long bytes, unsigned stage_bytes, unsigned stages) {
    extern __shared__ __align__(128) char ring[];
    __shared__ __align__(8) unsigned long long full[32];
    if (threadIdx.x != 0) {
        return;
    }
    const unsigned ring_at = static_cast<unsigned>(__cvta_generic_to_shared(ring));
    const unsigned full_at = static_cast<unsigned>(__cvta_generic_to_shared(full));
    for (unsigned i = 0; i < stages; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(full_at + 8 * i) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * stage_bytes;
    unsigned long long next = static_cast<unsigned long long>(blockIdx.x) * stage_bytes;
    unsigned asked = 0;
    const auto ask = [&] {
        const unsigned stage = asked % stages;
        const unsigned long long left = bytes - next;
        const unsigned size = left < stage_bytes ? static_cast<unsigned>(left) : stage_bytes;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(full_at + 8 * stage), "r"(size) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                     " [%0], [%1], %2, [%3], %4;"
                     :: "r"(ring_at + stage * stage_bytes), "l"(data + next), "r"(size), "r"(full_at + 8 * stage),
                        "l"(policy) : "memory");
        next += step;
        ++asked;
    };
    while (asked < stages && next < bytes) {
        ask();
    }
    for (unsigned done = 0; done < asked; ++done) {
        const unsigned parity = (done / stages) & 1u;
        unsigned ready = 0;
        while (ready == 0) {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(ready) : "r"(full_at + 8 * (done % stages)), "r"(parity) : "memory");
        }
        if (next < bytes) {
            ask();
        }
    }
}
)cuda";

}  // namespace

std::string ReadShape::text() const {
    if (bulk) {
        return "bulk copies of " + std::to_string(stage_bytes) + " bytes, " + std::to_string(in_flight) +
               " in flight, " + std::to_string(blocks_per_processor) + " blocks a multiprocessor";
    }
    const std::string grid = blocks_per_processor == 0
                                 ? "one pass"
                                 : std::to_string(blocks_per_processor) + " blocks a multiprocessor";
    return std::to_string(in_flight) + " loads of 16 bytes in flight, " + std::to_string(threads) +
           " threads, " + grid;
}

std::vector<ReadShape> read_shapes() {
    std::vector<ReadShape> shapes;
    for (const auto& [threads, blocks, in_flight] : {std::array{256u, 0u, 2u},
                                                     {256u, 0u, 4u},
                                                     {256u, 0u, 8u},
                                                     {512u, 0u, 4u},
                                                     {1024u, 1u, 8u},
                                                     {1024u, 2u, 4u},
                                                     {1024u, 2u, 8u},
                                                     {512u, 4u, 4u},
                                                     {512u, 2u, 16u},
                                                     {256u, 8u, 4u},
                                                     {256u, 4u, 8u}}) {
        shapes.push_back({.threads = threads, .blocks_per_processor = blocks, .in_flight = in_flight});
    }
    for (const auto& [blocks, stages, bytes] : {std::array{1u, 12u, 16384u},
                                                {1u, 24u, 8192u},
                                                {2u, 12u, 8192u},
                                                {2u, 24u, 4096u},
                                                {4u, 12u, 4096u}}) {
        shapes.push_back(
            {.bulk = true, .blocks_per_processor = blocks, .in_flight = stages, .stage_bytes = bytes});
    }
    return shapes;
}

const char* streaming_read_source() {
    return kSource;
}

StreamingRead::StreamingRead() : module_(cuda::load_source("streaming_read.cu", kSource)), sink_(4) {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    const auto function = [&](const std::string& name) {
        cuda::Function found = nullptr;
        gpu.check(gpu.calls().cuModuleGetFunction(&found, module_, name.c_str()), "cuModuleGetFunction");
        return found;
    };
    for (const unsigned in_flight : kInFlight) {
        by_loads_.push_back(function("read_" + std::to_string(in_flight)));
    }
    by_bulk_ = function("read_bulk");
    unsigned most = 0;
    for (const ReadShape& shape : read_shapes()) {
        most = std::max(most, shape.bulk ? shape.in_flight * shape.stage_bytes : 0);
    }
    constexpr int kMaxDynamicSharedBytes = 8;
    gpu.check(gpu.calls().cuFuncSetAttribute(by_bulk_, kMaxDynamicSharedBytes, static_cast<int>(most)),
              "cuFuncSetAttribute");
}

void StreamingRead::enqueue(const ReadShape& shape, cuda::Address data, std::size_t bytes) const {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    const auto processors = static_cast<unsigned>(gpu.num_multiprocessors());
    if (shape.bulk) {
        if (shape.in_flight > kMaxStages) {
            throw std::logic_error("more stages than the kernel has barriers");
        }
        unsigned long long size = bytes;
        unsigned stage_bytes = shape.stage_bytes;
        unsigned stages = shape.in_flight;
        void* arguments[] = {&data, &size, &stage_bytes, &stages};
        gpu.check(
            gpu.calls().cuLaunchKernel(by_bulk_, processors * shape.blocks_per_processor, 1, 1, kBulkThreads,
                                       1, 1, stage_bytes * stages, gpu.stream(), arguments, nullptr),
            "cuLaunchKernel");
        return;
    }
    const auto which = std::find(kInFlight.begin(), kInFlight.end(), shape.in_flight) - kInFlight.begin();
    unsigned long long quads = bytes / 16;
    const unsigned long long one_pass = static_cast<unsigned long long>(shape.threads) * shape.in_flight;
    const unsigned blocks = shape.blocks_per_processor != 0
                                ? processors * shape.blocks_per_processor
                                : static_cast<unsigned>((quads + one_pass - 1) / one_pass);
    cuda::Address sink = sink_.address();
    void* arguments[] = {&data, &quads, &sink};
    gpu.check(gpu.calls().cuLaunchKernel(by_loads_.at(static_cast<std::size_t>(which)), blocks, 1, 1,
                                         shape.threads, 1, 1, 0, gpu.stream(), arguments, nullptr),
              "cuLaunchKernel");
}

}  // namespace kiln::bench
