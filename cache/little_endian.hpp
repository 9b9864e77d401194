// Little-endian integers in bytes: what the formats of this room are written with.
#pragma once

#include <cstddef>

#include "base/bytes.hpp"

namespace kiln::cache {

inline void append(Bytes& file, ByteView bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
}

template <class Integer>
void append_integer(Bytes& file, Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        file.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
}

// Takes integers off the front of bytes whose length was checked.
class Cursor {
  public:
    explicit Cursor(ByteView bytes) : bytes_(bytes) {}
    [[nodiscard]] std::size_t left() const { return bytes_.size(); }
    ByteView take(std::size_t count) {
        const ByteView front = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return front;
    }
    template <class Integer>
    Integer integer() {
        Integer value = 0;
        const ByteView front = take(sizeof(Integer));
        for (std::size_t i = 0; i < sizeof(Integer); ++i) {
            value |= static_cast<Integer>(static_cast<Integer>(front[i]) << (8 * i));
        }
        return value;
    }

  private:
    ByteView bytes_;
};

}  // namespace kiln::cache
