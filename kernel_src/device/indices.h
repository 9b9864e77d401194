// Loops over numbers that stay constants in the body, where an instruction wants one as part of itself.
#pragma once

#include "device/macros.h"

namespace kiln::device {

template <int kValue>
struct Index {
    static constexpr int value = kValue;
};

// body(Index<0>{}), body(Index<1>{}) and so on, kCount times.
template <int kCount, int kFirst = 0, class Body>
KILN_DEVICE void for_each_index(const Body& body) {
    if constexpr (kFirst < kCount) {
        body(Index<kFirst>{});
        for_each_index<kCount, kFirst + 1>(body);
    }
}

}  // namespace kiln::device
