// Where the values of a text stand, and what is said of text that is no JSON.

#include "runtime/tables/positioned_json.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "tests/tables/support.hpp"

using namespace kiln::tables;

namespace {

// The one fault of a text that does not parse.
std::string syntax_fault(const std::string& text) {
    const PositionedJson json("t.json", text);
    REQUIRE(json.faults().size() == 1);
    CHECK(!json.complete());
    return json.faults().front().text();
}

}  // namespace

TEST_CASE("PositionsOfEveryKindOfValue") {
    const std::string text =
        "{\"a\": 12,\n"
        " \"b\" :\t[true, null,\r\n"
        "   -1.5e3 , \"x\\\"]\", {}, [ ] ],\n"
        "\n"
        " \"c/d~\": {\"\": {\"e\": false}}}";
    const PositionedJson json("t.json", text);
    REQUIRE(json.complete());
    CHECK(json.faults().empty());
    CHECK(json.document() == nlohmann::json::parse(text));
    const std::pair<const char*, Position> expected[] = {
        {"", {1, 1}},      {"/a", {1, 7}},       {"/b", {2, 8}},        {"/b/0", {2, 9}},
        {"/b/1", {2, 15}}, {"/b/2", {3, 4}},     {"/b/3", {3, 13}},     {"/b/4", {3, 21}},
        {"/b/5", {3, 25}}, {"/c~1d~0", {5, 10}}, {"/c~1d~0/", {5, 15}}, {"/c~1d~0//e", {5, 21}},
    };
    for (const auto& [pointer, position] : expected) {
        CAPTURE(pointer);
        CHECK(json.value_position(pointer) == position);
        REQUIRE(json.find(pointer) != nullptr);
        CHECK(*json.find(pointer) == json.document().at(nlohmann::json::json_pointer(pointer)));
    }
    CHECK(json.name_position("/a") == Position{1, 2});
    CHECK(json.name_position("/c~1d~0//e") == Position{5, 16});
    CHECK(json.name_position("/b/1") == Position{2, 15});  // an element has no name
    // Where nothing stands, the nearest thing around it.
    CHECK(json.find("/b/9") == nullptr);
    CHECK(json.value_position("/b/9/x") == Position{2, 8});
    CHECK(json.value_position("/zz") == Position{1, 1});
    CHECK(json.name_position("/zz") == Position{1, 1});
    CHECK(json.describe("/b/2") == "-1.5e3");
    CHECK(json.describe("/b/3") == "\"x\\\"]\"");
    CHECK(json.describe("/b") == "an array of 6 elements");
    CHECK(json.describe("/c~1d~0") == "an object of 1 member");
    CHECK(json.describe("/no") == "nothing");
}

TEST_CASE("PositionsCountCharactersNotBytes") {
    const std::string text =
        "\xEF\xBB\xBF{\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\":\t1}";  // a byte order mark, then é€ and a
                                                                       // smiley
    const PositionedJson json("t.json", text);
    REQUIRE(json.complete());
    CHECK(json.value_position("") == Position{1, 1});
    CHECK(json.value_position("/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == Position{1, 9});
}

TEST_CASE("PositionsOfASecondMemberOfOneName") {
    const std::string text =
        R"({"a": {"x": 1}, "b": 2, "a": {"x": [3], "y": {"y": 1, "y": 2}}, "b": 4, "c": 5})";
    const PositionedJson json("t.json", text);
    REQUIRE(json.complete());
    REQUIRE(json.faults().size() == 2);
    CHECK(json.faults()[0].text() ==
          "t.json:1:25: /a: expected every member once, found a second one (the first stands at 1:2)");
    CHECK(json.faults()[1].text() ==
          "t.json:1:65: /b: expected every member once, found a second one (the first stands at 1:17)");
    // The first of each counts, in the document and in its places.
    CHECK(json.document() == nlohmann::json::parse(R"({"a": {"x": 1}, "b": 2, "c": 5})"));
    CHECK(json.value_position("/a/x") == Position{1, 13});
    CHECK(json.describe("/a") == "an object of 1 member");
    CHECK(json.value_position("/c") == Position{1, 78});
}

TEST_CASE("PositionsOfTextThatIsNoJson") {
    CHECK(syntax_fault("") ==
          "t.json:1:1: the document: expected '[', '{', or a literal, found end of input");
    CHECK(syntax_fault("{\"a\": 1\n")
              .starts_with("t.json:2:1: the document: expected '}', found end of input"));
    CHECK(syntax_fault("{\"a\": [1,\n  2 3]}")
              .starts_with("t.json:2:5: /a: expected ']', found number literal"));
    CHECK(syntax_fault("{\"a\" 1}")
              .starts_with("t.json:1:6: the document: expected ':', found number literal"));
    CHECK(syntax_fault("[1,,2]").starts_with(
        "t.json:1:4: the document: expected '[', '{', or a literal, found ','"));
    CHECK(syntax_fault("[1, ]").starts_with(
        "t.json:1:5: the document: expected '[', '{', or a literal, found ']'"));
    CHECK(syntax_fault("{\"a\": 1,}")
              .starts_with("t.json:1:9: the document: expected string literal, found '}'"));
    CHECK(syntax_fault("{} x").starts_with(
        "t.json:1:4: the document: expected end of input, found invalid literal"));
    CHECK(
        syntax_fault("[NaN]").starts_with("t.json:1:2: the document: expected JSON, found invalid literal"));
    CHECK(syntax_fault("[-Infinity]").find("t.json:1:2: ") == 0);
    CHECK(syntax_fault("// no comments\n[]").find("t.json:1:1: ") == 0);
    CHECK(syntax_fault("[\"a\xff\"]").find("t.json:1:2: ") == 0);
    CHECK(syntax_fault("{\"a\": 1e999}") ==
          "t.json:1:7: the document: expected a number in the range of double precision, found 1e999");
}

TEST_CASE("PositionsOfAZeroByte") {
    using std::string_literals::operator""s;
    CHECK(syntax_fault("{}\n \0 garbage"s) ==
          "t.json:2:2: the document: expected end of input, found a zero byte");
    CHECK(syntax_fault("[]\0"s) == "t.json:1:3: the document: expected end of input, found a zero byte");
    CHECK(syntax_fault("{\"a\": [1\0]}"s) == "t.json:1:9: /a: expected ']', found a zero byte");
    CHECK(syntax_fault("\0{}"s).ends_with("found a zero byte"));
    CHECK(syntax_fault("[\"a\0\"]"s).find("t.json:1:2: ") == 0);
}

TEST_CASE("PositionsOfWhatIsTooMuch") {
    const std::string deep(PositionedJson::kMaxDepth, '[');
    CHECK(PositionedJson("t.json", deep + std::string(deep.size(), ']')).complete());
    CHECK(syntax_fault(deep + "[").find("expected at most 32 objects and arrays in each other, found more") !=
          std::string::npos);
    CHECK(syntax_fault(std::string(1'000'000, '[')).starts_with("t.json:1:33: "));
    const std::string longest(PositionedJson::kMaxString, 'x');
    CHECK(PositionedJson("t.json", "[\"" + longest + "\"]").complete());
    CHECK(syntax_fault("[\"" + longest + "x\"]") ==
          "t.json:1:2: /0: expected a string of at most 1024 bytes, found 1025");
    CHECK(syntax_fault("{\"" + longest + "x\": 1}").starts_with("t.json:1:2: "));

    const std::string text =
        R"({"a": 9223372036854775807, "b": 9223372036854775808, "c": -9223372036854775808})";
    const PositionedJson json("t.json", text);
    CHECK(json.complete());
    REQUIRE(json.faults().size() == 1);
    CHECK(json.faults()[0].text() ==
          "t.json:1:33: /b: expected an integer of at most 64 bits, found 9223372036854775808");
}

TEST_CASE("PositionsSurviveAnyBytes") {
    const auto seed = std::random_device{}();
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    const std::string good = table_of(row_text(R"({"n": 16})", "gfx950", kBuckets));
    const auto loader = make_loader();
    for (int i = 0; i < 2000; ++i) {
        auto text = good;
        for (auto changes = 1 + random() % 3; changes > 0; --changes) {
            const auto at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text[at] = "{}[]\",:0x\\ \xff"[random() % 12];
                    break;
                case 1:
                    text.erase(at, 1 + random() % 4);
                    break;
                default:
                    text.insert(at, text.substr(random() % text.size(), random() % 20));
            }
        }
        const auto loaded = loader->load({named({{"t.json", text}})});
        // Sound tables have sound JSON; the library is the judge.
        if (loaded.faults.empty()) {
            CHECK(nlohmann::json::accept(text));
        } else {
            CHECK(loaded.table.rows().size() <= 2);
        }
    }
}
