#include "runtime/compile/listing.hpp"

#include <doctest/doctest.h>

#include "runtime/compile/disassembly.hpp"

using kiln::ErrorCode;
using namespace kiln::compile;

namespace {

const std::string kDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const std::string kHead = "kiln-listing 1\ntarget gfx950:xnack-\ntext-sha256 " + kDigest + "\n";
const std::string kGood = kHead +
                          "text-bytes 28\n"
                          "kernel 0 first\n"
                          "kernel 8 second\n"
                          "code\n"
                          "0 c00a0000 00000010 s_load_dwordx4 s[0:3], s[4:5], 0x10\n"
                          "8 bf8cc07f s_waitcnt lgkmcnt(0)\n"
                          "12 01020304 .word\n"
                          "16 00000001 00000002 00000003 v_made_up v[0:1], -1.0, abs(v2)\n";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("ListingGivesEveryFieldOfItsLines") {
    const auto listing = parse_listing(kGood);
    REQUIRE_MESSAGE(listing, (listing ? "" : listing.error().message));
    CHECK(listing->target == "gfx950:xnack-");
    CHECK(listing->text_digest.hex() == kDigest);
    CHECK(listing->text_bytes == 28);
    REQUIRE(listing->kernels.size() == 2);
    CHECK(listing->kernels[1].offset == 8);
    CHECK(listing->kernels[1].name == "second");
    REQUIRE(listing->lines.size() == 4);
    CHECK(listing->lines[0].num_words == 2);
    CHECK(listing->lines[0].words[0] == 0xc00a0000);
    CHECK(listing->lines[0].words[1] == 0x10);
    CHECK(listing->lines[0].text == "s_load_dwordx4 s[0:3], s[4:5], 0x10");
    CHECK(listing->lines[1].offset == 8);
    CHECK(listing->lines[2].text == ".word");
    CHECK(listing->lines[3].num_words == 3);
    CHECK(listing->lines[3].words[2] == 3);
}

TEST_CASE("ListingNamesTheLineThatIsMalformed") {
    struct Fault {
        std::string text;
        int line;
    };
    const std::vector<Fault> faults{
        {"", 1},
        {replaced(kGood, "kiln-listing 1", "kiln-listing 2"), 1},
        {replaced(kGood, "target gfx950:xnack-", "target "), 2},
        {replaced(kGood, "target gfx950:xnack-", "target gfx950 xnack-"), 2},
        {replaced(kGood, "9f86", "9F86"), 3},
        {replaced(kGood, "text-bytes 28", "text-bytes 27"), 4},
        {replaced(kGood, "text-bytes 28", "text-bytes 028"), 4},
        {replaced(kGood, "text-bytes 28", "text-bytes 32"), 12},
        {replaced(kGood, "text-bytes 28", "text-bytes 24"), 11},
        {replaced(kGood, "text-bytes 28", "text-bytes 16"), 11},
        {replaced(kGood, "kernel 8 second", "kernel 0 second"), 6},
        {replaced(kGood, "kernel 8 second", "kernel 28 second"), 6},
        {replaced(kGood, "kernel 8 second", "kernel 4 second"), 8},
        {replaced(kGood, "kernel 8 second", "kernel 8 the second"), 6},
        {replaced(kGood, "code\n", ""), 7},
        {replaced(kGood, "8 bf8cc07f", "9 bf8cc07f"), 9},
        {replaced(kGood, "8 bf8cc07f", "8 bf8cc07"), 9},
        {replaced(kGood, "8 bf8cc07f", "8 BF8CC07F"), 9},
        {replaced(kGood, "8 bf8cc07f", "8"), 9},
        {replaced(kGood, "s_waitcnt lgkmcnt(0)", "s_waitcnt  lgkmcnt(0)"), 9},
        {replaced(kGood, "s_waitcnt lgkmcnt(0)", "s_waitcnt\tlgkmcnt(0)"), 9},
        {replaced(kGood, "s_waitcnt lgkmcnt(0)", ""), 9},
        {replaced(kGood, "00000003 v_made", "00000003 00000004 00000005 v_made"), 11},
        {kGood + "28 bf8cc07f s_nop 0\n", 12},
        {kGood.substr(0, kGood.size() - 1), 11},
    };
    for (const auto& [text, line] : faults) {
        const auto listing = parse_listing(text);
        CAPTURE(text);
        REQUIRE(!listing);
        CHECK(listing.error().code == ErrorCode::bad_input);
        CHECK_MESSAGE(listing.error().message.starts_with("listing: line " + std::to_string(line) + ":"),
                      listing.error().message);
    }
}

TEST_CASE("ListingCutAnywhereIsRefused") {
    for (std::size_t bytes = 0; bytes < kGood.size(); ++bytes) {
        CHECK(!parse_listing(std::string_view(kGood).substr(0, bytes)));
    }
}

TEST_CASE("CodeLinesTakeTheEncodingFromTheBytes") {
    const std::string code("\x7f\xc0\x8c\xbf\x01\x00\x00\x00\x02\x00\x00\x00", 12);
    const auto lines =
        format_code_lines(kiln::as_bytes(code), {{1, "s_waitcnt lgkmcnt(0)"}, {2, "v_made_up"}});
    REQUIRE(lines);
    CHECK(*lines == "0 bf8cc07f s_waitcnt lgkmcnt(0)\n4 00000001 00000002 v_made_up\n");
}

TEST_CASE("CodeLinesMustCoverTheCodeExactly") {
    const std::string code(12, '\0');
    CHECK(!format_code_lines(kiln::as_bytes(code), {{1, "a"}, {1, "b"}}));
    CHECK(!format_code_lines(kiln::as_bytes(code), {{1, "a"}, {3, "b"}}));
    CHECK(!format_code_lines(kiln::as_bytes(code), {{0, "a"}, {3, "b"}}));
}
