#include "base/prometheus.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/prometheus_page.hpp"

namespace {

using kiln::prometheus::Label;
using kiln::prometheus::Page;
using kiln::prometheus::Type;
using kiln::test::PrometheusPage;

std::string fault_of(const std::string& text) {
    try {
        const PrometheusPage page(text);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

std::string refused(const std::vector<Label>& labels) {
    constexpr std::string_view kReserved[] = {"reason"};
    const auto fit = kiln::prometheus::check_labels(labels, kReserved);
    return fit ? "" : fit.error().message;
}

}  // namespace

TEST_CASE("PageIsWrittenAsTheFormatHasIt") {
    const std::vector<Label> common = {{"rank", "3"}};
    Page page(common);
    page.family(Type::counter, "kiln_x_total", "Back\\slash and\nline \"break\".");
    page.sample(std::uint64_t{18446744073709551615u}, {{"reason", "a\\b\"c\"\nd"}});
    page.sample(std::uint64_t{0}, {{"reason", "e"}});
    page.family(Type::gauge, "kiln_y_bytes", "Y.");
    page.sample(std::numeric_limits<double>::infinity());
    CHECK(page.text() ==
          "# HELP kiln_x_total Back\\\\slash and\\nline \"break\".\n"
          "# TYPE kiln_x_total counter\n"
          "kiln_x_total{rank=\"3\",reason=\"a\\\\b\\\"c\\\"\\nd\"} 18446744073709551615\n"
          "kiln_x_total{rank=\"3\",reason=\"e\"} 0\n"
          "# HELP kiln_y_bytes Y.\n"
          "# TYPE kiln_y_bytes gauge\n"
          "kiln_y_bytes{rank=\"3\"} +Inf\n");
    const PrometheusPage read(page.text());
    CHECK(read.families().at("kiln_x_total").help == "Back\\slash and\nline \"break\".");
    CHECK(read.at("kiln_x_total", {{"rank", "3"}, {"reason", "a\\b\"c\"\nd"}}) == 18446744073709551615.0);
}

TEST_CASE("PageWithoutLabelsHasNoBraces") {
    Page page;
    page.family(Type::gauge, "kiln_y_seconds", "Y.");
    page.sample(0.25);
    CHECK(page.text().ends_with("\nkiln_y_seconds 0.25\n"));
}

TEST_CASE("PageKeepsAnyNumberAndAnyTextInALabel") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<double> numbers = {0, -1, 0.1, 1e-300, 1e300, -HUGE_VAL, 1792234567.123456};
    for (int i = 0; i < 200; ++i) {
        numbers.push_back(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100));
    }
    Page page;
    page.family(Type::gauge, "kiln_y", "Y.");
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        texts.push_back(std::to_string(i));
        for (int letter = 0; letter < 6; ++letter) {
            texts.back() += "\\\"\n{}=, n\xc3\xa9"[random() % 9];
        }
        page.sample(numbers[i], {{"text", texts.back()}});
    }
    const PrometheusPage read(page.text());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        CHECK(read.at("kiln_y", {{"text", texts[i]}}) == numbers[i]);
    }
}

TEST_CASE("LabelsThatPrometheusCanNotHaveAreRefusedByName") {
    CHECK(refused({{"rank", "3"}, {"_model", "q\xc3\xa9\n"}}).empty());
    for (const char* name : {"", "3x", "a-b", "a.b", "__x", "\xc3\xa9", "a b"}) {
        CHECK(refused({{name, "x"}}).find(std::string("\"") + name + "\"") != std::string::npos);
    }
    CHECK(refused({{"reason", "x"}}).find("label reason") != std::string::npos);
    CHECK(refused({{"a", "x"}, {"b", "x"}, {"a", "y"}}).find("label a: expected it once") !=
          std::string::npos);
    CHECK(refused({{"a", "\xff"}}).find("UTF-8") != std::string::npos);
}

// The reader itself: what it lets pass, the tests of pages let pass.
TEST_CASE("ReaderOfPagesRefusesWhatTheFormatForbids") {
    const std::string head = "# HELP a_total A.\n# TYPE a_total counter\n";
    CHECK(fault_of(head + "a_total 1\n").empty());
    CHECK(fault_of(head + "a_total{x=\"1\",} 1e3\n").empty());
    CHECK(fault_of(head + "a_total 1") == "the last line does not end");
    for (const char* line :
         {"a_total", "a_total x", "a_total -1", "a_total NaN", "a_total 1 2", "a_total{x=1} 1",
          "a_total{x=\"1} 1", "a_total{x=\"\\t\"} 1", "a_total{x=\"1\" y=\"2\"} 1", "a_total{9=\"1\"} 1",
          "a_total{x=\"1\",x=\"1\"} 1", "b_total 1", "a_total 1\na_total 1", "a_total 1\n# HELP a_total A.",
          "a_total 1\n# TYPE a_total counter"}) {
        CHECK_MESSAGE(!fault_of(head + line + "\n").empty(), line);
    }
    CHECK_FALSE(fault_of("# HELP a A.\n# TYPE a counter\na 1\n").empty());
    CHECK_FALSE(fault_of("# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n").empty());
    CHECK_FALSE(fault_of("# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n").empty());
    CHECK_FALSE(fault_of("# TYPE a gauge\na 1\n").empty());
    CHECK_FALSE(fault_of("# HELP a A.\na 1\n").empty());
    CHECK_FALSE(fault_of(head).empty());
}
