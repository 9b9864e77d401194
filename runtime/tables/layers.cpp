#include "runtime/tables/layers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"

namespace kiln::tables {
namespace {

namespace fs = std::filesystem;

class Reader {
  public:
    ReadLayers read(const std::vector<LayerPlace>& places) {
        for (const auto& place : places) {
            if (auto layer = read_layer(place)) {
                result_.layers.push_back(std::move(*layer));
            }
        }
        return std::move(result_);
    }

  private:
    void refuse(const fs::path& path, std::string expected, std::string found) {
        result_.faults.push_back({path.string(), {}, {}, std::move(expected), std::move(found)});
    }

    // Nothing where there is nothing to read, or nothing that can be.
    std::optional<Layer> read_layer(const LayerPlace& place) {
        std::error_code error;
        const auto status = fs::status(place.path, error);
        const auto type = status.type();
        if (type == fs::file_type::not_found) {
            if (place.kind == LayerKind::named) {
                refuse(place.path, "a shape table or a folder of them", "nothing");
            }
            return std::nullopt;
        }
        if (type == fs::file_type::none) {
            refuse(place.path, "a shape table or a folder of them",
                   system_message("stat", place.path, error.value()));
            return std::nullopt;
        }
        Layer layer{place.kind, place.path.string(), {}};
        for (const auto& file : fs::is_directory(status) ? files_of(place.path) : std::vector{place.path}) {
            read_text(file, layer);
        }
        return layer;
    }

    std::vector<fs::path> files_of(const fs::path& folder) {
        std::error_code error;
        std::vector<fs::path> files;
        for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
            std::error_code ignored;
            const std::string name = item->path().filename().string();
            if (!name.starts_with('.') && item->path().extension() == ".json" &&
                !item->is_directory(ignored)) {
                files.push_back(item->path());
            }
        }
        if (error) {
            refuse(folder, "a folder that can be listed",
                   system_message("list folder", folder, error.value()));
        }
        std::ranges::sort(files);
        return files;
    }

    void read_text(const fs::path& file, Layer& layer) {
        std::error_code error;
        const auto size = fs::file_size(file, error);
        if (!error && size > Loader::kMaxBytes) {
            refuse(file, fmt::format("at most {} bytes", Loader::kMaxBytes), fmt::format("{}", size));
            return;
        }
        auto text = read_text_file(file, Stage::table);
        if (text) {
            layer.texts.push_back({file.string(), std::move(*text)});
        } else {
            refuse(file, "a file that can be read", std::move(text.error().message));
        }
    }

    ReadLayers result_;
};

}  // namespace

std::vector<LayerPlace> named_places(std::string_view path_list) {
    std::vector<LayerPlace> places;
    while (!path_list.empty()) {
        const auto part = path_list.substr(0, path_list.find(':'));
        path_list.remove_prefix(std::min(part.size() + 1, path_list.size()));
        if (!part.empty()) {
            places.push_back({LayerKind::named, part});
        }
    }
    return places;
}

ReadLayers read_layers(const std::vector<LayerPlace>& places) {
    return Reader().read(places);
}

}  // namespace kiln::tables
