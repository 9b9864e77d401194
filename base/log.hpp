// Diagnostics, to stderr or to whom the embedding program names, at the level and in the format that
// KILN_LOG and KILN_LOG_FORMAT or the program ask for.
//
// An event is something that happened to a thing with a name; everything else is a sentence. In text, and as
// one object of JSON (each on one line):
//
//   kiln: info: compile kernel=kiln_linear_n5120_k4096_m32 seconds=0.812
//   {"time":"2026-02-03T04:05:06.123456Z","level":"info","logger":"kiln","event":"compile",
//    "kernel":"kiln_linear_n5120_k4096_m32","seconds":0.812}
//   {"time":...,"level":"warning","logger":"kiln","message":"..."}
//
// Text that came from outside (a file's name, a compiler's output) can neither forge a line nor reach a
// terminal's controls: it is quoted as logfmt.hpp says; of a sentence in text, control characters are
// escaped, and what follows a line break stands indented behind "| ".
//
// Thread safe, lines never mix; independent of the process's locale. Never called on the launch path, except
// for the one line that says a specialisation was disabled.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace kiln::log {

// In order of urgency; `off` prints nothing.
enum class Level { debug, info, warning, error, off };

// Reads "debug", "info", "warning", "error" or "off"; false when the word is none of them.
[[nodiscard]] bool parse_level(std::string_view word, Level& level);

void set_level(Level level);  // the default is `warning`
[[nodiscard]] bool enabled(Level level);
[[nodiscard]] std::string_view to_text(Level level);

enum class Format { text, json };

// Reads "text" or "json"; false when the word is neither.
[[nodiscard]] bool parse_format(std::string_view word, Format& format);

void set_format(Format format);  // the default is `text`

// Who takes lines in place of stderr: in json the whole line, in text what follows "kiln: LEVEL: ", without
// the line break at its end. Called by the thread that speaks, by several at once. What it says itself
// through this log goes to stderr.
using Taker = std::function<void(Level level, const char* line)>;

// Empty: stderr again. When it returns, the taker before is not being called and will not be. False, and
// nothing is changed, when a taker itself asks. In the child of a fork the taker stays.
[[nodiscard]] bool set_taker(Taker taker);

void write(Level level, std::string_view line);

// name=value of an event. Borrows its texts, so it lives no longer than the call that it is written in.
class Field {
  public:
    Field(std::string_view name, std::string_view value) : name_(name), value_(value) {}
    Field(std::string_view name, const std::string& value) : Field(name, std::string_view(value)) {}
    Field(std::string_view name, const char* value) : Field(name, std::string_view(value)) {}
    template <class Number>
    requires std::is_arithmetic_v<Number> Field(std::string_view name, Number value)
        : name_(name), value_(widened(value)) {}

    // Six digits of a floating point number; "true" or "false"; in json null for what is no number there.
    void append_to(std::string& line, Format format) const;

  private:
    template <class Number>
    static auto widened(Number value) {
        if constexpr (std::same_as<Number, bool>) {
            return value;
        } else if constexpr (std::floating_point<Number>) {
            return static_cast<double>(value);
        } else if constexpr (std::signed_integral<Number>) {
            return static_cast<std::int64_t>(value);
        } else {
            return static_cast<std::uint64_t>(value);
        }
    }

    std::string_view name_;
    std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double> value_;
};

// One line: the event's name, then its fields. Names are words of ours, without white space; no field is
// called time, level, logger, event or message.
// log::event(Level::info, "compile", {{"kernel", kernel_name}, {"seconds", seconds}});
void event(Level level, std::string_view name, std::initializer_list<Field> fields);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::debug)) {
        write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
    }
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::info)) {
        write(Level::info, fmt::format(format, std::forward<Args>(args)...));
    }
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::warning)) {
        write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
    }
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(Level::error)) {
        write(Level::error, fmt::format(format, std::forward<Args>(args)...));
    }
}

}  // namespace kiln::log
