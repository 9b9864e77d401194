#include "runtime/service/suggestion.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/operators/demands.hpp"

namespace kiln::service {

operators::Answer<tables::Row> suggest_row(const operators::Operator& op, const operators::Problem& problem,
                                           const tables::Target& target) {
    if (operators::Answer<void> judged = op.judge(problem); !judged) {
        return tl::unexpected<operators::Refusal>(std::move(judged.error()));
    }
    Result<std::vector<tables::Bucket>> buckets = op.derive(problem, target);
    if (!buckets) {
        return operators::failed(std::move(buckets.error()));
    }
    tables::Row row;
    row.operator_name = op.name();
    row.problem = operators::essential(op, operators::without_demands(op, problem));
    row.target = target;
    row.buckets = *std::move(buckets);
    row.provenance.kind = "derived";
    row.provenance.note =
        fmt::format("by the rule of {} for {}; not timed", row.buckets.front().template_id, target.processor);
    row.provenance.document =
        nlohmann::json{{"kind", row.provenance.kind}, {"note", row.provenance.note}}.dump();
    return row;
}

}  // namespace kiln::service
