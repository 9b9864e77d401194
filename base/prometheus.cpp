#include "base/prometheus.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/logfmt.hpp"

namespace kiln::prometheus {
namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_label_name(std::string_view name) {
    return !name.empty() && is_letter(name.front()) && !name.starts_with("__") &&
           std::ranges::all_of(name, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

enum class Quote { escaped, plain };

std::string escaped(std::string_view text, Quote quote) {
    std::string result;
    for (const char c : text) {
        if (c == '\n') {
            result += "\\n";
        } else {
            if (c == '\\' || (c == '"' && quote == Quote::escaped)) {
                result += '\\';
            }
            result += c;
        }
    }
    return result;
}

void append_label(std::string& list, std::string_view name, std::string_view value) {
    list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, escaped(value, Quote::escaped));
}

std::string list_of(std::span<const Label> labels) {
    std::string list;
    for (const Label& label : labels) {
        append_label(list, label.name, label.value);
    }
    return list;
}

tl::unexpected<Error> bad_label(std::string message) {
    return fail(ErrorCode::invalid_argument, Stage::configure, std::move(message));
}

}  // namespace

Result<void> check_labels(std::span<const Label> labels, std::span<const std::string_view> reserved) {
    for (const Label& label : labels) {
        if (!is_label_name(label.name)) {
            return bad_label(fmt::format(
                "label \"{}\": expected letters, digits and _, no digit first and not __ first", label.name));
        }
        if (std::ranges::find(reserved, label.name) != reserved.end()) {
            return bad_label(
                fmt::format("label {}: expected one that kiln gives no meaning of its own", label.name));
        }
        if (std::ranges::count(labels, label.name, &Label::name) > 1) {
            return bad_label(fmt::format("label {}: expected it once, found it again", label.name));
        }
        if (!log::is_utf8(label.value)) {
            return bad_label(
                fmt::format("label {}: expected a value of UTF-8, found other bytes", label.name));
        }
    }
    return {};
}

Page::Page(std::span<const Label> common) : common_(list_of(common)) {}

void Page::family(Type type, std::string_view name, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, Quote::plain), name,
                         type == Type::counter ? "counter" : "gauge");
}

void Page::sample(std::uint64_t value, Labels labels) {
    add(fmt::format("{}", value), labels);
}

void Page::sample(double value, Labels labels) {
    add(std::isfinite(value) ? fmt::format("{}", value)
        : std::isnan(value)  ? "NaN"
        : value > 0          ? "+Inf"
                             : "-Inf",
        labels);
}

void Page::add(std::string_view value, Labels labels) {
    std::string list = common_;
    for (const auto& [name, label] : labels) {
        append_label(list, name, label);
    }
    text_ += list.empty() ? fmt::format("{} {}\n", name_, value)
                          : fmt::format("{}{{{}}} {}\n", name_, list, value);
}

}  // namespace kiln::prometheus
