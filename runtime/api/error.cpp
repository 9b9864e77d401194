#include <new>
#include <utility>

#include "runtime/api/handles.hpp"

// The C enums repeat the values of base/error.hpp, which states that they never change.
static_assert(KILN_ERROR_INVALID_ARGUMENT == static_cast<int>(kiln::ErrorCode::invalid_argument));
static_assert(KILN_ERROR_BAD_INPUT == static_cast<int>(kiln::ErrorCode::bad_input));
static_assert(KILN_ERROR_NOT_FOUND == static_cast<int>(kiln::ErrorCode::not_found));
static_assert(KILN_ERROR_ENVIRONMENT == static_cast<int>(kiln::ErrorCode::environment));
static_assert(KILN_ERROR_IO == static_cast<int>(kiln::ErrorCode::io));
static_assert(KILN_ERROR_DAMAGED == static_cast<int>(kiln::ErrorCode::damaged));
static_assert(KILN_ERROR_COMPILE_FAILED == static_cast<int>(kiln::ErrorCode::compile_failed));
static_assert(KILN_ERROR_WORKER_FAILED == static_cast<int>(kiln::ErrorCode::worker_failed));
static_assert(KILN_ERROR_LOAD_FAILED == static_cast<int>(kiln::ErrorCode::load_failed));
static_assert(KILN_ERROR_LAUNCH_FAILED == static_cast<int>(kiln::ErrorCode::launch_failed));
static_assert(KILN_ERROR_DEVICE_FAILED == static_cast<int>(kiln::ErrorCode::device_failed));
static_assert(KILN_ERROR_INTERNAL == static_cast<int>(kiln::ErrorCode::internal));
static_assert(KILN_STAGE_CONFIGURE == static_cast<int>(kiln::Stage::configure));
static_assert(KILN_STAGE_TABLE == static_cast<int>(kiln::Stage::table));
static_assert(KILN_STAGE_CACHE == static_cast<int>(kiln::Stage::cache));
static_assert(KILN_STAGE_COMPILE == static_cast<int>(kiln::Stage::compile));
static_assert(KILN_STAGE_LOAD == static_cast<int>(kiln::Stage::load));
static_assert(KILN_STAGE_LAUNCH == static_cast<int>(kiln::Stage::launch));
static_assert(KILN_STAGE_DEVICE == static_cast<int>(kiln::Stage::device));

namespace kiln::api {

kiln_status report(const operators::Refusal& refusal, kiln_error** error) {
    const kiln_status status = refusal.status();
    if (error != nullptr) {
        *error = new (std::nothrow)
            kiln_error{status, static_cast<std::int32_t>(refusal.error.stage), refusal.error.message};
    }
    return status;
}

kiln_status report(ErrorCode code, Stage stage, std::string message, kiln_error** error) {
    return report(operators::Refusal{0, Error{code, stage, std::move(message)}}, error);
}

kiln_status report_thrown(const char* what, kiln_error** error) noexcept {
    try {
        return report(ErrorCode::internal, Stage::configure, what, error);
    } catch (...) {
        if (error != nullptr) {
            *error = nullptr;
        }
        return -KILN_ERROR_INTERNAL;
    }
}

}  // namespace kiln::api

extern "C" {

const char* kiln_decline_text(int32_t decline) {
    return kiln::operators::decline_text(decline);
}

const char* kiln_status_text(kiln_status status) {
    if (status == KILN_OK) {
        return "done";
    }
    if (status > 0) {
        return kiln_decline_text(status);
    }
    switch (-status) {
        case KILN_ERROR_INVALID_ARGUMENT:
            return "an argument can not be meant";
        case KILN_ERROR_BAD_INPUT:
            return "a file or an environment variable is malformed";
        case KILN_ERROR_NOT_FOUND:
            return "a thing that was named does not exist";
        case KILN_ERROR_ENVIRONMENT:
            return "the machine lacks something";
        case KILN_ERROR_IO:
            return "the operating system refused to read or write";
        case KILN_ERROR_DAMAGED:
            return "bytes that kiln wrote no longer verify";
        case KILN_ERROR_COMPILE_FAILED:
            return "the compiler refused a template";
        case KILN_ERROR_WORKER_FAILED:
            return "the compile worker failed";
        case KILN_ERROR_LOAD_FAILED:
            return "a code object was refused";
        case KILN_ERROR_LAUNCH_FAILED:
            return "the driver refused a launch";
        case KILN_ERROR_DEVICE_FAILED:
            return "a call of the driver failed";
        case KILN_ERROR_INTERNAL:
            return "an internal promise was broken";
        default:
            return "unknown error";
    }
}

kiln_status kiln_error_get_status(const kiln_error* error) {
    return error != nullptr ? error->status : KILN_OK;
}

int32_t kiln_error_get_code(const kiln_error* error) {
    return error != nullptr && error->status < 0 ? -error->status : 0;
}

int32_t kiln_error_get_stage(const kiln_error* error) {
    return error != nullptr ? error->stage : 0;
}

const char* kiln_error_get_message(const kiln_error* error) {
    return error != nullptr ? error->message.c_str() : "";
}

void kiln_error_free(kiln_error* error) {
    delete error;
}

}  // extern "C"
