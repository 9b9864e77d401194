#include "runtime/sim/hip/properties.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "runtime/sim/hip/image.hpp"

namespace kiln::sim::hip {
namespace {

// hipDeviceArch_t: atomics, doubles, votes, ballots, shuffles (bits 0 to 10), system fence (12),
// three-dimensional grids (15).
constexpr unsigned kArchFeatures = 0x07ff | 1U << 12 | 1U << 15;
constexpr int kMaxGrid = std::numeric_limits<int>::max();

template <std::size_t N>
void set_text(char (&to)[N], std::string_view text) {
    std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

}  // namespace

hipDeviceProp_t properties_of(SimDevice& device) {
    hipDeviceProp_t p{};
    set_text(p.name, "kiln gfx950 simulator");
    set_text(p.gcnArchName, kDeviceTarget);
    set_text(p.uuid.bytes, "kiln-sim-");
    p.uuid.bytes[9] = static_cast<char>('a' + device.ordinal());
    p.totalGlobalMem = device.memory().capacity_bytes();
    p.sharedMemPerBlock = kMaxLdsBytes;
    p.sharedMemPerBlockOptin = kMaxLdsBytes;
    p.sharedMemPerMultiprocessor = kMaxLdsBytes;
    p.maxSharedMemoryPerMultiProcessor = kMaxLdsBytes;
    p.regsPerBlock = 65536;
    p.regsPerMultiprocessor = 131072;
    p.warpSize = 64;
    p.memPitch = kMaxGrid;
    p.maxThreadsPerBlock = 1024;
    std::fill_n(p.maxThreadsDim, 3, 1024);
    p.maxGridSize[0] = kMaxGrid;
    p.maxGridSize[1] = p.maxGridSize[2] = 65536;
    p.clockRate = 2'400'000;
    p.totalConstMem = kMaxGrid;
    p.major = 9;
    p.minor = 5;
    p.textureAlignment = p.texturePitchAlignment = p.surfaceAlignment = 256;
    p.multiProcessorCount = 256;
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.ECCEnabled = 1;
    p.pciBusID = device.ordinal() + 1;
    p.asyncEngineCount = 8;
    p.unifiedAddressing = 1;
    p.memoryClockRate = 2'000'000;
    p.memoryBusWidth = 8192;
    p.l2CacheSize = 4 * 1024 * 1024;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.streamPrioritiesSupported = 1;
    p.managedMemory = 1;
    p.canUseHostPointerForRegisteredMem = 1;
    p.hostRegisterSupported = 1;
    p.memoryPoolsSupported = 0;
    p.clockInstructionRate = 100'000;
    p.arch = kArchFeatures;
    p.isLargeBar = 1;
    return p;
}

std::optional<int> attribute_of(SimDevice& device, int attribute) {
    const hipDeviceProp_t p = properties_of(device);
    switch (attribute) {
        case 0:
            return p.ECCEnabled;
        case 2:
            return p.asyncEngineCount;
        case 3:
            return p.canMapHostMemory;
        case 4:
            return p.canUseHostPointerForRegisteredMem;
        case 5:
            return p.clockRate;
        case 6:
            return p.computeMode;
        case 8:
            return p.concurrentKernels;
        case 10:
            return p.cooperativeLaunch;
        case 16:
            return p.integrated;
        case 19:
            return p.l2CacheSize;
        case 23:
            return p.major;
        case 24:
            return p.managedMemory;
        case 25:
            return p.maxBlocksPerMultiProcessor;
        case 26:
            return p.maxThreadsDim[0];
        case 27:
            return p.maxThreadsDim[1];
        case 28:
            return p.maxThreadsDim[2];
        case 29:
            return p.maxGridSize[0];
        case 30:
            return p.maxGridSize[1];
        case 31:
            return p.maxGridSize[2];
        case 56:
            return p.maxThreadsPerBlock;
        case 57:
            return p.maxThreadsPerMultiProcessor;
        case 58:
            return static_cast<int>(p.memPitch);
        case 59:
            return p.memoryBusWidth;
        case 60:
            return p.memoryClockRate;
        case 61:
            return p.minor;
        case 63:
            return p.multiProcessorCount;
        case 67:
            return p.pciBusID;
        case 68:
            return p.pciDeviceID;
        case 69:
            return p.pciDomainID;
        case 71:
            return p.regsPerBlock;
        case 72:
            return p.regsPerMultiprocessor;
        case 74:
            return static_cast<int>(p.sharedMemPerBlock);
        case 75:
            return static_cast<int>(p.sharedMemPerBlockOptin);
        case 76:
            return static_cast<int>(p.sharedMemPerMultiprocessor);
        case 78:
            return p.streamPrioritiesSupported;
        case 83:
            return static_cast<int>(p.totalConstMem);
        case 85:
            return p.unifiedAddressing;
        case 87:
            return p.warpSize;
        case 88:
            return p.memoryPoolsSupported;
        case 90:
            return p.hostRegisterSupported;
        case 10000:
            return p.clockInstructionRate;
        case 10002:
            return static_cast<int>(p.maxSharedMemoryPerMultiProcessor);
        case 10011:
            return p.isLargeBar;
        case 10015:
            return p.multiProcessorCount;
        case 10017:
            return p.clockInstructionRate;  // the wall clock is the same counter
        case 10018:
            return 8;  // XCDs
        case 10019:
            return 512;  // registers that a lane can address
        default:
            return std::nullopt;
    }
}

}  // namespace kiln::sim::hip
