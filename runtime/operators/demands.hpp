// What a problem asks of the kernels that serve it, beside what they are to compute.
//
// A demand is a field (Field::is_demand) that takes no part in which row of a table serves: the row that does
// may have buckets whose template can not meet it, and those are passed over. The next one in the table's
// order that reaches M serves, so the same max_m may stand twice: first what is quickest, then what meets a
// demand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// 1: two launches with the same input give the same bits. 0: they may differ by rounding.
inline constexpr std::string_view kDeterministic = "deterministic";

// The problem with every demand at its default: what a table is asked for. Requires a problem that complete()
// accepted.
[[nodiscard]] Problem without_demands(const Operator& op, Problem problem);

// Why a bucket of an exact row is passed over for the problem; nothing where it meets every demand. Requires
// a bucket that its template's check() accepts.
[[nodiscard]] std::optional<std::string> why_passed_over(const Operator& op, const Problem& problem,
                                                         const tables::Target& target, const Bucket& bucket);

// What an exact row says for a problem with demands: of its buckets those that are not passed over and that
// some M reaches. May be left without any.
[[nodiscard]] tables::Row serving(const Operator& op, const tables::Row& row, const Problem& problem);

}  // namespace kiln::operators
