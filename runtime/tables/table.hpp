// The shape table: which template with which constants serves a problem, at which M, on which target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/tables/pattern.hpp"
#include "runtime/tables/problem.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::tables {

using Constants = std::map<std::string, std::int64_t, std::less<>>;

// What the compiled kernels of a bucket must keep to; each member only where it is said.
struct Budget {
    std::optional<std::int64_t> waves_per_simd;  // at least
    std::optional<std::int64_t> lds_bytes;       // at most, of a work-group

    friend bool operator==(const Budget&, const Budget&) = default;
};

// One range of M: from the bucket before it to max_m inclusive.
struct Bucket {
    std::int64_t max_m = 0;
    std::string template_id;  // "linear/small_m"
    Constants constants;
    Budget budget = {};
    // Where the table counts pairs of a token and a slot: max_m is this over the slots, once those are known.
    std::optional<std::int64_t> max_pairs = {};

    friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Why the row says what it says. Never decides a lookup and is no part of a key.
struct Provenance {
    std::string kind;      // "untuned", "derived", "model", "published", "imported" or "measured"
    std::string note;      // may be empty
    std::string document;  // all of it, canonical JSON

    friend bool operator==(const Provenance&, const Provenance&) = default;
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

    friend bool operator==(const Origin&, const Origin&) = default;
};

// An exact row is for one problem. A general one has fields that are open: it is for every problem that has
// its settled fields and that they admit, and what it says for one of them is a row of its own (at()).
struct Row {
    std::string operator_name;      // "linear"
    Problem problem;                // of a general row without the open fields
    Pattern open;                   // empty of an exact row
    std::vector<Problem> problems;  // of a general row: those that are worth warming and verifying, complete
    Target target;
    std::optional<std::int64_t> cu_num;  // only for devices of so many compute units; nothing: of any number
    // At least one; max_m ascending, where all are known. The same one may stand twice: which of the two
    // serves is the operator's to say (operators/demands.hpp).
    std::vector<Bucket> buckets;
    Provenance provenance;
    Origin origin;
    LayerKind layer = LayerKind::named;

    [[nodiscard]] bool is_general() const { return !open.empty(); }
    // The target and the compute units that the row is for, in words.
    [[nodiscard]] std::string device_text() const { return DeviceTraits(target, cu_num).text(); }
    // A row with cu_num serves only a device of which that number is known.
    [[nodiscard]] bool serves(const DeviceTraits& device) const;
    [[nodiscard]] bool admits(const Problem& asked) const;
    // An exact row for a problem that this one admits, where a token has so many slots: max_pairs is
    // resolved, and what then serves no M drops out. May be left without buckets.
    [[nodiscard]] Row at(const Problem& asked, std::int64_t slots) const;

    // The first bucket with m <= max_m; null when m is above the last one or below 1.
    [[nodiscard]] const Bucket* bucket_for(std::int64_t m) const;

    friend bool operator==(const Row&, const Row&) = default;
};

// One layer of a table: rows of equal standing.
struct RowLayer {
    LayerKind kind = LayerKind::named;
    std::string place;               // the folder or file; empty for the shipped layer
    std::vector<std::string> files;  // that were read, those without a row too
    std::vector<Row> rows;           // (operator, problem, open fields, target, cu_num) once

    friend bool operator==(const RowLayer&, const RowLayer&) = default;
};

// What find() answers. When there is no row, `detail` says what was asked for and what stands in the table.
struct Lookup {
    enum class Outcome {
        found,
        unknown_problem,  // no row of this operator has this problem
        other_processor,  // rows have it, none of them for the device's processor
        // Rows for the processor have it, and pin features or compute units that the device has otherwise.
        other_features,
    };
    Outcome outcome = Outcome::unknown_problem;
    const Row* row = nullptr;  // lives as long as the table
    std::string detail;
};

// A row that would serve a device, were it not for another one.
struct Shadowed {
    enum class Why {
        replaced,       // another row for the operator, the problem and the same target and cu_num goes first
        less_specific,  // another row has a cu_num or pins more features, or pins as many and comes first
    };
    const Row* row = nullptr;
    Why why = Why::replaced;
};
[[nodiscard]] std::string_view to_text(Shadowed::Why why);  // "another row goes before it"

// Constant once built: any number of threads may read one. Rows stay where they are when a table is moved.
class Table {
  public:
    Table() = default;
    // The strongest layer first.
    explicit Table(std::vector<RowLayer> layers);
    Table(Table&&) = default;
    Table& operator=(Table&&) = default;

    // The row that serves `problem` on `device`. Of the rows for one operator, problem, target and cu_num,
    // one is in force and replaces the others: that of the strongest layer, in a layer the exact one, else
    // the first of the general ones that admit the problem. Of those in force that serve the device, one with
    // cu_num goes before those without, then the one that pins most features answers; of two that pin equally
    // many, that of the stronger layer, else the one that stands first.
    [[nodiscard]] Lookup find(std::string_view operator_name, const Problem& problem,
                              const DeviceTraits& device) const;

    // What `winner`, found for `problem` on `device`, hides there; in the order of the layers.
    [[nodiscard]] std::vector<Shadowed> shadowed(const Row& winner, const Problem& problem,
                                                 const DeviceTraits& device) const;

    // Every row in the order of the layers.
    [[nodiscard]] std::vector<const Row*> rows() const;
    // Every problem that a row names, with that row, in the order of the layers and as far as the row is in
    // force for it: of a general row the problems that it lists.
    struct Named {
        const Row* row;
        const Problem* problem;
    };
    [[nodiscard]] std::vector<Named> named_problems() const;
    // The rows in force for a problem, whatever they are for.
    [[nodiscard]] std::vector<const Row*> rows_in_force(std::string_view operator_name,
                                                        const Problem& problem) const;

    // As given, the strongest first.
    [[nodiscard]] const std::vector<RowLayer>& layers() const { return layers_; }

  private:
    struct Place {
        std::size_t layer;
        const Row* row;
    };
    struct Entry {
        const Row* row;
        bool in_force;
    };
    // The rows of one operator and problem, the first to be considered first.
    [[nodiscard]] std::vector<Entry> entries_of(std::string_view operator_name, const Problem& problem) const;

    std::vector<RowLayer> layers_;
    // Exact rows by a hash of operator and problem, and general ones, both in the order of the layers.
    std::unordered_map<std::size_t, std::vector<Place>> index_;
    std::vector<Place> general_;
};

}  // namespace kiln::tables
