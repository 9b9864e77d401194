#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/logfmt.hpp"

namespace kiln::log {
namespace {

struct LevelName {
    std::string_view word;
    Level level;
    spdlog::level::level_enum native;
};

constexpr std::array kLevels = {
    LevelName{"debug", Level::debug, spdlog::level::debug},
    LevelName{"info", Level::info, spdlog::level::info},
    LevelName{"warning", Level::warning, spdlog::level::warn},
    LevelName{"error", Level::error, spdlog::level::err},
    LevelName{"off", Level::off, spdlog::level::off},
};

spdlog::level::level_enum native(Level level) {
    return kLevels[static_cast<std::size_t>(level)].native;
}

// A line is one write: whole without a lock, which a child that was forked while another thread held it could
// never take. Nor is stdio's touched, whose buffer may be the host's.
class Stderr final : public spdlog::sinks::sink {
  public:
    void log(const spdlog::details::log_msg& message) override {
        const auto word = kLevels[static_cast<std::size_t>(message.level) - spdlog::level::debug].word;
        const std::string line = fmt::format(
            "kiln: {}: {}\n", word, std::string_view(message.payload.data(), message.payload.size()));
        std::string_view rest = line;
        while (!rest.empty()) {
            const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
            if (written < 0 && errno != EINTR) {
                return;  // nobody reads it: that is no fault of what it speaks of
            }
            rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
        }
    }
    void flush() override {}
    void set_pattern(const std::string&) override {}  // the form is fixed
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// Not in spdlog's registry: an engine that uses spdlog itself must not meet a logger of ours there. Never
// destroyed, so that a static destructor of the host may still log.
spdlog::logger& logger() {
    static auto* const instance = [] {
        auto* made = new spdlog::logger("kiln", std::make_shared<Stderr>());
        made->set_level(native(Level::warning));
        return made;
    }();
    return *instance;
}

}  // namespace

bool parse_level(std::string_view word, Level& level) {
    for (const auto& known : kLevels) {
        if (known.word == word) {
            level = known.level;
            return true;
        }
    }
    return false;
}

void set_level(Level level) {
    logger().set_level(native(level));
}

bool enabled(Level level) {
    return logger().should_log(native(level));
}

void write(Level level, std::string_view line) try {
    std::string safe;
    append_sentence(safe, line);
    logger().log(native(level), "{}", safe);
} catch (const std::exception&) {  // of memory: a line is lost, what it speaks of goes on
}

void Field::append_to(std::string& line) const {
    line += name_;
    line += '=';
    if (const auto* text = std::get_if<std::string_view>(&value_)) {
        append_logfmt(line, *text);
    } else if (const auto* number = std::get_if<double>(&value_)) {
        line += fmt::format("{:.6g}", *number);
    } else {
        std::visit([&line](const auto& value) { line += fmt::format("{}", value); }, value_);
    }
}

void event(Level level, std::string_view name, std::initializer_list<Field> fields) try {
    if (!enabled(level)) {
        return;
    }
    std::string line(name);
    for (const Field& field : fields) {
        line += ' ';
        field.append_to(line);
    }
    logger().log(native(level), "{}", line);
} catch (const std::exception&) {  // as above
}

}  // namespace kiln::log
