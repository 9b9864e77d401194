// What a kernel source includes. The texts that a template reaches go into its key, so that nothing may reach
// the compiler by another way: a directive that the key would not see is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace kiln::operators {

struct Include {
    std::string name;
    int line = 0;  // of the directive's '#', from 1
};

// The directives #include "NAME" of a text, in their order, those that a condition leaves out among them;
// comments, strings and continued lines are read as the compiler reads them. bad_input names file and line of
// an include of another form (<NAME>, a macro, #include_next, #import, #embed), of a condition that asks for
// files (__has_include, __has_embed), and of an assembler directive that reads one (.incbin, .include) in any
// string. `file` is what messages call the text.
[[nodiscard]] Result<std::vector<Include>> find_includes(std::string_view file, std::string_view text);

}  // namespace kiln::operators
