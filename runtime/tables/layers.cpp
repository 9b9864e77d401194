// Reading the files and folders that a path list names.

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::tables {
namespace {

namespace fs = std::filesystem;

// One file, or the tables of one folder.
Result<std::vector<fs::path>> files_of(const fs::path& path) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        return fail(ErrorCode::not_found, Stage::table,
                    fmt::format("shape table {}: expected a file or a folder, found nothing", path.string()));
    }
    if (!fs::is_directory(status)) {
        return std::vector{path};
    }
    std::vector<fs::path> files;
    for (fs::directory_iterator item(path, error), end; !error && item != end; item.increment(error)) {
        std::error_code ignored;
        if (item->path().extension() == ".json" && !item->is_directory(ignored)) {
            files.push_back(item->path());
        }
    }
    if (error) {
        return fail(ErrorCode::io, Stage::table, system_message("list folder", path, error.value()));
    }
    std::ranges::sort(files);
    return files;
}

Result<Layer> read_layer(const fs::path& path) {
    const auto files = files_of(path);
    if (!files) {
        return tl::unexpected(files.error());
    }
    Layer layer;
    for (const auto& file : *files) {
        auto text = read_text_file(file, Stage::table);
        if (!text) {
            return fail(text);
        }
        layer.push_back({file.string(), std::move(*text)});
    }
    return layer;
}

}  // namespace

Result<std::vector<Layer>> read_layers(std::string_view path_list) {
    std::vector<Layer> layers;
    while (!path_list.empty()) {
        const auto colon = path_list.find(':');
        const auto part = path_list.substr(0, colon);
        path_list = colon == std::string_view::npos ? std::string_view() : path_list.substr(colon + 1);
        if (part.empty()) {
            continue;
        }
        auto layer = read_layer(part);
        if (!layer) {
            return fail(layer);
        }
        layers.push_back(std::move(*layer));
    }
    return layers;
}

}  // namespace kiln::tables
