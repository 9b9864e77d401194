// Which directives of a text count as includes, and which are refused. Texts are raw strings with the
// delimiter T, as the code in them has raw strings of its own.

#include "runtime/operators/include_scan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace kiln::operators;

namespace {

using Found = std::vector<std::pair<std::string, int>>;

Found found_in(std::string_view text) {
    const auto includes = find_includes("t.h", text);
    REQUIRE_MESSAGE(includes, includes.error().message);
    Found found;
    for (const Include& include : *includes) {
        found.emplace_back(include.name, include.line);
    }
    return found;
}

// What is said to have been found, with the line before it: "1: #include <x>".
std::string refused(std::string_view text) {
    const auto includes = find_includes("t.h", text);
    if (includes) {
        return "nothing refused";
    }
    CHECK(includes.error().code == kiln::ErrorCode::bad_input);
    std::string message = includes.error().message;
    const std::string expected = " expected #include \"name\" of a file in the kernel sources, found";
    REQUIRE(message.starts_with("t.h:"));
    REQUIRE(message.find(expected) != std::string::npos);
    return message.erase(message.find(expected), expected.size()).substr(4);
}

}  // namespace

TEST_CASE("includes: by name, however they are spelt") {
    CHECK(found_in("#include \"a.h\"") == Found{{"a.h", 1}});
    CHECK(found_in("\n \t#\t include\"a/b.h\" // why\n%:include \"c.h\"\n") ==
          Found{{"a/b.h", 2}, {"c.h", 3}});
    CHECK(found_in("#inc\\\nlude \\ \n \"a\\\n.h\"\n#include \"b.h\"\n") == Found{{"a.h", 1}, {"b.h", 5}});
    CHECK(found_in("/* one\n two */ # /* three */ include /**/ \"a.h\"\n") == Found{{"a.h", 2}});
    CHECK(found_in("#include \"a.h\"\r\n#include \"b.h\"\r#include \"c.h\"") ==
          Found{{"a.h", 1}, {"b.h", 2}, {"c.h", 3}});
    CHECK(found_in("\xEF\xBB\xBF#include \"a.h\"\n") == Found{{"a.h", 1}});
    CHECK(found_in("\xC2\xA0#\xC2\xA0include \"a.h\"\n") == Found{{"a.h", 1}});
}

TEST_CASE("includes: comments, strings and other directives are none") {
    CHECK(found_in("// #include <a>\n/* #include <b>\n#include <c> */\n//\\\n#include <d>\n").empty());
    CHECK(found_in("/\\\n/ #include <a>\n/\\\n* \n#include <b>\n *\\\n/\n").empty());
    CHECK(found_in("const char* s = \"#include <a> \\\" __has_include(<b>)\";\n").empty());
    CHECK(found_in(R"T(auto s = R"x(
#include <a>
)" " )x"; auto c = '"';)T")
              .empty());
    CHECK(found_in("#define STRING(x) #x\n#define JOIN(x) x##include\n#pragma once\n#error don't\n").empty());
    CHECK(found_in("#define included 1\nint include = 1;\n#includes <a>\n").empty());
    CHECK(found_in("").empty());
}

TEST_CASE("includes: one that a condition leaves out counts") {
    CHECK(found_in("#if 0\n#include \"a.h\"\n#endif\n") == Found{{"a.h", 2}});
}

TEST_CASE("includes: any other form is refused with its line") {
    CHECK(refused("#include <vector>\n") == "1: #include <vector>");
    CHECK(refused("\n#include </abs/path.h>\n") == "2: #include </abs/path.h>");
    CHECK(refused("#define NAME \"a.h\"\n#include NAME\n") == "2: #include NAME");
    CHECK(refused("#include\n") == "1: #include");
    CHECK(refused("#include \"\"\n") == "1: #include \"\"");
    CHECK(refused("#include \"a.h\n") == "1: #include \"a.h");
    CHECK(refused("#include u8\"a.h\"\n") == "1: #include u8\"a.h\"");
    CHECK(refused("#include_next \"a.h\"\n") == "1: #include_next \"a.h\"");
    CHECK(refused("#import \"a.h\"\n") == "1: #import \"a.h\"");
    CHECK(refused("  # embed \"a.bin\"\n") == "1: # embed \"a.bin\"");
    CHECK(refused("#__include_macros \"a.h\"\n") == "1: #__include_macros \"a.h\"");
    CHECK(refused("#if 1 && __has_include(\"a.h\")\n") == "1: __has_include(\"a.h\")");
    CHECK(refused("#if __has_include_next(<a.h>)\n") == "1: __has_include_next(<a.h>)");
    CHECK(refused("#if __has_embed(<a.h>)\n") == "1: __has_embed(<a.h>)");
    CHECK(refused("%:include <a>\n") == "1: %:include <a>");
    CHECK(refused("a\r#include <b>\n") == "2: #include <b>");
    CHECK(refused("#inc\\\nlude <a>\n") == "1: #include <a>");
    CHECK(refused("#if 0\n#include <a>\n#endif\n") == "2: #include <a>");
    CHECK(refused("#include <" + std::string(100, 'x') + ">\n") == "1: #include <" + std::string(50, 'x'));
}

TEST_CASE("includes: what only looks like the start of a comment or string hides none") {
    CHECK(refused("auto s = \"/*\";\n#include <a>\n// */\n") == "2: #include <a>");
    CHECK(refused("auto s = \"\\\"/*\";\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("auto c = '\"';\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("// /*\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("/*/ */\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("#error don't /*\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("int i = 1'000; /* x'\n */ int j;\n#include <a>\n") == "3: #include <a>");
    CHECK(refused("#if 1'000 == __has_include(\"a\") + 1'000\n") == "1: __has_include(\"a\") + 1_000");
    CHECK(refused("auto s = R\"(\\)\";\n#include <a>\n") == "2: #include <a>");
    CHECK(refused("auto s = R\"x(/* )\" )x\";\n#include <a>\n") == "2: #include <a>");
    CHECK(refused(std::string("\0#include <a>\n", 14)) == "1: #include <a>");
}

TEST_CASE("includes: assembly that reads a file is refused, however it is spelt") {
    const auto refused_assembly = [](std::string_view text) {
        const auto includes = find_includes("t.h", text);
        REQUIRE_MESSAGE(!includes, text);
        CHECK(includes.error().code == kiln::ErrorCode::bad_input);
        return includes.error().message;
    };
    const std::string expected = ": expected assembly that reads no file, found ";
    CHECK(refused_assembly("\nasm(\".incbin \\\"weights\\\"\");\n") == "t.h:2" + expected + "incbin");
    CHECK(refused_assembly("asm(\"s_nop 0\\n\"\n \".include \\\"a.s\\\"\");") ==
          "t.h:2" + expected + ".include");
    for (const char* text : {
             "asm(\".InCBIN 'f'\");",
             "asm(\".inc\" /* joined */\n\"bin f\");",
             "asm(\".in\\x63\" \"bin f\");",
             "asm(\".\\151ncbin f\");",
             "asm(\".inc\\\nbin f\");",
             "asm(R\"(\n.incbin f)\");",
             "#define ASM(x) asm(#x)\nASM(.incbin \"f\");",
             "#define DIRECTIVE incbin\n",
         }) {
        CHECK(refused_assembly(text).ends_with("incbin"));
    }
    CHECK(found_in("asm volatile(\"s_waitcnt lgkmcnt(0)\"); // .incbin\nauto s = \"includes\";\n").empty());
}
