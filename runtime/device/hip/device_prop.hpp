// hipDeviceProp_tR0600, as HIP lays it out since 6.0: what hipGetDevicePropertiesR0600 fills. See types.hpp
// for the source.
#pragma once

#include <cstddef>

namespace kiln::hip {

struct hipUUID {
    char bytes[16];
};

struct hipDeviceProp_t {
    char name[256];
    hipUUID uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    std::size_t totalGlobalMem;
    std::size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    std::size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;  // kHz
    std::size_t totalConstMem;
    int major;
    int minor;
    std::size_t textureAlignment;
    std::size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int textureAndSurfaceLimits[40];  // maxTexture1D to maxSurfaceCubemapLayered: kiln has no textures
    std::size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;  // kHz
    int memoryBusWidth;   // bits
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    std::size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    int cooperativeMultiDeviceLaunch;
    std::size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    std::size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseHipArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingHipArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
    int reserved[63];
    int hipReserved[32];
    char gcnArchName[256];  // "gfx950:sramecc+:xnack-"
    std::size_t maxSharedMemoryPerMultiProcessor;
    int clockInstructionRate;  // kHz
    unsigned arch;             // 17 feature bits, hipDeviceArch_t
    unsigned* hdpMemFlushCntl;
    unsigned* hdpRegFlushCntl;
    int cooperativeMultiDeviceUnmatchedFunc;
    int cooperativeMultiDeviceUnmatchedGridDim;
    int cooperativeMultiDeviceUnmatchedBlockDim;
    int cooperativeMultiDeviceUnmatchedSharedMem;
    int isLargeBar;
    int asicRevision;
};
static_assert(sizeof(hipDeviceProp_t) == 1472);
static_assert(offsetof(hipDeviceProp_t, totalGlobalMem) == 288);
static_assert(offsetof(hipDeviceProp_t, warpSize) == 308);
static_assert(offsetof(hipDeviceProp_t, multiProcessorCount) == 388);
static_assert(offsetof(hipDeviceProp_t, reserved) == 780);
static_assert(offsetof(hipDeviceProp_t, gcnArchName) == 1160);
static_assert(offsetof(hipDeviceProp_t, asicRevision) == 1468);

}  // namespace kiln::hip
