// What a test takes for granted: a failure ends the case, with its message.
#pragma once

#include <doctest/doctest.h>

#include <utility>

#include "base/error.hpp"

namespace kiln::kernels_test {

template <class T>
T value_of(Result<T> result) {
    if (!result) {
        FAIL(result.error().message);
    }
    return std::move(*result);
}

inline void check(const Result<void>& result) {
    if (!result) {
        FAIL(result.error().message);
    }
}

}  // namespace kiln::kernels_test
