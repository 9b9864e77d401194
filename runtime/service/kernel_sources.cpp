#include "runtime/service/kernel_sources.hpp"

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

}  // namespace kiln::service
