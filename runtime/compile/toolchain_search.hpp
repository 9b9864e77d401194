// What the searches for the two toolchains share (toolchain.hpp).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {

// The value of a variable of the environment that is set and not empty, else null.
[[nodiscard]] const char* variable(const char* name);

// The file FOLDER/STEM.N with the greatest N, at least `oldest`; empty when there is none.
[[nodiscard]] std::filesystem::path newest_version(const std::filesystem::path& folder, std::string_view stem,
                                                   unsigned oldest);

// Looks into one folder after the other until one holds a toolchain, and remembers where it looked.
class ToolchainSearch {
  public:
    using Look = std::function<std::optional<Toolchain>(const std::filesystem::path& folder)>;
    explicit ToolchainSearch(Look look) : look_(std::move(look)) {}

    void folder(const std::filesystem::path& folder, const char* origin);
    // `none` begins the message: "no HIP run-time compiler"; `expected` names the files, `advice` what to do.
    // `named` says which prefix was the only place to look; empty where none was named.
    [[nodiscard]] Result<Toolchain> result(std::string_view none, const std::string& named,
                                           std::string_view expected, std::string_view advice) const;
    [[nodiscard]] std::optional<Toolchain>& found() { return found_; }

  private:
    const Look look_;
    std::optional<Toolchain> found_;
    std::vector<std::string> looked_in_;
};

[[nodiscard]] Result<Toolchain> find_rocm(const CompilerConfig& config);
[[nodiscard]] Result<Toolchain> find_cuda(const CompilerConfig& config);

}  // namespace kiln::compile
