// A broken rule, on its way from the instruction that broke it to run(). Never leaves this room.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace kiln::sim {

struct Fault {
    std::string rule;
    int lane = -1;  // negative: the wave as a whole
    bool bad_address = false;
};

template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void fault(int lane, fmt::format_string<Args...> format,
                                                  Args&&... args) {
    throw Fault{fmt::format(format, std::forward<Args>(args)...), lane};
}

}  // namespace kiln::sim
