#include "runtime/tune/candidates.hpp"

#include <algorithm>
#include <utility>

#include "runtime/operators/demands.hpp"

namespace kiln::tune {

namespace {

std::vector<tables::Constants> combinations_of(const operators::SpaceProduct& product) {
    std::vector<tables::Constants> result{{}};
    for (const operators::ConstantValues& constant : product) {
        std::vector<tables::Constants> longer;
        for (const tables::Constants& head : result) {
            for (const std::int64_t value : constant.values) {
                tables::Constants next = head;
                next.emplace(constant.name, value);
                longer.push_back(std::move(next));
            }
        }
        result = std::move(longer);
    }
    return result;
}

}  // namespace

std::vector<tables::Constants> combinations(const operators::Space& space) {
    std::vector<tables::Constants> result;
    for (const operators::SpaceProduct& product : space) {
        for (tables::Constants& constants : combinations_of(product)) {
            result.push_back(std::move(constants));
        }
    }
    return result;
}

std::vector<Candidate> candidates(const operators::Operator& op, const operators::Problem& problem,
                                  std::int64_t m, const tables::Target& target, const tables::Bucket* present,
                                  std::span<const std::string> templates) {
    std::vector<Candidate> result;
    const auto add = [&](const operators::Template& source, tables::Constants constants) {
        Candidate candidate{{m, std::string(source.id()), std::move(constants)}, false};
        const bool is_new = std::ranges::none_of(
            result, [&](const Candidate& known) { return known.bucket == candidate.bucket; });
        if (is_new && source.check(problem, candidate.bucket).empty() &&
            !operators::why_passed_over(op, problem, target, candidate.bucket)) {
            result.push_back(std::move(candidate));
        }
    };
    if (present != nullptr) {
        result.push_back({{present->max_m, present->template_id, present->constants}, true});
    }
    for (const operators::Template* source : op.templates()) {
        const bool is_asked =
            templates.empty() || std::ranges::find(templates, source->id()) != templates.end();
        if (is_asked && source->processor() == target.processor) {
            for (tables::Constants& constants : combinations(source->space(problem, m))) {
                add(*source, std::move(constants));
            }
        }
    }
    if (present != nullptr) {
        if (const operators::Template* source = op.find_template(present->template_id, target.processor)) {
            add(*source, present->constants);
        }
    }
    return result;
}

}  // namespace kiln::tune
