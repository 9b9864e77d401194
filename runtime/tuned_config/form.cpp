#include "runtime/tuned_config/form.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/tuned_config/csv.hpp"

namespace kiln::tuned_config {
namespace {

constexpr std::string_view kNeededValues[] = {"block_m", "kernelName1", "kernelName2"};
constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int32_t>::max();

bool is_needed(std::string_view column) {
    return std::ranges::find(kColumns, column) < kColumns.begin() + kNumKeyColumns ||
           std::ranges::find(kNeededValues, column) != std::end(kNeededValues);
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
    T value{};
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

Timing timing_of(const FormRow& row) {
    const double first = row.us1.value_or(0);
    const double second = row.us2.value_or(0);
    const double all = row.us.value_or(0);
    // Times are written with four digits behind the point, or as a double.
    const auto equal = [](double a, double b) { return std::abs(a - b) <= 1e-3 + 1e-6 * b; };
    if (first == 0 && second == 0 && all == 0) {
        return Timing::none;
    }
    if (second == 0) {
        return first == 0 || all == 0 || equal(first, all) ? Timing::end_to_end : Timing::unclear;
    }
    return first > 0 && equal(first + second, all) ? Timing::sum_of_stages : Timing::unclear;
}

// Reads one record by the names of its columns, and notes every fault.
class RowReader {
  public:
    RowReader(const std::string& source, const std::map<std::string, std::size_t, std::less<>>& columns,
              const std::vector<Cell>& cells, std::vector<tables::Fault>& faults)
        : source_(source), columns_(columns), cells_(cells), faults_(faults) {}

    FormRow read() {
        FormRow row;
        row.line = cells_.front().position.line;
        for (const auto& cell : cells_) {
            row.cells.push_back(cell.text);
        }
        if (auto target = tables::parse_target(needed("gfx"))) {
            row.target = *std::move(target);
        } else {
            fault("gfx", "a processor, such as gfx950", quoted("gfx"));
        }
        row.cu_num = number_if_any("cu_num", 1);
        row.token = number("token", 1);
        row.model_dim = number("model_dim", 1);
        row.inter_dim = number("inter_dim", 1);
        row.expert = number("expert", 1);
        row.topk = number("topk", 1);
        row.act_type = needed("act_type");
        row.dtype = needed("dtype");
        row.q_dtype_a = needed("q_dtype_a");
        row.q_dtype_w = needed("q_dtype_w");
        row.q_type = needed("q_type");
        row.use_g1u1 = flag("use_g1u1");
        row.doweight_stage1 = flag("doweight_stage1");
        row.block_m = number("block_m", 1);
        row.ksplit = number_if_any("ksplit", 0).value_or(0);
        row.kernel1 = text("kernelName1");
        row.kernel2 = text("kernelName2");
        row.us1 = amount("us1");
        row.us2 = amount("us2");
        row.us = amount("us");
        row.err1 = ratio("err1");
        row.err2 = ratio("err2");
        row.run_1stage = flag("run_1stage");
        row.timing = timing_of(row);
        return row;
    }

  private:
    const Cell* cell(std::string_view column) const {
        const auto found = columns_.find(column);
        return found == columns_.end() ? nullptr : &cells_[found->second];
    }
    std::string text(std::string_view column) const {
        const auto* found = cell(column);
        return found != nullptr ? found->text : std::string();
    }
    std::string quoted(std::string_view column) const { return fmt::format("\"{}\"", text(column)); }

    void fault(std::string_view column, std::string expected, std::string found) {
        faults_.push_back(
            {source_, cell(column)->position, std::string(column), std::move(expected), std::move(found)});
    }

    std::string needed(std::string_view column) {
        auto value = text(column);
        if (value.empty()) {
            fault(column, "a value", "none");
        }
        return value;
    }

    std::optional<std::int64_t> number_if_any(std::string_view column, std::int64_t least) {
        const auto value = text(column);
        if (value.empty()) {
            return std::nullopt;
        }
        const auto number = whole_number<std::int64_t>(value);
        if (!number || *number < least || *number > kMaxNumber) {
            fault(column, fmt::format("a whole number from {} to {}", least, kMaxNumber), quoted(column));
            return std::nullopt;
        }
        return number;
    }
    std::int64_t number(std::string_view column, std::int64_t least) {
        if (text(column).empty()) {
            fault(column, fmt::format("a whole number from {} to {}", least, kMaxNumber), "none");
            return least;
        }
        return number_if_any(column, least).value_or(least);
    }

    std::optional<double> amount_of(std::string_view column, std::string_view value, std::string_view what) {
        if (value.empty()) {
            return std::nullopt;
        }
        const auto number = whole_number<double>(value);
        if (!number || !std::isfinite(*number) || *number < 0) {
            fault(column, std::string(what), quoted(column));
            return std::nullopt;
        }
        return number;
    }
    std::optional<double> amount(std::string_view column) {
        return amount_of(column, text(column), "a time in microseconds, 0 or more");
    }
    std::optional<double> ratio(std::string_view column) {
        auto value = text(column);
        const bool percent = value.ends_with('%');
        if (percent) {
            value.pop_back();
        }
        auto number = amount_of(column, value, "an error, 0 or more, as a ratio or with %");
        if (number && percent) {
            *number /= 100;
        }
        return number;
    }

    bool flag(std::string_view column) {
        const auto value = text(column);
        if (value == "1" || value == "True") {
            return true;
        }
        if (!value.empty() && value != "0" && value != "False") {
            fault(column, "0, 1, False or True", quoted(column));
        }
        return false;
    }

    const std::string& source_;
    const std::map<std::string, std::size_t, std::less<>>& columns_;
    const std::vector<Cell>& cells_;
    std::vector<tables::Fault>& faults_;
};

// The columns of a header by name. Faults: a name twice, one that is needed and not there.
std::map<std::string, std::size_t, std::less<>> read_header(const std::string& source,
                                                            const std::vector<Cell>& header, Form& form) {
    std::map<std::string, std::size_t, std::less<>> columns;
    for (std::size_t i = 0; i < header.size(); ++i) {
        const auto& name = header[i].text;
        if (!columns.emplace(name, i).second) {
            form.faults.push_back(
                {source, header[i].position, {}, "each column once", fmt::format("a second \"{}\"", name)});
        }
        form.columns.push_back(name);
        if (std::ranges::find(kColumns, name) == kColumns.end()) {
            form.unknown.push_back(name);
        }
    }
    std::vector<std::string_view> needed;
    for (const auto column : kColumns) {
        if (!columns.contains(column)) {
            if (is_needed(column)) {
                needed.push_back(column);
            } else {
                form.missing.emplace_back(column);
            }
        }
    }
    if (!needed.empty()) {
        form.faults.push_back({source,
                               header.front().position,
                               {},
                               fmt::format("the columns {}", fmt::join(needed, ", ")),
                               form.unknown.empty()
                                   ? std::string("none of these names")
                                   : fmt::format("the unknown columns {}", fmt::join(form.unknown, ", "))});
    }
    return columns;
}

}  // namespace

std::string_view to_text(Timing timing) {
    switch (timing) {
        case Timing::end_to_end:
            return "end_to_end";
        case Timing::sum_of_stages:
            return "sum_of_stages";
        case Timing::unclear:
            return "unclear";
        case Timing::none:
            break;
    }
    return "none";
}

std::string FormRow::group() const {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", target.text(),
                       cu_num.value_or(0), model_dim, inter_dim, expert, topk, act_type, dtype, q_dtype_a,
                       q_dtype_w, q_type, use_g1u1, doweight_stage1);
}

Form read_form(std::string_view source, std::string_view text) {
    Form form;
    auto csv = read_csv(source, text);
    form.faults = std::move(csv.faults);
    const std::string name(source);
    if (form.faults.empty() && csv.records.empty()) {
        form.faults.push_back({name, {}, {}, "a header and rows", "nothing"});
    }
    if (!form.faults.empty()) {
        return form;
    }
    const auto columns = read_header(name, csv.records.front(), form);
    if (!form.faults.empty()) {
        return form;
    }
    std::map<std::pair<std::string, std::int64_t>, std::size_t> lines;  // by key
    for (std::size_t i = 1; i < csv.records.size(); ++i) {
        const auto& record = csv.records[i];
        const auto faults_before = form.faults.size();
        auto row = RowReader(name, columns, record, form.faults).read();
        if (form.faults.size() == faults_before) {
            const auto [other, is_new] = lines.emplace(std::pair(row.group(), row.token), row.line);
            if (!is_new) {
                form.faults.push_back({name, record[columns.find("token")->second].position, "token",
                                       "one row for a key",
                                       fmt::format("a second one for token {} (the first stands in line {})",
                                                   row.token, other->second)});
            }
        }
        form.rows.push_back(std::move(row));
    }
    return form;
}

}  // namespace kiln::tuned_config
