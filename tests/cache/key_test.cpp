#include "cache/key.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/canonical.hpp"

using kiln::ErrorCode;
using kiln::cache::canonical_object_length;
using kiln::cache::Key;

namespace {

constexpr const char* kBuild = R"({"components": [{"name": "libamd_comgr", "build_id": "ab12"}]})";

std::string refusal(std::string_view request, std::string_view build = kBuild) {
    const auto key = Key::make(request, build);
    REQUIRE(!key);
    CHECK(key.error().code == ErrorCode::bad_input);
    return key.error().message;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("KeyIsCanonicalWhateverTheFormatting") {
    const auto plain = Key::make(R"({"b":[1,2],"a":{"y":-1,"x":"\u00e9"}})", R"({"c":true})");
    const auto spaced =
        Key::make("{ \"a\" : { \"x\":\"\xc3\xa9\" ,\n\"y\" : -1 }, \"b\":[ 1, 2 ] }", "\t{\"c\": true}\n");
    REQUIRE(plain);
    REQUIRE(spaced);
    CHECK(plain->document() ==
          "{\"build\":{\"c\":true},\"request\":{\"a\":{\"x\":\"\xc3\xa9\",\"y\":-1},\"b\":[1,2]}}");
    CHECK(spaced->document() == plain->document());
    CHECK(spaced->digest() == plain->digest());
    CHECK(plain->digest() == kiln::sha256(plain->document()));
    CHECK(plain->request_digest() == kiln::sha256("{\"a\":{\"x\":\"\xc3\xa9\",\"y\":-1},\"b\":[1,2]}"));
}

TEST_CASE("KeyDiffersWhenAnyPartDiffers") {
    const std::vector<std::string> requests{
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"n":1},"target":"gfx950","options":["-O3"]})",
        R"({"schema":2,"template":"aa","headers":["h"],"constants":{"n":1},"target":"gfx950","options":["-O3"]})",
        R"({"schema":1,"template":"ab","headers":["h"],"constants":{"n":1},"target":"gfx950","options":["-O3"]})",
        R"({"schema":1,"template":"aa","headers":["i"],"constants":{"n":1},"target":"gfx950","options":["-O3"]})",
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"n":2},"target":"gfx950","options":["-O3"]})",
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"k":1},"target":"gfx950","options":["-O3"]})",
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"n":1},"target":"gfx950:xnack-","options":["-O3"]})",
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"n":1},"target":"gfx950","options":["-O2"]})",
        R"({"schema":1,"template":"aa","headers":["h"],"constants":{"n":"1"},"target":"gfx950","options":["-O3"]})"};
    std::set<kiln::Digest> digests;
    std::set<kiln::Digest> request_digests;
    for (const auto& request : requests) {
        for (const auto* build : {R"({"id":"1"})", R"({"id":"2"})"}) {
            const auto key = Key::make(request, build);
            REQUIRE(key);
            digests.insert(key->digest());
            request_digests.insert(key->request_digest());
        }
    }
    CHECK(digests.size() == 2 * requests.size());
    CHECK(request_digests.size() == requests.size());
}

TEST_CASE("KeyRefusesWhatCanNotBeCanonical") {
    CHECK(contains(refusal("[1]"), "request part of a cache key: expected a JSON object, found array"));
    CHECK(contains(refusal("{}", "7"), "build part of a cache key: expected a JSON object, found number"));
    CHECK(contains(refusal(""), "expected JSON"));
    CHECK(contains(refusal("{} {}"), "expected JSON"));
    CHECK(contains(refusal("{\"a\":\"\xff\"}"), "expected JSON"));
    CHECK(contains(refusal(R"({"a":1.5})"), "integers of at most 64 bits only, found 1.5"));
    CHECK(contains(refusal(R"({"a":1e3})"), "found 1e3"));
    CHECK(contains(refusal(R"({"a":18446744073709551616})"), "found 18446744073709551616"));
    CHECK(contains(refusal(R"({"a":1e999})"), "expected JSON"));
    CHECK(contains(refusal(R"({"a":NaN})"), "expected JSON"));
    CHECK(contains(refusal(R"({"a":1,"b":2,"a":1})"), "found \"a\" twice"));
    CHECK(contains(refusal(R"({"o":[{"x":1,"\u0078":2}]})"), "found \"x\" twice"));
}

TEST_CASE("KeyAcceptsOneNameInTwoObjectsAndTheLargestIntegers") {
    CHECK(Key::make(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})", "{}"));
    const auto key = Key::make(R"({"max":18446744073709551615,"min":-9223372036854775808})", "{}");
    REQUIRE(key);
    CHECK(key->document() ==
          R"({"build":{},"request":{"max":18446744073709551615,"min":-9223372036854775808}})");
}

TEST_CASE("KeyRefusesNestingThatWouldExhaustTheStack") {
    const std::size_t depth = 1'000'000;
    CHECK(contains(refusal("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}"),
                   "expected at most 64"));
    const std::size_t deepest = Key::kMaxDepth - 1;             // inside the object of the part
    for (const std::string_view leaf : {"", "\"\xc3\xa9\""}) {  // the second is no plain text
        const auto key = Key::make(
            "{\"a\":" + std::string(deepest, '[').append(leaf) + std::string(deepest, ']') + "}", "{}");
        REQUIRE(key);
        // What can be put can be read again.
        CHECK(Key::from_document(key->document()));
        CHECK(!Key::make(
            "{\"a\":" + std::string(deepest + 1, '[').append(leaf) + std::string(deepest + 1, ']') + "}",
            "{}"));
    }
}

// Text that is canonical already is not parsed. White space before it sends the same text through the JSON
// library, which must come to the same.
TEST_CASE("KeyOfPlainTextIsThatOfTheParsedOne") {
    const auto seed = std::random_device{}();
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    const std::string plain =
        R"({"":null,"a":{"b":[],"c":[1,-2,0,[true,false]]},"n":123456789012345678,"o":{},"z":"~ #/"})";
    REQUIRE(canonical_object_length(plain) == plain.size());
    const std::string_view alphabet = "{}[]:,\"\\0123456789-+.eE tfnaz\t\n\x7f\xc3\xa9";
    int accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string text = plain;
        for (auto changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
            const auto at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text[at] = alphabet[random() % alphabet.size()];
                    break;
                case 1:
                    text.erase(at, 1 + random() % 3);
                    break;
                default:
                    text.insert(at, 1, alphabet[random() % alphabet.size()]);
            }
        }
        CAPTURE(text);
        const auto quick = Key::make(text, text);
        const auto parsed = Key::make(" " + text, " " + text);
        REQUIRE(quick.has_value() == parsed.has_value());
        if (!quick) {
            continue;
        }
        ++accepted;
        REQUIRE(quick->document() == parsed->document());
        REQUIRE(quick->request_digest() == parsed->request_digest());
        const auto back = Key::from_document(quick->document());
        REQUIRE(back);
        REQUIRE(back->request_digest() == parsed->request_digest());
        if (canonical_object_length(text) == text.size()) {
            REQUIRE(quick->document() == "{\"build\":" + text + ",\"request\":" + text + "}");
        }
    }
    CHECK(accepted > 1000);
}

TEST_CASE("KeyComesBackFromItsOwnDocumentOnly") {
    const auto key = Key::make(R"({"a":1})", kBuild);
    REQUIRE(key);
    const auto back = Key::from_document(key->document());
    REQUIRE(back);
    CHECK(*back == *key);
    CHECK(back->digest() == key->digest());
    CHECK(back->request_digest() == key->request_digest());
    for (const char* bad :
         {"", "{}", R"({"build":{},"request":{"a":1} })", R"({"request":{"a":1},"build":{}})",
          R"({"build":{},"more":1,"request":{}})", R"({"build":1,"request":{}})", R"({"build":{}})"}) {
        const auto result = Key::from_document(bad);
        REQUIRE_MESSAGE(!result, bad);
        CHECK(result.error().code == ErrorCode::bad_input);
    }
}
