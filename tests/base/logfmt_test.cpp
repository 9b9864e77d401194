#include "base/logfmt.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace {

std::string written(std::string_view value) {
    std::string line;
    kiln::log::append_logfmt(line, value);
    return line;
}

std::string sentence(std::string_view text) {
    std::string safe;
    kiln::log::append_sentence(safe, text);
    return safe;
}

// What append_logfmt wrote, read back; the character escapes are left as they are.
std::string unquoted(std::string_view text) {
    if (!text.starts_with('"')) {
        return std::string(text);
    }
    REQUIRE(text.size() >= 2);
    REQUIRE(text.ends_with('"'));
    std::string value;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        if (text[i] == '\\' && (text[i + 1] == '"' || text[i + 1] == '\\')) {
            ++i;
        } else {
            REQUIRE(text[i] != '"');
        }
        value += text[i];
    }
    return value;
}

}  // namespace

TEST_CASE("LogfmtLeavesWordsBare") {
    for (const char* word : {"kiln_linear_n5120_k4096_m32", "gfx950:sramecc+:xnack-", "/a/b.entry", "-1.5"}) {
        CHECK(written(word) == word);
    }
}

TEST_CASE("LogfmtQuotesWhatIsNoWord") {
    CHECK(written("") == R"("")");
    CHECK(written("two words") == R"("two words")");
    CHECK(written("a=b") == R"("a=b")");
    CHECK(written(R"(say "x")") == R"("say \"x\"")");
    CHECK(written(R"(a\b)") == R"("a\\b")");
    CHECK(written("\xc3\xa9t\xc3\xa9") == "\"\xc3\xa9t\xc3\xa9\"");
}

TEST_CASE("LogfmtEscapesWhatALineOrATerminalWouldObey") {
    CHECK(written("a\nkiln: error: forged") == R"("a\nkiln: error: forged")");
    CHECK(written("\r\t") == R"("\r\t")");
    CHECK(written("\x1b[2J") == R"("\x1b[2J")");
    CHECK(written(std::string_view("a\0b", 3)) == R"("a\x00b")");
    CHECK(written("\x7f") == R"("\x7f")");
    CHECK(written("\xc2\x9b") == R"("\u009b")");          // the one-character form of ESC [
    CHECK(written("\xe2\x80\xa8") == R"("\u2028")");      // a line separator
    CHECK(written("a\xe2\x80\xae!") == R"("a\u202e!")");  // turns the direction of writing
}

TEST_CASE("LogfmtEscapesBytesThatAreNoUtf8") {
    CHECK(written("\xff") == R"("\xff")");
    CHECK(written("\xc3") == R"("\xc3")");                          // cut short
    CHECK(written("\xc0\x8a") == R"("\xc0\x8a")");                  // an overlong line break
    CHECK(written("\xed\xa0\x80") == R"("\xed\xa0\x80")");          // a surrogate
    CHECK(written("\xf4\x90\x80\x80") == R"("\xf4\x90\x80\x80")");  // beyond Unicode
    CHECK(written("\x9b") == R"("\x9b")");
}

TEST_CASE("LogfmtOfAnyBytesIsOneWordOrOneQuotedTextOfOneLine") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 20'000; ++i) {
        std::string value(random() % 24, '\0');
        for (char& c : value) {
            // Half of them such that matter.
            c = random() % 2 == 0 ? "\"\\=\n\r\x1b a\xc2\x9b"[random() % 10] : static_cast<char>(random());
        }
        const std::string line = written(value);
        REQUIRE(std::ranges::none_of(line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
        const std::string back = unquoted(line);
        if (value.find_first_not_of("abc =\"\\") == std::string::npos) {
            REQUIRE(back == value);
        }
    }
}

TEST_CASE("JsonEscapesWhatALineOrATerminalWouldObey") {
    const auto json = [](std::string_view value) {
        std::string text;
        kiln::log::append_json(text, value);
        return text;
    };
    CHECK(json("") == R"("")");
    CHECK(json("a \"b\" \\ \xc3\xa9") == "\"a \\\"b\\\" \\\\ \xc3\xa9\"");
    CHECK(json("\n\r\t\x1b\x7f") == R"("\n\r\t\u001b\u007f")");
    CHECK(json("\xc2\x9b\xe2\x80\xae") == R"("\u009b\u202e")");
    CHECK(json("\xff\xc3") == R"("\ufffd\ufffd")");
    CHECK(json("\xf0\x9f\x94\xa5") == "\"\xf0\x9f\x94\xa5\"");
}

TEST_CASE("SentenceKeepsItsLinesButNoneLooksLikeALineOfTheLog") {
    CHECK(sentence("plain = \"text\"") == "plain = \"text\"");
    CHECK(sentence("one\nkiln: error: two\n\n") == "one\n  | kiln: error: two");
    CHECK(sentence("a\r\x1b[0m") == R"(a\r\x1b[0m)");
    CHECK(sentence("") == "");
    CHECK(sentence("\n") == "");
}
