#include "runtime/service/kernel_sources.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "runtime/embedded/embedded.hpp"

namespace kiln::service {

Result<std::optional<std::string>> KernelSources::find(std::string_view path) const {
    for (const std::filesystem::path& folder : folders_) {
        Result<std::string> text = read_text_file(folder / path, Stage::compile);
        if (text) {
            return std::optional(*std::move(text));
        }
        if (text.error().code != ErrorCode::not_found) {
            return fail(text);
        }
    }
    if (const embedded::EmbeddedFile* file = embedded::find(embedded::kernel_files(), path)) {
        return std::optional(std::string(file->text));
    }
    return std::optional<std::string>();
}

bool KernelSources::has(std::string_view template_id, const tables::Target& target) const {
    const std::string path = operators::template_path(template_id, target);
    std::error_code ignored;
    return has_read(template_id, target) || embedded::find(embedded::kernel_files(), path) != nullptr ||
           std::ranges::any_of(folders_, [&](const std::filesystem::path& folder) {
               return std::filesystem::symlink_status(folder / path, ignored).type() !=
                      std::filesystem::file_type::not_found;
           });
}

Result<std::shared_ptr<const operators::TemplateSource>> KernelSources::read(
    std::string_view template_id, const tables::Target& target) const {
    const std::string path = operators::template_path(template_id, target);
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(path); known != known_.end()) {
        return known->second;
    }
    Result<operators::TemplateSource> source =
        operators::read_template(template_id, target, [this](std::string_view name) { return find(name); });
    if (!source) {
        return fail(source);
    }
    auto shared = std::make_shared<const operators::TemplateSource>(*std::move(source));
    known_.emplace(path, shared);
    return shared;
}

bool KernelSources::has_read(std::string_view template_id, const tables::Target& target) const {
    const std::lock_guard lock(mutex_);
    return known_.contains(operators::template_path(template_id, target));
}

}  // namespace kiln::service
