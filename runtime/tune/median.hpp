// The middle one of a few numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kiln::tune {

// Of an even number of them the larger of the two. Requires one at least.
[[nodiscard]] inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

}  // namespace kiln::tune
