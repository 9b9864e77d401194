// Shape tables from JSON text: syntax, then the published schema, then meaning. Every fault is collected,
// each with the place in the file where a person finds it.
//
// This room knows no operator: whoever does hands in a RowCheck. It opens no file of its own accord either:
// texts come from read_layers() (layers.hpp) or from what is embedded in the library.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
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
    enum class Severity {
        fault,    // the row is not in the table
        warning,  // it is, and does not do what its author may expect
    };

    std::string pointer;
    std::string expected;
    std::string found;
    At at = At::value;  // `name`: the member should not be called that, or not be there
    Severity severity = Severity::fault;
};

// Called for each row that is well-formed. Judges the operator's name, the problem's fields and their values,
// templates and constants; fills in the defaults of its problems and the max_m of an exact row. Without a
// fault in the answer the row is accepted.
using RowCheck = std::function<std::vector<RowFault>(Row& row)>;

struct TableText {
    std::string name;
    std::string text;
};

// Texts of equal standing: a folder's files, or one file. (operator, problem, open fields, target, cu_num) is
// unique in a layer.
struct Layer {
    LayerKind kind = LayerKind::named;
    std::string place;  // the folder or file, for a person; empty for the shipped layer
    std::vector<TableText> texts;
};

struct LoadedTable {
    Table table;                  // the rows without a fault
    std::vector<Fault> faults;    // by layer, text and position; empty when all is well
    std::vector<Fault> warnings;  // in the same order
};

// Thread safe.
class Loader {
  public:
    // Bounds of one text. What is beyond is a fault of the text, and it has no row.
    static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
    static constexpr std::size_t kMaxFaults = 1000;  // those after it are counted, not listed

    // `schema` is the text of shapes/schema/shape_table.schema.json. bad_input when it is not a schema.
    [[nodiscard]] static Result<std::unique_ptr<Loader>> create(std::string_view schema, RowCheck check);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    // The strongest layer comes first. Texts of a shipped layer are taken to follow the schema: the build of
    // the program that they are part of holds them to it. `below` are rows that were judged before, weaker
    // than all layers.
    [[nodiscard]] LoadedTable load(const std::vector<Layer>& layers,
                                   std::optional<RowLayer> below = std::nullopt) const;

  private:
    struct Parts;
    explicit Loader(std::unique_ptr<const Parts> parts);
    std::unique_ptr<const Parts> parts_;
};

}  // namespace kiln::tables
