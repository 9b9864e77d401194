#include "runtime/operators/operator.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/compile/target_family.hpp"

namespace kiln::operators {

namespace {

const Field* find_field(const Operator& op, std::string_view name) {
    const auto fields = op.fields();
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
    return found != fields.end() ? &*found : nullptr;
}

std::string field_names(const Operator& op) {
    std::vector<std::string_view> names;
    std::transform(op.fields().begin(), op.fields().end(), std::back_inserter(names),
                   [](const Field& f) { return f.name; });
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string to_text(const tables::FieldValue& value) {
    return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

// What is wrong with one member of a problem: expected and found, or nothing.
struct Complaint {
    std::string field, expected, found;
};

std::optional<Complaint> check_field(const Operator& op, const std::string& name,
                                     const tables::FieldValue& value) {
    const Field* field = find_field(op, name);
    if (field == nullptr) {
        return Complaint{name, fmt::format("a field of {} ({})", op.name(), field_names(op)), name};
    }
    if (!field->is_word()) {
        if (!std::holds_alternative<std::int64_t>(value)) {
            return Complaint{name, "an integer", fmt::format("\"{}\"", to_text(value))};
        }
        return std::nullopt;
    }
    const auto* word = std::get_if<std::string>(&value);
    if (word == nullptr || std::find(field->words.begin(), field->words.end(), *word) == field->words.end()) {
        return Complaint{name, fmt::format("one of {}", fmt::join(field->words, ", ")), to_text(value)};
    }
    return std::nullopt;
}

std::vector<Complaint> fill_in(const Operator& op, Problem& problem) {
    std::vector<Complaint> complaints;
    for (const auto& [name, value] : problem) {
        if (auto complaint = check_field(op, name, value)) {
            complaints.push_back(*std::move(complaint));
        }
    }
    for (const Field& field : op.fields()) {
        if (problem.contains(field.name)) {
            continue;
        }
        if (field.is_required()) {
            complaints.push_back(
                {std::string(field.name), fmt::format("{}: {}", field.name, field.what), "nothing"});
        } else if (field.is_word()) {
            problem.emplace(field.name, std::string(field.words.front()));
        } else {
            problem.emplace(field.name, *field.default_number);
        }
    }
    return complaints;
}

Error to_error(const Operator& op, const Complaint& complaint) {
    return {ErrorCode::bad_input, Stage::configure,
            fmt::format("{}: field {}: expected {}, found {}", op.name(), complaint.field, complaint.expected,
                        complaint.found)};
}

}  // namespace

const Template* Operator::find_template(std::string_view id, std::string_view processor) const {
    const compile::Family family = compile::family_of(processor);
    const Template* relative = nullptr;
    for (const Template* candidate : templates()) {
        if (candidate->id() != id) {
            continue;
        }
        if (candidate->processor() == processor) {
            return candidate;
        }
        if (relative == nullptr && family == compile::family_of(candidate->processor())) {
            relative = candidate;
        }
    }
    return relative;
}

std::span<const Operator* const> all_operators() {
    static const Operator* const operators[] = {&linear()};
    return operators;
}

const Operator* find_operator(std::string_view name) {
    for (const Operator* op : all_operators()) {
        if (op->name() == name) {
            return op;
        }
    }
    return nullptr;
}

const Template* find_template(std::string_view id, std::string_view processor) {
    for (const Operator* op : all_operators()) {
        if (const Template* found = op->find_template(id, processor)) {
            return found;
        }
    }
    return nullptr;
}

Result<Problem> complete(const Operator& op, Problem problem) {
    const std::vector<Complaint> complaints = fill_in(op, problem);
    if (!complaints.empty()) {
        return tl::unexpected<Error>(to_error(op, complaints.front()));
    }
    return problem;
}

Result<Problem> parse_filter(const Operator& op, std::span<const std::string> words) {
    Problem problem;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) {
            return fail(ErrorCode::bad_input, Stage::configure,
                        fmt::format("{}: expected FIELD=VALUE, found \"{}\"", op.name(), word));
        }
        const std::string name = word.substr(0, equals);
        const std::string text = word.substr(equals + 1);
        const Field* field = find_field(op, name);
        tables::FieldValue value = text;
        if (field != nullptr && !field->is_word()) {
            std::int64_t number = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
            if (error == std::errc{} && end == text.data() + text.size()) {
                value = number;
            }
        }
        if (auto complaint = check_field(op, name, value)) {
            return tl::unexpected<Error>(to_error(op, *complaint));
        }
        if (!problem.emplace(name, std::move(value)).second) {
            return fail(ErrorCode::bad_input, Stage::configure,
                        fmt::format("{}: field {}: expected once, found twice", op.name(), name));
        }
    }
    return problem;
}

Result<Problem> parse_problem(const Operator& op, std::span<const std::string> words) {
    Result<Problem> problem = parse_filter(op, words);
    return problem ? complete(op, *std::move(problem)) : problem;
}

bool matches(const Problem& filter, const Problem& problem) {
    return std::all_of(filter.begin(), filter.end(), [&](const auto& field) {
        const auto found = problem.find(field.first);
        return found != problem.end() && found->second == field.second;
    });
}

Problem essential(const Operator& op, const Problem& problem) {
    Problem result = problem;
    for (const Field& field : op.fields()) {
        const auto found = result.find(field.name);
        if (found == result.end()) {
            continue;
        }
        const bool is_default = field.is_word()
                                    ? to_text(found->second) == field.words.front()
                                    : field.default_number == std::get<std::int64_t>(found->second);
        if (is_default) {
            result.erase(found);
        }
    }
    return result;
}

std::string format_problem(const Operator& op, const Problem& problem) {
    const Problem shown = essential(op, problem);
    std::vector<std::string> words;
    for (const Field& field : op.fields()) {
        if (const auto found = shown.find(field.name); found != shown.end()) {
            words.push_back(fmt::format("{}={}", field.name, to_text(found->second)));
        }
    }
    return fmt::format("{}", fmt::join(words, " "));
}

std::vector<tables::RowFault> check_row(tables::Row& row) {
    std::vector<tables::RowFault> faults;
    const Operator* op = find_operator(row.operator_name);
    if (op == nullptr) {
        std::vector<std::string_view> names;
        std::transform(all_operators().begin(), all_operators().end(), std::back_inserter(names),
                       [](const Operator* known) { return known->name(); });
        return {{"/operator", fmt::format("one of {}", fmt::join(names, ", ")), row.operator_name}};
    }
    for (const Complaint& complaint : fill_in(*op, row.problem)) {
        faults.push_back({"/problem/" + complaint.field, complaint.expected, complaint.found});
    }
    if (!faults.empty()) {
        return faults;
    }
    if (const auto judged = op->judge(row.problem); !judged) {
        return {
            {"/problem", fmt::format("a problem that {} serves", op->name()), judged.error().error.message}};
    }
    for (std::size_t i = 0; i < row.buckets.size(); ++i) {
        const std::string bucket = fmt::format("/buckets/{}", i);
        const std::string& id = row.buckets[i].template_id;
        const Template* source = op->find_template(id, row.target.processor);
        if (source == nullptr) {
            faults.push_back({bucket + "/template",
                              fmt::format("a template of {} for {}", op->name(), row.target.processor), id});
            continue;
        }
        for (tables::RowFault& fault : source->check(row.problem, row.buckets[i])) {
            fault.pointer = bucket + fault.pointer;
            faults.push_back(std::move(fault));
        }
    }
    return faults;
}

}  // namespace kiln::operators
