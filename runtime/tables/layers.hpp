// The files of shape tables: which layers there are, and reading them.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/tables/loader.hpp"

namespace kiln::tables {

// A file, or a folder of files, that is one layer.
struct LayerPlace {
    LayerKind kind = LayerKind::named;
    std::filesystem::path path;

    friend bool operator==(const LayerPlace&, const LayerPlace&) = default;
};

// "a.json:folder": the places that a value of KILN_SHAPES_PATH names, in its order, empty parts skipped.
[[nodiscard]] std::vector<LayerPlace> named_places(std::string_view path_list);

struct ReadLayers {
    std::vector<Layer> layers;  // of the places, in their order; those where nothing is are left out
    std::vector<Fault> faults;  // every file and folder that can not be read
};

// A folder gives its own *.json files (of no folder inside it) by ascending name. Names that begin with '.'
// are passed over, for editors keep locks and copies under them; a place itself may have such a name. Where a
// named place is nothing, that is a fault; the other kinds of places need not be there. A file of more than
// Loader::kMaxBytes is a fault and is not read.
[[nodiscard]] ReadLayers read_layers(const std::vector<LayerPlace>& places);

}  // namespace kiln::tables
