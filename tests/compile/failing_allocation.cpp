// A file of its own, so that no compiler sees through the pair and calls it mismatched.
#include "failing_allocation.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool armed = false;
thread_local std::uint64_t left = 0;

void* allocate(std::size_t bytes) noexcept {
    if (armed && left-- == 0) {
        armed = false;
        return nullptr;
    }
    return std::malloc(bytes != 0 ? bytes : 1);
}

}  // namespace

void* operator new(std::size_t bytes) {
    if (void* const pointer = allocate(bytes)) {
        return pointer;
    }
    throw std::bad_alloc();
}
// Under AddressSanitizer the library's own would not come through the one above.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void operator delete(void* pointer) noexcept {
    std::free(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
    std::free(pointer);
}

namespace kiln::compile::test {

FailingAllocation::FailingAllocation(std::uint64_t passed) {
    left = passed;
    armed = true;
}
FailingAllocation::~FailingAllocation() {
    armed = false;
}
bool FailingAllocation::happened() const {
    return !armed;
}

}  // namespace kiln::compile::test
