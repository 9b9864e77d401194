#include "runtime/tune/made_row.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/operators/demands.hpp"
#include "runtime/tune/record_json.hpp"

namespace kiln::tune {

namespace {

constexpr std::string_view kModel = "model";
constexpr std::array<std::string_view, 3> kOfMeasurements{"measured", "published", "imported"};

Json tuned_json(const ChoiceRecord& choice) {
    Json one = {{"m", choice.subject.m}};
    if (choice.winner) {
        one["us"] = choice.winner->us;
        one["bucket"] = to_json(choice.winner->bucket);
    }
    one["stays"] = choice.stays;
    if (choice.runner_up) {
        one["runner_up"] = {{"us", choice.runner_up->us}};
        one["runner_up"].update(to_json(choice.runner_up->bucket));
    }
    return one;
}

std::string note_of(const TunedProblem& tuned, const Conditions& conditions) {
    std::vector<std::int64_t> values;
    for (const ChoiceRecord& choice : tuned.choices) {
        values.push_back(choice.subject.m);
    }
    return fmt::format("{} by kiln tune at M = {}; the rest as before",
                       conditions.kind == kModel ? "a model, not measured," : "timed",
                       fmt::join(values, ", "));
}

}  // namespace

tables::Row made_row(const TunedProblem& tuned, const Conditions& conditions,
                     std::vector<tables::Bucket> buckets) {
    tables::Row row;
    row.operator_name = tuned.op->name();
    row.problem = operators::essential(*tuned.op, operators::without_demands(*tuned.op, tuned.problem));
    row.target = tuned.target;
    if (tuned.before != nullptr) {
        row.cu_num = tuned.before->cu_num;
    }
    row.buckets = std::move(buckets);
    row.provenance.kind = conditions.kind;
    row.provenance.note = note_of(tuned, conditions);
    Json document = {{"kind", conditions.kind},         {"note", row.provenance.note},
                     {"device", conditions.device},     {"driver", conditions.driver},
                     {"compiler", conditions.compiler}, {"date", conditions.date}};
    for (const ChoiceRecord& choice : tuned.choices) {
        document["tuned"].push_back(tuned_json(choice));
    }
    if (tuned.before != nullptr) {
        document["before"] = Json::parse(tuned.before->provenance.document);
        document["before"].erase("before");
    }
    row.provenance.document = document.dump();
    return row;
}

std::string gives_way_to(const Conditions& conditions, const tables::Row& there) {
    const std::string& kind = there.provenance.kind;
    if (conditions.kind != kModel || std::ranges::find(kOfMeasurements, kind) == kOfMeasurements.end()) {
        return {};
    }
    return fmt::format("{} is {}, and a model never takes its place", there.origin.text(), kind);
}

}  // namespace kiln::tune
