// The inner product of the references.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <span>

namespace kiln::operators {

// Of spans of the same size, a multiple of 8. In eight sums side by side, so that the compiler uses vectors:
// what is summed here is exact in float64, or its error far below a bf16's last place, whatever the order.
[[nodiscard]] inline double dot(std::span<const double> a, std::span<const double> b) {
    std::array<double, 8> sums{};
    assert(a.size() == b.size() && a.size() % sums.size() == 0);
    for (std::size_t k = 0; k < a.size(); k += sums.size()) {
        for (std::size_t lane = 0; lane < sums.size(); ++lane) {
            sums[lane] += a[k + lane] * b[k + lane];
        }
    }
    double total = 0;
    for (const double sum : sums) {
        total += sum;
    }
    return total;
}

}  // namespace kiln::operators
