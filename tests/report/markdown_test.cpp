// A report as Markdown.

#include "runtime/report/markdown.hpp"

#include "tests/report/support.hpp"

using namespace kiln::report;
using kiln::tune::Status;

TEST_CASE("MarkdownHasWinnersCrossoverLimitAndCandidates") {
    const auto text = to_markdown(crossing());
    CHECK(contains(text, "## fused\\_moe hidden=4096 intermediate=512 experts=512 slots=10 on gfx950\n"));
    CHECK(contains(
        text, "### model, not measured: counts from a simulator, driver 1.2, a compiler 0123456789ab\n"));
    CHECK(contains(text, "### measured, end to end: a GPU, driver 1.2, a compiler 0123456789ab\n"));
    CHECK(contains(
        text, "| 16 | **small\\_m** | **40.0** | mxmoe | 60.0 | +50.0% | memory 75%, launch 25% | 30.0 |\n"));
    CHECK(contains(
        text, "Crossover: from fused\\_moe/small\\_m (up to M = 16) to fused\\_moe/mxmoe (from M = 32).\n"));
    CHECK(contains(text,
                   "| candidate | M = 16 | M = 32 |\n| --- | ---: | ---: |\n| mxmoe | 60.0 | **99.5** |\n"));
    CHECK(contains(text, "| small\\_m | **40.0** | 130 |\n"));
    CHECK(contains(text, "| M | winner | us |\n| ---: | --- | ---: |\n| 16 | **small\\_m** | **50.0** |\n"));
    CHECK(contains(text, "Limit: not known"));
    CHECK(contains(text, "Crossover: none: fused\\_moe/small\\_m wins"));
}

TEST_CASE("MarkdownSaysOfEachFigureWhetherItWasMeasured") {
    const auto text = to_markdown(crossing());
    CHECK(contains(text, "The winner at each M, model, not measured:\n"));
    CHECK(contains(text, "Every candidate by M, model, not measured:\n"));
    CHECK(contains(text, "The winner at each M, measured, end to end:\n"));
    CHECK(contains(text, "Every candidate by M, measured, end to end:\n"));
}

TEST_CASE("MarkdownTakesNoMarkupFromNamesAndMessages") {
    kiln::tune::Records records;
    records.candidates = {failing(small(16), 16, Status::failed, "a | b\n# <b>*c*</b> [d](e) &lt;"),
                          modelled(sorted(16), 16, 3)};
    records.candidates[1].present = true;
    records.candidates[0].conditions.device = records.candidates[1].conditions.device = "`x`";
    const auto text = to_markdown(make_report(records, {}));
    CHECK(contains(text,
                   "- small\\_m at M = 16: failed: a \\| b \\# \\<b\\>\\*c\\*\\</b\\> \\[d\\](e) \\&lt;\n"));
    CHECK(contains(text, "counts from \\`x\\`"));
    CHECK(contains(text, "| small\\_m | failed |\n"));
    CHECK(contains(text, "| mxmoe | **3.00 \\*** |\n"));
}

TEST_CASE("MarkdownCutsWhatACompilerSays") {
    kiln::tune::Records records;
    std::string message = "x";
    for (int i = 0; i < 500; ++i) {
        message += "\xC3\xA9";  // two bytes, of which a cut must not leave one
    }
    records.candidates = {failing(small(16), 16, Status::failed, message)};
    const auto text = to_markdown(make_report(records, {}));
    CHECK(contains(text, "\xC3\xA9 ...\n"));
    CHECK(text.size() < 1500);
}

TEST_CASE("MarkdownCountsRowsWithoutATime") {
    auto report = crossing();
    CHECK_FALSE(contains(to_markdown(report), "no time"));
    report.num_untimed_rows = 2;
    CHECK(contains(to_markdown(report), "2 rows of the tables say no time.\n"));
}
