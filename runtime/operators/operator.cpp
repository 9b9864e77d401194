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
        return Complaint{name, fmt::format("one of {}", fmt::join(field->words, ", ")),
                         word != nullptr && word->empty() ? "nothing" : to_text(value)};
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
    static const Operator* const operators[] = {&linear(), &router(), &moe_sort(), &fused_moe()};
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

const KernelTemplate* find_kernel_template(std::string_view id, std::string_view processor) {
    return dynamic_cast<const KernelTemplate*>(find_template(id, processor));
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

namespace {

using tables::Row;
using tables::RowFault;

std::string operator_names() {
    std::vector<std::string_view> names;
    std::transform(all_operators().begin(), all_operators().end(), std::back_inserter(names),
                   [](const Operator* known) { return known->name(); });
    return fmt::format("{}", fmt::join(names, ", "));
}

constexpr std::string_view kSlots = "slots";

// 0 where the operator's tokens have none.
std::int64_t slots_of(const Problem& problem) {
    const auto slots = problem.find(kSlots);
    return slots != problem.end() ? std::get<std::int64_t>(slots->second) : 0;
}

// Defaults for what is neither settled nor open, and what is wrong with either.
std::vector<RowFault> complete_row(const Operator& op, Row& row) {
    std::vector<RowFault> faults;
    const auto complain = [&faults](const Complaint& complaint) {
        faults.push_back({"/problem/" + complaint.field, complaint.expected, complaint.found});
    };
    for (const auto& [name, range] : row.open) {
        const Field* field = find_field(op, name);
        if (field == nullptr) {
            complain({name, fmt::format("a field of {} ({})", op.name(), field_names(op)), name});
        } else if (field->is_word() && !range.is_any()) {
            complain({name, "a word, or \"*\" for any", to_text(range)});
        } else if (range.min && range.max && *range.min > *range.max) {
            complain({name, "ends that have a number between them", to_text(range)});
        }
    }
    for (const Complaint& complaint : fill_in(op, row.problem)) {
        if (!row.open.contains(complaint.field)) {
            complain(complaint);
        }
    }
    for (const Field& field : op.fields()) {
        const auto settled = row.problem.find(field.name);
        const bool is_default = settled != row.problem.end() &&
                                settled->second == tables::FieldValue(field.default_number.value_or(0));
        if (field.is_demand && (row.open.contains(field.name) || !is_default)) {
            complain({std::string(field.name),
                      "nothing: it is for a problem to demand, whatever row serves it", "a value of a row"});
        }
    }
    for (const auto& [name, range] : row.open) {
        row.problem.erase(name);
    }
    return faults;
}

// A problem that a general row lists: what it leaves out is the row's, then the operator's.
std::vector<RowFault> complete_listed(const Operator& op, const Row& row, Problem& problem) {
    std::vector<RowFault> faults;
    for (const auto& [name, value] : row.problem) {
        problem.emplace(name, value);
    }
    for (const Complaint& complaint : fill_in(op, problem)) {
        faults.push_back({"/" + complaint.field, complaint.expected, complaint.found});
    }
    if (faults.empty() && !row.admits(problem)) {
        faults.push_back({"",
                          fmt::format("a problem that the row admits: {} {}", tables::to_text(row.problem),
                                      tables::to_text(row.open)),
                          format_problem(op, problem)});
    }
    return faults;
}

std::vector<RowFault> check_templates(const Operator& op, const Row& row) {
    std::vector<RowFault> faults;
    for (std::size_t i = 0; i < row.buckets.size(); ++i) {
        const std::string& id = row.buckets[i].template_id;
        const Template* known = op.find_template(id, row.target.processor);
        if (known == nullptr || !known->serves_rows()) {
            faults.push_back({fmt::format("/buckets/{}/template", i),
                              fmt::format("a template of {} for {}", op.name(), row.target.processor),
                              known == nullptr ? id : fmt::format("{}, a stage of others", id)});
        }
    }
    return faults;
}

// Of two buckets with the same max_m the second serves where the first is passed over, or not at all.
// Requires buckets that check() of their templates accepts.
void check_standing_twice(const Operator& op, const Row& row, const Problem& problem,
                          std::vector<RowFault>& faults) {
    const auto is_deterministic = [&](const Bucket& bucket) {
        const Template* source = op.find_template(bucket.template_id, row.target.processor);
        return source == nullptr || source->is_deterministic(problem, bucket);
    };
    for (std::size_t i = 1; i < row.buckets.size(); ++i) {
        const Bucket& first = row.buckets[i - 1];
        const Bucket& second = row.buckets[i];
        if (first.max_pairs || second.max_pairs || first.max_m != second.max_m) {
            continue;
        }
        if (is_deterministic(first) || !is_deterministic(second)) {
            faults.push_back({fmt::format("/buckets/{}/max_m", i),
                              fmt::format("more than the {} of the bucket before, or a deterministic kernel "
                                          "behind one that is not",
                                          first.max_m),
                              fmt::format("{}", second.max_m)});
        }
    }
}

// Of a problem that the operator knows: its guards, then whether the constants of the buckets that have a
// template tile it. Pointers of faults start at the row; buckets are numbered as the row lists them.
std::vector<RowFault> check_at(const Operator& op, const Row& row, const Problem& problem) {
    if (const auto judged = op.judge(problem); !judged) {
        return {
            {"/problem", fmt::format("a problem that {} serves", op.name()), judged.error().error.message}};
    }
    std::vector<RowFault> faults;
    const Row exact = row.at(problem, slots_of(problem));
    if (exact.buckets.empty()) {
        faults.push_back({"/buckets", "one that holds M = 1", "none"});
    }
    for (std::size_t i = 0; i < row.buckets.size(); ++i) {
        const Template* source = op.find_template(row.buckets[i].template_id, row.target.processor);
        const auto bucket = std::ranges::find_if(exact.buckets, [&](const Bucket& candidate) {
            return candidate.template_id == row.buckets[i].template_id &&
                   candidate.constants == row.buckets[i].constants &&
                   candidate.max_pairs == row.buckets[i].max_pairs &&
                   (candidate.max_pairs || candidate.max_m == row.buckets[i].max_m);
        });
        if (source == nullptr || !source->serves_rows() || bucket == exact.buckets.end()) {
            continue;  // another fault, or no M is left for it
        }
        for (RowFault& fault : source->check(problem, *bucket)) {
            fault.pointer = fmt::format("/buckets/{}{}", i, fault.pointer);
            faults.push_back(std::move(fault));
        }
    }
    if (faults.empty()) {
        check_standing_twice(op, row, problem, faults);
    }
    return faults;
}

std::vector<RowFault> check_listed(const Operator& op, Row& row) {
    std::vector<RowFault> faults;
    if (!row.is_general() && !row.problems.empty()) {
        faults.push_back({"/problems", "open fields, of which the problems are examples", "none"});
        return faults;
    }
    for (std::size_t i = 0; i < row.problems.size(); ++i) {
        const std::string pointer = fmt::format("/problems/{}", i);
        std::vector<RowFault> found = complete_listed(op, row, row.problems[i]);
        for (RowFault& fault : found) {
            fault.pointer = pointer + fault.pointer;
        }
        if (found.empty()) {
            found = check_at(op, row, row.problems[i]);
            for (RowFault& fault : found) {
                fault.expected += fmt::format(", for {}", format_problem(op, row.problems[i]));
                fault.pointer = fault.pointer == "/problem" ? pointer : fault.pointer;
            }
        }
        faults.insert(faults.end(), std::make_move_iterator(found.begin()),
                      std::make_move_iterator(found.end()));
    }
    return faults;
}

}  // namespace

std::vector<tables::RowFault> check_row(tables::Row& row) {
    const Operator* op = find_operator(row.operator_name);
    if (op == nullptr) {
        return {{"/operator", fmt::format("one of {}", operator_names()), row.operator_name}};
    }
    std::vector<RowFault> faults = complete_row(*op, row);
    for (std::size_t i = 0; i < row.buckets.size() && faults.empty(); ++i) {
        if (row.buckets[i].max_pairs && find_field(*op, kSlots) == nullptr) {
            return {{fmt::format("/buckets/{}/max_pairs", i),
                     fmt::format("max_m: a token of {} has no slots", op->name()), "max_pairs"}};
        }
    }
    if (!faults.empty()) {
        return faults;
    }
    faults = row.is_general() ? check_listed(*op, row) : check_at(*op, row, row.problem);
    if (std::ranges::none_of(faults, [](const RowFault& fault) { return fault.pointer == "/problem"; })) {
        std::ranges::move(check_templates(*op, row), std::back_inserter(faults));
    }
    if (!row.is_general()) {
        std::ranges::move(check_listed(*op, row), std::back_inserter(faults));
        if (faults.empty()) {
            row = row.at(Problem(row.problem), slots_of(row.problem));
        }
    }
    return faults;
}

Result<tables::Row> row_at(const tables::Row& row, const Problem& problem) {
    if (!row.is_general()) {
        return row;
    }
    const Operator* op = find_operator(row.operator_name);
    if (op == nullptr) {
        return fail(ErrorCode::bad_input, Stage::table, fmt::format("{} is no operator", row.operator_name));
    }
    if (const std::vector<RowFault> faults = check_at(*op, row, problem); !faults.empty()) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("{} admits {} {}, but {}: expected {}, found {}", row.origin.text(),
                                op->name(), format_problem(*op, problem), faults.front().pointer,
                                faults.front().expected, faults.front().found));
    }
    return row.at(problem, slots_of(problem));
}

}  // namespace kiln::operators
