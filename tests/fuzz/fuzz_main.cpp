// The entry point that libFuzzer calls.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.hpp"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
    static_cast<void>(kiln::fuzz::run({reinterpret_cast<const std::byte*>(data), size}));
    return 0;
}
