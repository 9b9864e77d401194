// One line of diagnostics, to stderr, at the level that KILN_LOG or the embedding program asks for.
//
// Thread safe. Never called on the launch path, except for the one line that says a specialisation was
// disabled.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace kiln::log {

// In order of urgency; `off` prints nothing.
enum class Level { debug, info, warning, error, off };

// Reads "debug", "info", "warning", "error" or "off"; false when the word is none of them.
[[nodiscard]] bool parse_level(std::string_view word, Level& level);

void set_level(Level level);  // the default is `warning`
[[nodiscard]] bool enabled(Level level);
void write(Level level, std::string_view line);

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
