// The text of templates and their headers: folders of KILN_KERNEL_PATH first, then what the library carries.
// A file is read when it is first needed, and stays what it was then, absent too.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/operators/specialisation.hpp"

namespace kiln::service {

// Thread safe.
class KernelSources {
  public:
    explicit KernelSources(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

    // `path` is as in kernel_src/: "linear/small_m.gfx950.hip". Nothing when there is no such file; an error
    // when there is one that can not be read.
    [[nodiscard]] Result<std::optional<std::string>> find(std::string_view path) const;

    // Whether the template has a file for the target. One that is there and can not be read counts: reading
    // it says why.
    [[nodiscard]] bool has(std::string_view template_id, const tables::Target& target) const;

    // A template with its headers. A failed attempt is made again at the next call.
    [[nodiscard]] Result<std::shared_ptr<const operators::TemplateSource>> read(
        std::string_view template_id, const tables::Target& target) const;

    // Whether read() has given it out.
    [[nodiscard]] bool has_read(std::string_view template_id, const tables::Target& target) const;

  private:
    using Text = std::optional<std::string>;
    [[nodiscard]] Result<Text> find_locked(std::string_view path) const;  // requires mutex_

    const std::vector<std::filesystem::path> folders_;

    mutable std::mutex mutex_;
    // Protected by mutex_.
    mutable std::map<std::string, Text, std::less<>> in_folders_;  // nothing: none of the folders has it
    // By template_path().
    mutable std::map<std::string, std::shared_ptr<const operators::TemplateSource>> known_;
};

}  // namespace kiln::service
