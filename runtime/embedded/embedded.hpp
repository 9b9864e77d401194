// The kernel templates and shape tables that libkiln carries in itself, so that it needs no file beside it.
//
// The texts are the files of kernel_src/ and shapes/ as they stood when the library was built; the build
// regenerates them when a file changes, appears or goes. Everything here is constant for the life of the
// process and free to be read from any thread.
#pragma once

#include <span>
#include <string_view>

namespace kiln::embedded {

struct EmbeddedFile {
    std::string_view path;  // below kernel_src/ or shapes/, with forward slashes: "linear/small_m.gfx950.hip"
    std::string_view text;  // the whole file, byte for byte
};

// The templates and the headers that they share (*.cu, *.hip, *.h), ascending by path.
[[nodiscard]] std::span<const EmbeddedFile> kernel_files();

// The shape tables and their JSON Schema (*.json), ascending by path.
[[nodiscard]] std::span<const EmbeddedFile> shape_files();

// The file with this path in one of the two lists, or null.
[[nodiscard]] const EmbeddedFile* find(std::span<const EmbeddedFile> files, std::string_view path);

}  // namespace kiln::embedded
