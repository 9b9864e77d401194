// Three extents: of a grid in work-groups, of a work-group in work-items.
#pragma once

#include <cstdint>

namespace kiln::device {

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
};

}  // namespace kiln::device
