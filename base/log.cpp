#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log_taker.hpp"
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
        std::string_view rest(message.payload.data(), message.payload.size());
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

std::atomic<Format> g_format{Format::text};

void emit(Level level, Format format, const std::string& line) {
    if (call_taker(level, line.c_str())) {
        return;
    }
    logger().log(native(level), "{}",
                 format == Format::json ? line + '\n' : fmt::format("kiln: {}: {}\n", to_text(level), line));
}

// "2026-02-03T04:05:06.123456Z".
std::string time_of_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    const std::time_t time = seconds.count();
    std::tm utc{};
    ::gmtime_r(&time, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                       std::chrono::duration_cast<std::chrono::microseconds>(now - seconds).count());
}

// The beginning of a line in JSON, as far as `kind` ("event", "message") and what that is.
std::string json_head(Level level, std::string_view kind, std::string_view text) {
    std::string line = fmt::format(R"({{"time":"{}","level":"{}","logger":"kiln","{}":)", time_of_now(),
                                   to_text(level), kind);
    append_json(line, text);
    return line;
}

}  // namespace

std::string_view to_text(Level level) {
    return kLevels[static_cast<std::size_t>(level)].word;
}

bool parse_format(std::string_view word, Format& format) {
    if (word != "text" && word != "json") {
        return false;
    }
    format = word == "json" ? Format::json : Format::text;
    return true;
}

void set_format(Format format) {
    g_format = format;
}

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
    if (!enabled(level)) {
        return;
    }
    const Format format = g_format;
    if (format == Format::json) {
        emit(level, format,
             json_head(level, "message", line.substr(0, line.find_last_not_of("\r\n") + 1)) + '}');
        return;
    }
    std::string safe;
    append_sentence(safe, line);
    emit(level, format, safe);
} catch (const std::exception&) {  // of memory: a line is lost, what it speaks of goes on
}

void Field::append_to(std::string& line, Format format) const {
    const bool json = format == Format::json;
    line += json ? fmt::format(R"("{}":)", name_) : fmt::format("{}=", name_);
    if (const auto* text = std::get_if<std::string_view>(&value_)) {
        json ? append_json(line, *text) : append_logfmt(line, *text);
    } else if (const auto* number = std::get_if<double>(&value_)) {
        line += json && !std::isfinite(*number) ? "null" : fmt::format("{:.6g}", *number);
    } else {
        std::visit([&line](const auto& value) { line += fmt::format("{}", value); }, value_);
    }
}

void event(Level level, std::string_view name, std::initializer_list<Field> fields) try {
    if (!enabled(level)) {
        return;
    }
    const Format format = g_format;
    const bool json = format == Format::json;
    std::string line = json ? json_head(level, "event", name) : std::string(name);
    for (const Field& field : fields) {
        line += json ? ',' : ' ';
        field.append_to(line, format);
    }
    if (json) {
        line += '}';
    }
    emit(level, format, line);
} catch (const std::exception&) {  // as above
}

}  // namespace kiln::log
