#include "runtime/embedded/embedded.hpp"

#include <algorithm>

namespace kiln::embedded {

const EmbeddedFile* find(std::span<const EmbeddedFile> files, std::string_view path) {
    const auto found = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
    return found != files.end() && found->path == path ? &*found : nullptr;
}

}  // namespace kiln::embedded
