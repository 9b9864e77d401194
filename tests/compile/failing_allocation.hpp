// Replaces operator new of the program that links it, so that one allocation of a thread can be refused.
#pragma once

#include <cstdint>

namespace kiln::compile::test {

// Refuses the allocation after the next `passed` ones of this thread, until the end of the scope: once.
class FailingAllocation {
  public:
    explicit FailingAllocation(std::uint64_t passed);
    FailingAllocation(const FailingAllocation&) = delete;
    FailingAllocation& operator=(const FailingAllocation&) = delete;
    ~FailingAllocation();
    // Whether it came to that.
    [[nodiscard]] bool happened() const;
};

}  // namespace kiln::compile::test
