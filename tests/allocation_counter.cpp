// A file of its own, so that no compiler sees through the pair and calls it mismatched.
#include "tests/allocation_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* pointer = std::malloc(bytes)) {
        return pointer;
    }
    throw std::bad_alloc();
}
// Under AddressSanitizer the library's own would not come through the one above.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
void operator delete(void* pointer) noexcept {
    std::free(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
    std::free(pointer);
}

namespace kiln::test {

std::uint64_t num_allocations() {
    return allocations;
}

}  // namespace kiln::test
