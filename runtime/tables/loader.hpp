// Shape tables from JSON text: syntax, then the published schema, then meaning. Every fault is collected,
// each with the place in the file where a person finds it.
//
// This room knows no operator: whoever does hands in a RowCheck. It opens no file of its own accord either:
// texts come from read_layers() or from what is embedded in the library.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/tables/fault.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::tables {

// What is wrong with one row in the eyes of its operator. The pointer starts at the row: "/problem/n",
// "/buckets/0/constants/tiles_n"; where nothing stands there, the place of the nearest thing around it is
// reported.
struct RowFault {
    enum class At { value, name };

    std::string pointer;
    std::string expected;
    std::string found;
    At at = At::value;  // `name`: the member should not be called that, or not be there
};

// Called for each row that is well-formed. Judges the operator's name, the problem's fields and their values,
// templates and constants; fills in the problem's defaults. An empty answer accepts the row.
using RowCheck = std::function<std::vector<RowFault>(Row& row)>;

struct TableText {
    std::string name;
    std::string text;
};

// Texts of equal standing: a folder's files, or one file. (operator, problem, target) is unique in a layer.
using Layer = std::vector<TableText>;

// The layers that a value of KILN_SHAPES_PATH names, in its order: files and folders with ':' between, empty
// parts skipped. A folder gives its own *.json files (of no folder inside it) by ascending name. not_found or
// io when one can not be read.
[[nodiscard]] Result<std::vector<Layer>> read_layers(std::string_view path_list);

struct LoadedTable {
    Table table;                // the rows without a fault
    std::vector<Fault> faults;  // by layer, text and position; empty when all is well
};

// Thread safe.
class Loader {
  public:
    // `schema` is the text of shapes/schema/shape_table.schema.json. bad_input when it is not a schema.
    [[nodiscard]] static Result<std::unique_ptr<Loader>> create(std::string_view schema, RowCheck check);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    // Earlier layers win: the user's come first, the shipped one last.
    [[nodiscard]] LoadedTable load(const std::vector<Layer>& layers) const;

  private:
    struct Parts;
    explicit Loader(std::unique_ptr<const Parts> parts);
    std::unique_ptr<const Parts> parts_;
};

}  // namespace kiln::tables
