// The shape table: which template with which constants serves a problem, at which M, on which target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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

struct Row {
    std::string operator_name;  // "linear"
    Problem problem;
    Target target;
    std::vector<Bucket> buckets;  // max_m ascending, at least one
    Provenance provenance;
    std::string origin;  // "linear.json:12", for `explain`

    // The first bucket with m <= max_m; null when m is above the last one or below 1.
    [[nodiscard]] const Bucket* bucket_for(std::int64_t m) const;
};

// What find() answers. When there is no row, `detail` says what was asked for and what stands in the table.
struct Lookup {
    enum class Outcome {
        found,
        unknown_problem,  // no row of this operator has this problem
        other_target,     // rows have it, none of them serves this device
    };
    Outcome outcome = Outcome::unknown_problem;
    const Row* row = nullptr;  // lives as long as the table
    std::string detail;
};

// Constant once built: any number of threads may read one.
class Table {
  public:
    // Rows of earlier layers win over rows of later ones; see the loader.
    explicit Table(std::vector<std::vector<Row>> layers = {});

    // The row that serves `problem` on `device`. The first layer with a serving row answers, and in it the
    // row that pins the most features (of two that pin equally many, the one that stands first).
    [[nodiscard]] Lookup find(std::string_view operator_name, const Problem& problem,
                              const Target& device) const;

    // Every row of every layer in order, those too that an earlier layer hides.
    [[nodiscard]] std::vector<const Row*> rows() const;

  private:
    std::vector<std::vector<Row>> layers_;
};

}  // namespace kiln::tables
