#include "runtime/service/log_settings.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

namespace kiln::service {
namespace {

// Set at run time: the environment does not count any more.
std::atomic<bool> g_level_was_set{false};
std::atomic<bool> g_format_was_set{false};

bool is_configured(const Settings& settings, std::string_view variable) {
    const auto found = std::ranges::find(settings.listed, variable, &Setting::variable);
    return found != settings.listed.end() && found->origin == Origin::configuration;
}

}  // namespace

void adopt_log(const Settings& settings) {
    if (!g_level_was_set || is_configured(settings, "KILN_LOG")) {
        log::set_level(settings.log_level);
    }
    if (!g_format_was_set || is_configured(settings, "KILN_LOG_FORMAT")) {
        log::set_format(settings.log_format);
    }
}

Result<void> set_log(std::optional<std::string_view> level, std::optional<std::string_view> format) {
    log::Level wanted_level{};
    log::Format wanted_format{};
    if (level && !log::parse_level(*level, wanted_level)) {
        return fail(
            ErrorCode::invalid_argument, Stage::configure,
            fmt::format("log level: expected one of debug, info, warning, error, off, found \"{}\"", *level));
    }
    if (format && !log::parse_format(*format, wanted_format)) {
        return fail(ErrorCode::invalid_argument, Stage::configure,
                    fmt::format("log format: expected one of text, json, found \"{}\"", *format));
    }
    if (level) {
        g_level_was_set = true;
        log::set_level(wanted_level);
    }
    if (format) {
        g_format_was_set = true;
        log::set_format(wanted_format);
    }
    return {};
}

}  // namespace kiln::service
