// Zeroed memory straight from the system: no page is taken before it is touched.
#pragma once

#include <sys/mman.h>
#include <cstddef>
#include <utility>

namespace kiln::sim {

class Pages {
  public:
    Pages() = default;
    ~Pages() { release(); }
    Pages(Pages&& other) noexcept { swap(other); }
    Pages& operator=(Pages&& other) noexcept {
        swap(other);
        return *this;
    }

    // Null data when the system has none; empty pages have null data too.
    static Pages map(std::size_t bytes) {
        Pages pages;
        if (bytes != 0) {
            void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (data != MAP_FAILED) {
                pages.data_ = data;
                pages.bytes_ = bytes;
            }
        }
        return pages;
    }
    [[nodiscard]] void* data() const { return data_; }

  private:
    void release() {
        if (data_ != nullptr) {
            ::munmap(data_, bytes_);
        }
    }
    void swap(Pages& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }

    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace kiln::sim
