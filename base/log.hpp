// Diagnostics, to stderr, at the level that KILN_LOG or the embedding program asks for.
//
// Two forms. An event is something that happened to a thing with a name, one line for people and programs:
//
//   kiln: info: compile kernel=kiln_linear_n5120_k4096_m32 seconds=0.812
//
// Everything else is a sentence. Text that came from outside (a file's name, a compiler's output) can neither
// forge a line nor reach a terminal's controls: events are quoted as logfmt.hpp says; of a sentence, control
// characters are escaped, and what follows a line break stands indented behind "| ".
//
// Thread safe, lines never mix; independent of the process's locale. Never called on the launch path, except
// for the one line that says a specialisation was disabled.
#pragma once

#include <concepts>
#include <cstdint>
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

    // Six digits of a floating point number; "true" or "false".
    void append_to(std::string& line) const;

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

// One line: the event's name, then its fields as name=value. Names are words of ours, without white space.
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
