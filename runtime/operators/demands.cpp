#include "runtime/operators/demands.hpp"

#include <fmt/format.h>

namespace kiln::operators {

Problem without_demands(const Operator& op, Problem problem) {
    for (const Field& field : op.fields()) {
        if (field.is_demand) {
            problem.insert_or_assign(std::string(field.name), *field.default_number);
        }
    }
    return problem;
}

std::optional<std::string> why_passed_over(const Operator& op, const Problem& problem,
                                           const tables::Target& target, const Bucket& bucket) {
    const auto wanted = problem.find(kDeterministic);
    if (wanted == problem.end() || wanted->second == tables::FieldValue(std::int64_t{0})) {
        return std::nullopt;
    }
    const Template* source = op.find_template(bucket.template_id, target.processor);
    if (source == nullptr || source->is_deterministic(problem, bucket)) {
        return std::nullopt;
    }
    return fmt::format("{} with these constants is not deterministic, which the problem demands",
                       bucket.template_id);
}

tables::Row serving(const Operator& op, const tables::Row& row, const Problem& problem) {
    tables::Row result = row;
    result.problem = problem;
    std::int64_t last = 0;
    std::erase_if(result.buckets, [&](const Bucket& bucket) {
        if (bucket.max_m <= last || why_passed_over(op, problem, row.target, bucket)) {
            return true;
        }
        last = bucket.max_m;
        return false;
    });
    return result;
}

}  // namespace kiln::operators
