// What the service must know of an operator, and the list of those that there are.
//
// Everything here is constant and free to be used from any thread. The service itself knows no operator by
// name: a new one is a new pair of objects in the registry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/operators/decline.hpp"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/linear.hpp"
#include "runtime/operators/moe_sort.hpp"
#include "runtime/operators/router.hpp"
#include "runtime/operators/template.hpp"
#include "runtime/tables/loader.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::operators {

// One field of a problem, by the name that tables, the command line and the C struct share. Where it is
// "slots", a token makes so many pairs of a token and a slot, and a table may count by those.
struct Field {
    std::string_view name;
    std::string_view what;                       // one line for a person
    std::optional<std::int64_t> default_number;  // a number with a default
    std::vector<std::string_view> words = {};    // not empty: a word, one of these; the first is the default
    // A number that says what is asked of the kernels, not what is computed: rows leave it open, and it takes
    // no part in which of them serves.
    bool is_demand = false;

    [[nodiscard]] bool is_word() const { return !words.empty(); }
    [[nodiscard]] bool is_required() const { return words.empty() && !default_number.has_value(); }
};

// The problem with names resolved, for the launch path.
using TypedProblem = std::variant<LinearProblem,   //
                                  RouterProblem,   //
                                  MoeSortProblem,  //
                                  FusedMoeProblem>;

class Operator {
  public:
    virtual ~Operator() = default;

    [[nodiscard]] virtual std::string_view name() const = 0;  // "linear"
    [[nodiscard]] virtual std::span<const Field> fields() const = 0;
    // Those that rows may name and those of their stages that are of no other operator.
    [[nodiscard]] virtual std::span<const Template* const> templates() const = 0;

    // The guards that the problem alone decides, tables aside. Declines, or has nothing to say. Requires a
    // problem that complete() accepted.
    [[nodiscard]] virtual Answer<void> judge(const Problem& problem) const = 0;
    [[nodiscard]] virtual TypedProblem typed(const Problem& problem) const = 0;
    // Buckets for a problem that no table has, by the operator's rule for the target's processor; check_row()
    // accepts them. not_found where there is no rule for the processor, bad_input where it finds no legal
    // constants. Requires a problem that judge() accepts.
    [[nodiscard]] virtual Result<std::vector<Bucket>> derive(const Problem& problem,
                                                             const tables::Target& target) const = 0;

    // The template's contract on the processor; on one that kiln has none for, that of another processor of
    // the vendor: a source that a user writes for gfx942 takes the constants of gfx950's. Null when there is
    // neither.
    [[nodiscard]] const Template* find_template(std::string_view id, std::string_view processor) const;
};

[[nodiscard]] std::span<const Operator* const> all_operators();
// Null when there is none of that name.
[[nodiscard]] const Operator* find_operator(std::string_view name);
// As Operator::find_template(), over all operators.
[[nodiscard]] const Template* find_template(std::string_view id, std::string_view processor);
// The same where it is a template with a source of its own, else null.
[[nodiscard]] const KernelTemplate* find_kernel_template(std::string_view id, std::string_view processor);

// Fills in the defaults. bad_input names a field that is unknown, missing, or has a value of the wrong kind.
[[nodiscard]] Result<Problem> complete(const Operator& op, Problem problem);

// Words as a person writes them, "n=4608" "k=4096": the problem, complete. bad_input as above.
[[nodiscard]] Result<Problem> parse_problem(const Operator& op, std::span<const std::string> words);
// The same for a filter: fields left out stay out.
[[nodiscard]] Result<Problem> parse_filter(const Operator& op, std::span<const std::string> words);
// True when every field of the filter has the problem's value.
[[nodiscard]] bool matches(const Problem& filter, const Problem& problem);
// The problem without the fields that have their default: what a person writes.
[[nodiscard]] Problem essential(const Operator& op, const Problem& problem);
// "n=4608 k=4096": required fields, and those that differ from their default, in the order of fields().
[[nodiscard]] std::string format_problem(const Operator& op, const Problem& problem);

// The meaning of a table's row, for tables::Loader: the operator exists, its fields and values too, each
// bucket's template is the operator's and its constants tile the problem; of a general row they tile every
// problem that it lists. Fills in the problems' defaults, and the max_m of an exact row.
[[nodiscard]] std::vector<tables::RowFault> check_row(tables::Row& row);

// What a row says for a problem that it admits: the row itself where it is exact. bad_input names what keeps
// a general row from serving this one: constants that do not tile it, or no M. Requires a problem that
// judge() accepts.
[[nodiscard]] Result<tables::Row> row_at(const tables::Row& row, const Problem& problem);

}  // namespace kiln::operators
