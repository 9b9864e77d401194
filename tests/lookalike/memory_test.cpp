#include <cstring>
#include <vector>

#include "tests/lookalike/support.hpp"

using namespace kiln::test;

TEST_CASE("AllocationsAreAlignedAndCounted") {
    std::size_t before = 0, after = 0, total = 0;
    REQUIRE(hipMemGetInfo(&before, &total) == kSuccess);
    void* pointer = nullptr;
    REQUIRE(hipMalloc(&pointer, 1000) == kSuccess);
    CHECK(reinterpret_cast<std::uintptr_t>(pointer) % 256 == 0);
    REQUIRE(hipMemGetInfo(&after, &total) == kSuccess);
    CHECK(before - after >= 1000);
    CHECK(hipFree(pointer) == kSuccess);
    CHECK(hipFree(pointer) == kInvalidValue);
    CHECK(hipFree(nullptr) == kSuccess);
    REQUIRE(hipMemGetInfo(&after, &total) == kSuccess);
    CHECK(after == before);
    CHECK(hipMalloc(&pointer, total + 1) == 2);  // hipErrorOutOfMemory
    CHECK(hipMalloc(&pointer, 0) == kSuccess);
    CHECK(pointer == nullptr);
}

TEST_CASE("PointersSayWhatTheyAre") {
    REQUIRE(hipSetDevice(1) == kSuccess);
    void* device = nullptr;
    void* host = nullptr;
    REQUIRE(hipMalloc(&device, 64) == kSuccess);
    REQUIRE(hipHostMalloc(&host, 64, 0) == kSuccess);
    REQUIRE(hipSetDevice(0) == kSuccess);
    hipPointerAttribute_t attributes;
    CHECK(hipPointerGetAttributes(&attributes, static_cast<char*>(device) + 63) == kSuccess);
    CHECK(attributes.type == hipMemoryTypeDevice);
    CHECK(attributes.device == 1);
    CHECK(hipPointerGetAttributes(&attributes, host) == kSuccess);
    CHECK(attributes.type == hipMemoryTypeHost);
    CHECK(attributes.hostPointer == host);
    CHECK(hipPointerGetAttributes(&attributes, &attributes) == kSuccess);
    CHECK(attributes.type == hipMemoryTypeUnregistered);
    CHECK(hipFree(device) == kSuccess);
    CHECK(hipHostFree(host) == kSuccess);
}

TEST_CASE("CopiesStayInsideAllocations") {
    const Array<std::uint32_t> array(16);
    std::uint32_t values[17] = {1, 2, 3};
    CHECK(hipMemcpy(array.data, values, 64, hipMemcpyHostToDevice) == kSuccess);
    CHECK(hipMemcpy(array.data, values, 68, hipMemcpyHostToDevice) == kInvalidValue);
    CHECK(hipMemcpy(array.data + 1, values, 64, hipMemcpyDefault) == kInvalidValue);
    CHECK(hipMemcpy(values, values + 1, 4, hipMemcpyDeviceToHost) ==
          kInvalidValue);  // neither is the device's
    CHECK(hipMemset(array.data, 0, 65) == kInvalidValue);
    CHECK(hipMemset(values, 0, 4) == kInvalidValue);
    CHECK(array.read()[2] == 3);
}

TEST_CASE("FillsHaveThreeWidths") {
    const Array<std::uint32_t> array(4);
    CHECK(hipMemset(array.data, 0x1ab, 16) == kSuccess);  // one byte of the value
    CHECK(array.read()[3] == 0xababababU);
    CHECK(hipMemsetD16(array.data, 0x1234, 3) == kSuccess);
    CHECK(array.read() == std::vector<std::uint32_t>{0x12341234U, 0xabab1234U, 0xababababU, 0xababababU});
    CHECK(hipMemsetD32Async(array.data, -2, 4, nullptr) == kSuccess);
    CHECK(array.read()[0] == 0xfffffffeU);
    CHECK(hipMemsetD16(reinterpret_cast<char*>(array.data) + 1, 0, 1) == kInvalidValue);
}

TEST_CASE("FreeAsyncTakesItsTurn") {
    const Stream stream;
    void* pointer = nullptr;
    REQUIRE(hipMallocAsync(&pointer, 256, stream) == kSuccess);
    Gate gate(stream);
    CHECK(hipMemsetAsync(pointer, 1, 256, stream) == kSuccess);
    CHECK(hipFreeAsync(pointer, stream) == kSuccess);
    hipPointerAttribute_t attributes;
    CHECK(hipPointerGetAttributes(&attributes, pointer) == kSuccess);
    CHECK(attributes.type == hipMemoryTypeDevice);
    gate.open();
    CHECK(hipStreamSynchronize(stream) == kSuccess);
    CHECK(hipPointerGetAttributes(&attributes, pointer) == kSuccess);
    CHECK(attributes.type == hipMemoryTypeUnregistered);
}
