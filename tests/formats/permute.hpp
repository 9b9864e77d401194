// A layout as engines write it: a reshape, then a permutation of axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::test {

// Row-major data of `shape`; the result's axis i is the data's axis order[i].
inline std::vector<std::uint8_t> permute(const std::vector<std::uint8_t>& data,
                                         const std::vector<std::size_t>& shape,
                                         const std::vector<std::size_t>& order) {
    std::vector<std::size_t> stride(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis) {
        stride[axis - 1] = stride[axis] * shape[axis];
    }
    std::vector<std::size_t> index(shape.size(), 0);
    std::vector<std::uint8_t> result;
    result.reserve(data.size());
    while (result.size() < data.size()) {
        std::size_t offset = 0;
        for (std::size_t axis = 0; axis < order.size(); ++axis) {
            offset += index[axis] * stride[order[axis]];
        }
        result.push_back(data[offset]);
        for (std::size_t axis = order.size(); axis-- > 0 && ++index[axis] == shape[order[axis]];) {
            index[axis] = 0;
        }
    }
    return result;
}

}  // namespace kiln::test
