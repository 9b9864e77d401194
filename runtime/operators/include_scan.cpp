#include "runtime/operators/include_scan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace kiln::operators {

namespace {

constexpr std::size_t kMaxShown = 60;  // bytes of a directive in a message

constexpr std::array<std::string_view, 4> kRefusedDirectives{"include_next", "import", "embed",
                                                             "__include_macros"};
constexpr std::array<std::string_view, 3> kRefusedConditions{"__has_include", "__has_include_next",
                                                             "__has_embed"};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

// Text, and the number of the source line that each of its characters came from.
struct Line {
    std::string text;
    std::vector<int> numbers;

    void add(char c, int number) {
        text += c;
        numbers.push_back(number);
    }
};

// The assembler's own ways to a file, in lower case: in any string, because any may reach it.
constexpr std::array<std::string_view, 2> kRefusedAssembly{"incbin", ".include"};

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// What a literal's text says, its escapes read; those of Unicode letters stay, which no directive has.
Line unescaped(const Line& literal) {
    Line read;
    for (std::size_t i = 0; i < literal.text.size(); ++i) {
        const int number = literal.numbers[i];
        if (literal.text[i] != '\\' || i + 1 == literal.text.size()) {
            read.add(literal.text[i], number);
            continue;
        }
        const bool hexadecimal = literal.text[++i] == 'x';
        const int base = hexadecimal ? 16 : 8;
        const char* const begin = literal.text.data() + i + (hexadecimal ? 1 : 0);
        const char* const end = hexadecimal ? literal.text.data() + literal.text.size()
                                            : std::min(begin + 3, literal.text.data() + literal.text.size());
        unsigned value = 0;
        const auto [rest, fault] = std::from_chars(begin, end, value, base);
        if (fault == std::errc()) {
            read.add(static_cast<char>(value), number);
            i = static_cast<std::size_t>(rest - literal.text.data()) - 1;
        } else {
            read.add(literal.text[i], number);
        }
    }
    return read;
}

// Splits a text into its lines, as the preprocessor sees them: continued lines joined, comments, raw strings
// and what is no ASCII made a blank. Newlines are LF, CR LF or CR, as the compiler has it.
class LineReader {
  public:
    explicit LineReader(std::string_view text) : text_(text) {}

    // The next line, or nothing at the end of the text.
    std::optional<Line> next() {
        join_lines();
        if (at_ == text_.size()) {
            return std::nullopt;
        }
        line_ = {};
        while (at_ < text_.size() && !is_newline()) {
            take_token();
        }
        if (at_ < text_.size()) {
            pass_newline();
        }
        return std::move(line_);
    }

    // What all strings so far say, one after the other, as the compiler joins those that stand side by side.
    const Line& strings() const { return strings_; }

  private:
    // The character `ahead` of here, zero past the end. Not across continued lines: those are passed by
    // step().
    char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    bool is_newline() const { return peek() == '\n' || peek() == '\r'; }

    void pass_newline() {
        at_ += peek() == '\r' && peek(1) == '\n' ? 2 : 1;
        ++number_;
    }

    // Passes backslashes that continue a line; the compiler lets blanks stand after one.
    void join_lines() {
        while (peek() == '\\') {
            const std::size_t end = text_.find_first_not_of(" \t\v\f", at_ + 1);
            if (end == std::string_view::npos || (text_[end] != '\n' && text_[end] != '\r')) {
                return;
            }
            at_ = end;
            pass_newline();
        }
    }

    void step() {
        ++at_;
        join_lines();
    }
    void emit(char c) {
        line_.text += c;
        line_.numbers.push_back(number_);
    }
    void take() {
        emit(peek());
        step();
    }

    void take_token() {
        const char c = peek();
        if (c == '/') {
            take_slash();
        } else if (is_digit(c)) {
            take_number();
        } else if (is_word(c)) {
            take_word();
        } else if (c == '"' || c == '\'') {
            take_literal(c);
        } else if (c > ' ' && c <= '~') {
            take();
        } else {
            emit(' ');
            step();
        }
    }

    void take_slash() {
        const int number = number_;
        step();
        const char second = peek();
        if (second == '/') {
            while (at_ < text_.size() && !is_newline()) {
                step();
            }
        } else if (second == '*') {
            step();
            pass_comment();
        }
        line_.text += second == '/' || second == '*' ? ' ' : '/';
        line_.numbers.push_back(number);
    }

    void pass_comment() {
        bool star = false;
        while (at_ < text_.size()) {
            if (star && peek() == '/') {
                step();
                return;
            }
            star = peek() == '*';
            if (is_newline()) {
                pass_newline();
                join_lines();
            } else {
                step();
            }
        }
    }

    // A quote in a number separates digits, and must not be taken for a literal when the line is scanned.
    void take_number() {
        while (is_word(peek()) || peek() == '.' || (peek() == '\'' && is_word(peek(1)))) {
            emit(peek() == '\'' ? '_' : peek());
            step();
        }
    }

    void take_word() {
        const std::size_t start = line_.text.size();
        while (is_word(peek())) {
            take();
        }
        const std::string_view word = std::string_view(line_.text).substr(start);
        if (peek() == '"' && (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
            take_raw_string();
        }
    }

    // A literal that its line does not close ends with the line.
    void take_literal(char quote) {
        take();
        Line literal;
        while (at_ < text_.size() && !is_newline()) {
            const char c = peek();
            const int number = number_;
            take();
            if (c == quote) {
                break;
            }
            literal.add(c, number);
            if (c == '\\' && at_ < text_.size() && !is_newline()) {
                literal.add(peek(), number_);
                take();
            }
        }
        const Line read = unescaped(literal);
        strings_.text += read.text;
        strings_.numbers.insert(strings_.numbers.end(), read.numbers.begin(), read.numbers.end());
    }

    // R"DELIMITER(...)DELIMITER": nothing in it is a comment, an escape or the end of a line.
    void take_raw_string() {
        const std::size_t open = text_.find_first_of("( )\\\t\v\f\r\n", at_);
        if (open == std::string_view::npos || text_[open] != '(' || open - at_ > 17) {
            take_literal('"');  // the compiler refuses it
            return;
        }
        const std::string close = fmt::format("){}\"", text_.substr(at_ + 1, open - at_ - 1));
        const std::size_t end = std::min(text_.find(close, open), text_.size() - close.size());
        while (at_ < end + close.size()) {
            if (at_ > open && at_ < end) {
                strings_.add(peek(), number_);
            }
            if (is_newline()) {
                pass_newline();
            } else {
                emit(' ');
                ++at_;
            }
        }
        join_lines();
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int number_ = 1;
    Line line_;
    Line strings_;
};

tl::unexpected<Error> refuse_assembly(std::string_view file, int number, std::string_view found) {
    return fail(ErrorCode::bad_input, Stage::compile,
                fmt::format("{}:{}: expected assembly that reads no file, found {}", file, number, found));
}

// Reads one line, token by token.
class LineScan {
  public:
    LineScan(std::string_view file, const Line& line) : file_(file), line_(line), text_(line.text) {}

    Result<void> includes(std::vector<Include>& found) {
        while (at_ < text_.size()) {
            const std::size_t start = at_;
            if (const std::string_view word = take_word(); !word.empty()) {
                if (std::ranges::find(kRefusedConditions, word) != kRefusedConditions.end()) {
                    return refuse(start);
                }
                if (std::ranges::equal(word, kRefusedAssembly[0], {}, lower)) {  // # makes strings of words
                    return refuse_assembly(file_, line_.numbers[start], word);
                }
            } else if (text_[at_] == '"' || text_[at_] == '\'') {
                pass_literal();
            } else if (take("##") || take("%:%:")) {
                continue;  // joins tokens
            } else if (take("#") || take("%:")) {
                if (Result<void> taken = directive(start, found); !taken) {
                    return taken;
                }
            } else {
                ++at_;
            }
        }
        return {};
    }

  private:
    // `start` is where the '#' stands. It may stand anywhere in its line: blanks of Unicode before it, which
    // the compiler passes over, can not be told from other characters here.
    Result<void> directive(std::size_t start, std::vector<Include>& found) {
        pass_blanks();
        const std::size_t word_start = at_;
        const std::string_view word = take_word();
        if (std::ranges::find(kRefusedDirectives, word) != kRefusedDirectives.end()) {
            return refuse(start);
        }
        if (word != "include") {
            at_ = word_start;
            return {};
        }
        pass_blanks();
        const std::size_t name = at_ + 1;
        const std::size_t end = take("\"") ? text_.find('"', at_) : std::string_view::npos;
        if (end == std::string_view::npos || end == name) {
            return refuse(start);
        }
        found.push_back({std::string(text_.substr(name, end - name)), line_.numbers[start]});
        at_ = end + 1;
        return {};
    }

    Result<void> refuse(std::size_t start) const {
        std::string shown(text_.substr(start, kMaxShown));
        shown.erase(shown.find_last_not_of(' ') + 1);
        return fail(ErrorCode::bad_input, Stage::compile,
                    fmt::format("{}:{}: expected #include \"name\" of a file in the kernel sources, found {}",
                                file_, line_.numbers[start], shown));
    }

    bool take(std::string_view token) {
        const bool found = text_.substr(at_).starts_with(token);
        at_ += found ? token.size() : 0;
        return found;
    }
    std::string_view take_word() {
        const std::size_t start = at_;
        while (at_ < text_.size() && is_word(text_[at_])) {
            ++at_;
        }
        return text_.substr(start, at_ - start);
    }
    void pass_blanks() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }
    void pass_literal() {
        const char quote = text_[at_++];
        while (at_ < text_.size() && text_[at_] != quote) {
            at_ += text_[at_] == '\\' ? 2 : 1;
        }
        at_ = std::min(at_ + 1, text_.size());
    }

    std::string_view file_;
    const Line& line_;
    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<Include>> find_includes(std::string_view file, std::string_view text) {
    std::vector<Include> found;
    LineReader lines(text);
    while (const std::optional<Line> line = lines.next()) {
        if (Result<void> scanned = LineScan(file, *line).includes(found); !scanned) {
            return fail(scanned);
        }
    }
    const Line& strings = lines.strings();
    for (const std::string_view directive : kRefusedAssembly) {
        const auto at = std::search(strings.text.begin(), strings.text.end(), directive.begin(),
                                    directive.end(), [](char a, char b) { return lower(a) == b; });
        if (at != strings.text.end()) {
            const auto index = static_cast<std::size_t>(at - strings.text.begin());
            return refuse_assembly(file, strings.numbers[index], directive);
        }
    }
    return found;
}

}  // namespace kiln::operators
