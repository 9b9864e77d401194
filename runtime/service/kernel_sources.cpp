#include "runtime/service/kernel_sources.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "runtime/embedded/embedded.hpp"

namespace kiln::service {

Result<std::optional<std::string>> KernelSources::find(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    return find_locked(path);
}

Result<std::optional<std::string>> KernelSources::find_locked(std::string_view path) const {
    auto known = in_folders_.find(path);
    if (known == in_folders_.end() && !folders_.empty()) {
        Text text;
        for (auto folder = folders_.begin(); folder != folders_.end() && !text; ++folder) {
            Result<std::string> read = read_text_file(*folder / path, Stage::compile);
            if (read) {
                text = *std::move(read);
            } else if (read.error().code != ErrorCode::not_found) {
                return fail(read);
            }
        }
        known = in_folders_.emplace(path, std::move(text)).first;
    }
    if (known != in_folders_.end() && known->second) {
        return known->second;
    }
    if (const embedded::EmbeddedFile* file = embedded::find(embedded::kernel_files(), path)) {
        return Text(std::string(file->text));
    }
    return Text();
}

bool KernelSources::has(std::string_view template_id, const tables::Target& target) const {
    const std::string path = operators::template_path(template_id, target);
    if (embedded::find(embedded::kernel_files(), path) != nullptr) {
        return true;
    }
    const Result<Text> text = find(path);
    return !text || text->has_value();
}

Result<std::shared_ptr<const operators::TemplateSource>> KernelSources::read(
    std::string_view template_id, const tables::Target& target) const {
    const std::string path = operators::template_path(template_id, target);
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(path); known != known_.end()) {
        return known->second;
    }
    Result<operators::TemplateSource> source = operators::read_template(
        template_id, target, [this](std::string_view name) { return find_locked(name); });
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
