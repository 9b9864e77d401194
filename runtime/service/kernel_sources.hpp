// The text of templates and their headers: folders of KILN_KERNEL_PATH first, then what the library carries.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace kiln::service {

// Thread safe. Files are read at every call: an edited template takes effect at the next prepare().
class KernelSources {
  public:
    explicit KernelSources(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

    // `path` is as in kernel_src/: "linear/small_m.gfx950.hip". Nothing when there is no such file; an error
    // when there is one that can not be read.
    [[nodiscard]] Result<std::optional<std::string>> find(std::string_view path) const;

  private:
    const std::vector<std::filesystem::path> folders_;
};

}  // namespace kiln::service
