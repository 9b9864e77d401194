// A report as one HTML page: nothing in it is fetched, nothing in it comes out as markup.

#include "runtime/report/page.hpp"

#include <regex>

#include <nlohmann/json.hpp>

#include "tests/report/support.hpp"

using namespace kiln::report;
using kiln::tune::Status;
using nlohmann::json;

namespace {

// What stands between the tag that begins with `open` and the next `close`.
std::vector<std::string> between(const std::string& page, const std::string& open, const std::string& close) {
    std::vector<std::string> found;
    for (auto at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
        const auto start = page.find('>', at) + 1;
        found.push_back(page.substr(start, page.find(close, start) - start));
    }
    return found;
}

std::vector<json> plots(const std::string& page) {
    std::vector<json> made;
    for (const auto& text : between(page, "<script type=\"application/json\"", "</script>")) {
        made.push_back(json::parse(text));
    }
    return made;
}

// The page without what its scripts, its style and its data hold.
std::string skeleton(const std::string& page) {
    static const std::regex inside("<(script|style)([^>]*)>");
    std::string made;
    auto rest = page;
    for (std::smatch match; std::regex_search(rest, match, inside);) {
        const std::string name = match[1];
        made += match.prefix().str() + match.str();
        rest = match.suffix();
        rest.erase(0, rest.find("</" + name + ">"));
    }
    return made + rest;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

}  // namespace

TEST_CASE("PageFetchesNothing") {
    const auto page = to_page(crossing());
    // Whatever its scripts might try: the browser is told to load nothing.
    CHECK(contains(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "));
    CHECK_FALSE(std::regex_search(
        page, std::regex("Content-Security-Policy\" content=\"[^\"]*(https?:|\\*|'self'|data:)")));
    CHECK(page.find("Content-Security-Policy") < page.find("<style"));

    const auto bones = skeleton(page);
    for (const char* element :
         {"<link", "<img", "<iframe", "<object", "<embed", "<base", "<form", "<audio", "<video", "<source"}) {
        CAPTURE(element);
        CHECK_FALSE(contains(bones, element));
    }
    CHECK_FALSE(contains(bones, "://"));
    CHECK_FALSE(
        std::regex_search(bones, std::regex("\\s(src|srcset|action|data|poster|background|ping)\\s*=")));
    CHECK_FALSE(std::regex_search(bones, std::regex("\\shref\\s*=\\s*\"[^#]")));
    for (const auto& style : between(page, "<style", "</style>")) {
        CHECK_FALSE(contains(style, "url("));
        CHECK_FALSE(contains(style, "@import"));
    }
    const auto scripts = between(page, "<script>", "</script>");
    REQUIRE(scripts.size() == 2);
    CHECK(contains(scripts[0], "Chart.js v3"));
    for (const auto& script : scripts) {
        for (const char* word : {"XMLHttpRequest", "fetch(", "import(", "WebSocket", "sendBeacon",
                                 "EventSource", "new Image("}) {
            CAPTURE(word);
            CHECK_FALSE(contains(script, word));
        }
    }
}

TEST_CASE("PageCarriesTheLicenseOfThePlottingLibrary") {
    const auto page = to_page(crossing());
    CHECK(contains(page, "Permission is hereby granted, free of charge"));
    CHECK(contains(page, "Chart.js Contributors"));
    CHECK(contains(page, "Jukka Kurkela"));
}

TEST_CASE("PagePlotsEveryTimeAndSaysWhatItIs") {
    const auto data = plots(to_page(crossing()));
    REQUIRE(data.size() == 2);
    CHECK(data[0]["is_model"] == true);
    CHECK(data[0]["basis"] == "model, not measured");
    CHECK(data[0]["series"][0] ==
          json{{"label", "mxmoe"}, {"wins", {32}}, {"points", {{16, 60.0}, {32, 99.5}}}});
    CHECK(data[0]["limit"] == json{{16, 30.0}, {32, 74.625}});
    CHECK(data[1]["is_model"] == false);
    CHECK(data[1]["basis"] == "measured, end to end");
    CHECK(data[1]["series"].size() == 1);
    CHECK(data[1]["limit"].empty());
}

TEST_CASE("PageMarksAModelInItsHeadingCaptionAndPlot") {
    const auto page = to_page(crossing());
    CHECK(contains(page, "<span class=\"basis model\">model, not measured</span>"));
    CHECK(contains(page, "<span class=\"basis measured\">measured, end to end</span>"));
    CHECK(count(page, "<caption>The winner at each M, model, not measured</caption>") == 1);
    CHECK(count(page, "<caption>Every candidate by M, model, not measured</caption>") == 1);
    CHECK(contains(page, "aria-label=\"Microseconds by M, model, not measured: counts from a simulator"));
}

TEST_CASE("PageHasTheFiguresOfItsPlotsAsTables") {
    const auto page = to_page(crossing());
    CHECK(contains(
        page,
        "<th scope=\"row\">mxmoe</th><td class=\"number\">60.0</td><td class=\"number winner\">99.5</td>"));
    CHECK(contains(
        page,
        "<b>Crossover:</b> from fused_moe/small_m (up to M = 16) to fused_moe/mxmoe (from M = 32).</p>"));
    CHECK(contains(page, "<td>memory 75%, launch 25%</td><td class=\"number\">30.0</td>"));
}

TEST_CASE("PageTakesNoMarkupFromNamesAndMessages") {
    const std::string bad = "</script><script>alert(1)</script><!--\"'&<b>";
    kiln::tune::Records records;
    auto named = modelled({16, bad, {{bad, 1}}}, 16, 3);
    auto other = modelled({16, bad, {{bad, 2}}}, 16, 4);
    for (auto* record : {&named, &other}) {
        record->subject.operator_name = bad;
        record->conditions.device = bad;
        record->conditions.driver = bad;
    }
    auto broken = failing(small(16), 16, Status::failed, bad);
    broken.subject = named.subject;
    broken.conditions = named.conditions;
    records.candidates = {named, other, broken};
    const auto clean = to_page(crossing());
    const auto page = to_page(make_report(records, {}));
    CHECK_FALSE(contains(page, "alert(1)</script"));
    CHECK_FALSE(contains(page, "<script>alert"));
    CHECK_FALSE(contains(skeleton(page), "<!--"));
    CHECK(count(skeleton(page), "<b>") == 2);  // of the page itself: crossover and limit
    // A browser finds as many scripts as there are: the data's, the library's, the page's own.
    CHECK(count(page, "<script") == 3);
    CHECK(count(page, "</script>") == count(page, "<script"));
    CHECK(count(clean, "<script") == 4);
    // The data is what it was.
    const auto label = plots(page)[0]["series"][0]["label"].get<std::string>();
    CHECK(contains(label, "script><script>alert(1)"));
}

TEST_CASE("PageListsWhatHasNoTimeAndPlotsNothingThere") {
    kiln::tune::Records records;
    records.candidates = {failing(small(16), 16, Status::wrong, "off by 7")};
    const auto page = to_page(make_report(records, {}));
    CHECK(plots(page).empty());
    CHECK_FALSE(contains(page, "<canvas"));
    CHECK(contains(page, "<li>small_m at M = 16: wrong: off by 7</li>"));
}

TEST_CASE("PageListsItsProblemsWhereThereAreSeveral") {
    CHECK_FALSE(contains(to_page(crossing()), "<nav"));
    auto report = crossing();
    report.problems.push_back(report.problems[0]);
    const auto page = to_page(report);
    CHECK(contains(page, "<a href=\"#problem-1\">"));
    CHECK(contains(page, "<section class=\"problem\" id=\"problem-1\">"));
}
