// Text from outside, made safe for a line of the log, in either of its formats.
//
// What is escaped: control characters (those of Unicode's C1 block too), line and paragraph separators, the
// marks that turn the direction of writing, and bytes that are no UTF-8. \n \r \t where there is such a name,
// else \xNN for a byte and \uNNNN for a character, in JSON \uNNNN for both and \ufffd for a byte that is no
// UTF-8. All other UTF-8 stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace kiln::log {

// A value of logfmt: bare where it is a word of printable ASCII without = " and backslash; else, and where it
// is empty, in double quotes, with " and backslash escaped by a backslash.
void append_logfmt(std::string& line, std::string_view value);

// A sentence for people: escaped, but for its line breaks, after each of which "  | " goes before the text.
// Line breaks at its end are dropped.
void append_sentence(std::string& text, std::string_view sentence);

[[nodiscard]] bool is_utf8(std::string_view text);

// A string of JSON, with its quotes.
void append_json(std::string& line, std::string_view value);

}  // namespace kiln::log
