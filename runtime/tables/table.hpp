// The shape table: which template with which constants serves a problem, at which M, on which target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/tables/target.hpp"

namespace kiln::tables {

// The fields of a problem by name, with every default filled in, so that equal problems compare equal.
using FieldValue = std::variant<std::int64_t, std::string>;
using Problem = std::map<std::string, FieldValue, std::less<>>;

using Constants = std::map<std::string, std::int64_t, std::less<>>;

// "k=4096 n=5120", for messages.
[[nodiscard]] std::string to_text(const Problem& problem);

// One range of M: from the bucket before it to max_m inclusive.
struct Bucket {
    std::int64_t max_m = 0;
    std::string template_id;  // "linear/small_m"
    Constants constants;

    friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Why the row says what it says. Never decides a lookup and is no part of a key.
struct Provenance {
    std::string kind;      // "untuned", "measured", "derived", "model" or "published"
    std::string note;      // may be empty
    std::string document;  // all of it, canonical JSON
};

// Who says so, the weakest first.
enum class LayerKind {
    shipped,  // embedded in the library
    system,   // the machine's administrator
    user,     // the user's folder of configuration
    named,    // KILN_SHAPES_PATH, the configuration of the embedding program, a command line
};
[[nodiscard]] std::string_view to_text(LayerKind kind);  // "shipped"

// Where a row stands.
struct Origin {
    std::string file;
    std::size_t line = 0;

    [[nodiscard]] std::string text() const;  // "shapes/linear.json:12"
};

struct Row {
    std::string operator_name;  // "linear"
    Problem problem;
    Target target;
    std::vector<Bucket> buckets;  // max_m ascending, at least one
    Provenance provenance;
    Origin origin;
    LayerKind layer = LayerKind::named;

    // The first bucket with m <= max_m; null when m is above the last one or below 1.
    [[nodiscard]] const Bucket* bucket_for(std::int64_t m) const;
};

// One layer of a table: rows of equal standing.
struct RowLayer {
    LayerKind kind = LayerKind::named;
    std::string place;               // the folder or file; empty for the shipped layer
    std::vector<std::string> files;  // that were read, those without a row too
    std::vector<Row> rows;           // (operator, problem, target) once
};

// What find() answers. When there is no row, `detail` says what was asked for and what stands in the table.
struct Lookup {
    enum class Outcome {
        found,
        unknown_problem,  // no row of this operator has this problem
        other_processor,  // rows have it, none of them for the device's processor
        other_features,   // rows for the processor have it, and pin features that the device has otherwise
    };
    Outcome outcome = Outcome::unknown_problem;
    const Row* row = nullptr;  // lives as long as the table
    std::string detail;
};

// A row that would serve a device, were it not for another one.
struct Shadowed {
    enum class Why {
        replaced,       // a stronger layer has a row for the same operator, problem and target
        less_specific,  // another row pins more features, or as many and comes first
    };
    const Row* row = nullptr;
    Why why = Why::replaced;
};
[[nodiscard]] std::string_view to_text(Shadowed::Why why);  // "replaced by a stronger layer"

// Constant once built: any number of threads may read one. Rows stay where they are when a table is moved.
class Table {
  public:
    Table() = default;
    // The strongest layer first.
    explicit Table(std::vector<RowLayer> layers);
    Table(Table&&) = default;
    Table& operator=(Table&&) = default;

    // The row that serves `problem` on `device`. Of the rows for one operator, problem and target, the one of
    // the strongest layer is in force and replaces the others. Of those in force that serve the device, the
    // one that pins most features answers; of two that pin equally many, that of the stronger layer, else the
    // one that stands first.
    [[nodiscard]] Lookup find(std::string_view operator_name, const Problem& problem,
                              const Target& device) const;

    // What `winner`, found for `device`, hides there; in the order of the layers.
    [[nodiscard]] std::vector<Shadowed> shadowed(const Row& winner, const Target& device) const;

    // Every row in the order of the layers: those in force, or the replaced ones too.
    [[nodiscard]] std::vector<const Row*> rows_in_force() const;
    [[nodiscard]] std::vector<const Row*> rows() const;

    // As given, the strongest first.
    [[nodiscard]] const std::vector<RowLayer>& layers() const { return layers_; }

  private:
    struct Entry {
        const Row* row;
        bool in_force;
    };
    // The rows of one operator and problem, in the order of the layers.
    [[nodiscard]] std::vector<Entry> entries_of(std::string_view operator_name, const Problem& problem) const;

    std::vector<RowLayer> layers_;
    // By a hash of operator and problem; entries in the order of the layers.
    std::unordered_map<std::size_t, std::vector<Entry>> index_;
};

}  // namespace kiln::tables
