#include "base/log.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "runtime/api/handles.hpp"
#include "runtime/service/log_settings.hpp"

namespace {

using kiln::api::guarded;
using kiln::api::report;
using kiln::log::Level;

std::optional<std::string_view> optional_word(const char* word) {
    return word != nullptr ? std::optional<std::string_view>(word) : std::nullopt;
}

std::int32_t to_c(Level level) {
    switch (level) {
        case Level::debug:
            return KILN_LOG_DEBUG;
        case Level::info:
            return KILN_LOG_INFO;
        case Level::warning:
            return KILN_LOG_WARNING;
        case Level::error:
        case Level::off:  // no line has it
            break;
    }
    return KILN_LOG_ERROR;
}

}  // namespace

extern "C" {

kiln_status kiln_log_set(const char* level, const char* format, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        auto set = kiln::service::set_log(optional_word(level), optional_word(format));
        return set ? KILN_OK : report({0, std::move(set.error())}, error);
    });
}

kiln_status kiln_log_set_callback(kiln_log_callback callback, void* context) {
    return guarded(nullptr, [&]() -> kiln_status {
        kiln::log::Taker taker;
        if (callback != nullptr) {
            taker = [callback, context](Level level, const char* line) {
                callback(context, to_c(level), line);
            };
        }
        return kiln::log::set_taker(std::move(taker)) ? KILN_OK : -KILN_ERROR_INVALID_ARGUMENT;
    });
}

}  // extern "C"
