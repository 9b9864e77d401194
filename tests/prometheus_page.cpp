#include "tests/prometheus_page.hpp"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

bool is_name_character(char c, bool first, bool of_metric) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (of_metric && c == ':') ||
           (!first && c >= '0' && c <= '9');
}

// One line, taken from the front.
class Line {
  public:
    Line(std::string_view text, std::size_t number) : rest_(text), number_(number) {}

    [[noreturn]] void refuse(const std::string& why) const {
        throw std::runtime_error("line " + std::to_string(number_) + ": " + why + ", at \"" +
                                 std::string(rest_) + "\"");
    }
    [[nodiscard]] bool ends() const { return rest_.empty(); }
    [[nodiscard]] bool take(std::string_view word) {
        const bool is_next = rest_.starts_with(word);
        rest_.remove_prefix(is_next ? word.size() : 0);
        return is_next;
    }
    void blanks() {
        while (take(" ") || take("\t")) {
        }
    }
    std::string name(bool of_metric) {
        std::size_t length = 0;
        while (length < rest_.size() && is_name_character(rest_[length], length == 0, of_metric)) {
            ++length;
        }
        if (length == 0) {
            refuse("expected a name");
        }
        return taken(length);
    }
    std::string word() { return taken(rest_.find_first_of(" \t")); }
    // What is escaped read back, up to `end`, which is taken; to the end of the line where that is 0.
    std::string unescaped(char end) {
        std::string value;
        while (!rest_.empty() && rest_.front() != end) {
            char c = rest_.front();
            if (c == '\\') {
                rest_.remove_prefix(1);
                c = rest_.empty() ? '\0' : rest_.front();
                if (c != '\\' && c != 'n' && (c != '"' || end != '"')) {
                    refuse("an escape that the format does not have");
                }
                c = c == 'n' ? '\n' : c;
            }
            value += c;
            rest_.remove_prefix(1);
        }
        if (end != '\0' && !take(std::string_view(&end, 1))) {
            refuse("a value without an end");
        }
        return value;
    }
    double value() {
        const std::string text = word();
        if (text == "+Inf" || text == "-Inf") {
            return text[0] == '+' ? HUGE_VAL : -HUGE_VAL;
        }
        if (text == "NaN") {
            return std::nan("");
        }
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0' || !std::isfinite(number)) {
            refuse("expected a number, found \"" + text + "\"");
        }
        return number;
    }

  private:
    std::string taken(std::size_t length) {
        const std::string word(rest_.substr(0, length));
        rest_.remove_prefix(word.size());
        return word;
    }

    std::string_view rest_;
    const std::size_t number_;
};

// Behind the {: labels with commas between, one more of which may stand at the end.
std::map<std::string, std::string> read_labels(Line& line) {
    std::map<std::string, std::string> labels;
    while (!line.take("}")) {
        const std::string name = line.name(false);
        if (name.starts_with("__")) {
            line.refuse("a label that is Prometheus' own");
        }
        if (!line.take("=\"")) {
            line.refuse("expected =\" behind a label");
        }
        if (!labels.emplace(name, line.unescaped('"')).second) {
            line.refuse("the label " + name + " twice");
        }
        if (line.take("}")) {
            break;
        }
        if (!line.take(",")) {
            line.refuse("expected , or } behind a label");
        }
    }
    return labels;
}

// How a metric is to be named, by its type.
void check_practice(const Line& line, const std::string& name, const PrometheusFamily& family) {
    const bool is_total = name.ends_with("_total");
    if (family.type != "counter" && family.type != "gauge") {
        line.refuse(name + ": a type that is not looked for here: " + family.type);
    }
    if (is_total != (family.type == "counter")) {
        line.refuse(name + ": a counter's name, and no other, ends in _total");
    }
    for (const char* unit : {"_ms", "_us", "_millis", "_minutes", "_kb", "_mb", "_mib", "_percent"}) {
        if (name.ends_with(unit) || name.ends_with(std::string(unit) + "_total")) {
            line.refuse(name + ": a unit that is no base unit");
        }
    }
    for (const auto& sample : family.samples) {
        if (is_total && !(sample.value >= 0 && std::isfinite(sample.value))) {
            line.refuse(name + ": a counter that is no count");
        }
    }
}

}  // namespace

PrometheusPage::PrometheusPage(std::string_view text) {
    if (!text.empty() && text.back() != '\n') {
        throw std::runtime_error("the last line does not end");
    }
    std::string open;  // the family that samples belong to
    std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
    std::size_t number = 0;
    while (!text.empty()) {
        Line line(text.substr(0, text.find('\n')), ++number);
        text.remove_prefix(text.find('\n') + 1);
        if (line.ends()) {
            continue;
        }
        if (line.take("# HELP ")) {
            const std::string name = line.name(true);
            if (families_.contains(name)) {
                line.refuse(name + ": its HELP twice, or behind its samples");
            }
            line.blanks();
            families_[name].help = line.unescaped('\0');
            if (families_[name].help.empty()) {
                line.refuse(name + ": an empty HELP");
            }
            open = name;
            continue;
        }
        if (line.take("# TYPE ")) {
            const std::string name = line.name(true);
            if (name != open || !families_[name].type.empty() || !families_[name].samples.empty()) {
                line.refuse(name + ": its TYPE does not follow its HELP");
            }
            line.blanks();
            families_[name].type = line.word();
            continue;
        }
        if (line.take("#")) {
            continue;  // a comment
        }
        const std::string name = line.name(true);
        if (name != open || families_[name].type.empty()) {
            line.refuse(name + ": a sample outside of its family, or before its TYPE");
        }
        PrometheusFamily::Sample sample;
        if (line.take("{")) {
            sample.labels = read_labels(line);
        }
        line.blanks();
        sample.value = line.value();
        if (!line.ends()) {
            line.refuse("expected nothing behind the value");
        }
        if (!seen.emplace(name, sample.labels).second) {
            line.refuse(name + ": a sample twice");
        }
        families_[name].samples.push_back(sample);
        check_practice(line, name, families_[name]);
    }
    for (const auto& [name, family] : families_) {
        if (family.type.empty() || family.samples.empty()) {
            throw std::runtime_error(name + ": no TYPE, or no sample");
        }
    }
}

double PrometheusPage::at(const std::string& family, const std::map<std::string, std::string>& labels) const {
    for (const auto& sample : families_.at(family).samples) {
        if (sample.labels == labels) {
            return sample.value;
        }
    }
    throw std::runtime_error(family + ": no sample with these labels");
}

double PrometheusPage::sum(const std::string& family) const {
    const auto& samples = families_.at(family).samples;
    return std::accumulate(samples.begin(), samples.end(), 0.0,
                           [](double total, const auto& sample) { return total + sample.value; });
}

}  // namespace kiln::test
