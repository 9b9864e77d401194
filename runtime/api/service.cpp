#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/versioned_struct.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/service/version.hpp"

namespace {

using kiln::ErrorCode;
using kiln::Stage;
using kiln::api::check;
using kiln::api::guarded;
using kiln::api::report;

std::optional<std::string> optional_text(const char* text) {
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

kiln::service::Overrides to_overrides(const kiln_config& config) {
    kiln::service::Overrides overrides;
    overrides.cache_dir = optional_text(config.cache_dir);
    overrides.cache_path = optional_text(config.cache_path);
    overrides.shapes_path = optional_text(config.shapes_path);
    overrides.kernel_path = optional_text(config.kernel_path);
    overrides.target = optional_text(config.target);
    overrides.device = optional_text(config.device);
    overrides.jit = optional_text(config.jit);
    overrides.disable = optional_text(config.disable);
    overrides.worker = optional_text(config.worker);
    overrides.hip_library = optional_text(config.hip_library);
    overrides.cuda_library = optional_text(config.cuda_library);
    overrides.log = optional_text(config.log);
    overrides.log_format = optional_text(config.log_format);
    overrides.workers = config.workers;
    overrides.compile_in_process = config.compile_in_process != 0;
    overrides.cache_limit_bytes = config.cache_limit_bytes;
    return overrides;
}

// Cuts what does not fit; always ends in zero.
template <std::size_t kSize>
void copy_text(char (&to)[kSize], std::string_view from) {
    const std::size_t length = std::min(from.size(), kSize - 1);
    std::memcpy(to, from.data(), length);
    to[length] = '\0';
}

// Whether the caller's struct has room for any member of an answer: one whose struct_size was forgotten has
// not.
bool has_room(std::size_t struct_size) {
    return struct_size > sizeof(struct_size);
}

// Copies as much of an answer as the caller's struct has room for, and leaves its struct_size as it was.
template <class Answer>
void write_versioned(const Answer& answer, Answer* to) {
    const std::size_t bytes = std::min(to->struct_size, sizeof(Answer));
    constexpr std::size_t kHead = sizeof(answer.struct_size);
    std::memcpy(reinterpret_cast<char*>(to) + kHead, reinterpret_cast<const char*>(&answer) + kHead,
                bytes - kHead);
}

}  // namespace

extern "C" {

const char* kiln_version(void) {
    return kiln::service::kVersion;
}

kiln_status kiln_service_open(const kiln_config* config, kiln_service** service, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (service == nullptr) {
            return report(ErrorCode::invalid_argument, Stage::configure,
                          "expected a place for the service, found NULL", error);
        }
        kiln_config known = KILN_CONFIG_INIT;
        if (config != nullptr && (!kiln::read_versioned(config, config->struct_size, &known, sizeof(known)) ||
                                  known.compile_in_process > 1)) {
            return report(
                ErrorCode::invalid_argument, Stage::configure,
                fmt::format("expected a kiln_config of {} bytes (KILN_CONFIG_INIT), found one of {}, or with "
                            "members that this version does not know, or compile_in_process neither 0 nor 1",
                            sizeof(known), config->struct_size),
                error);
        }
        kiln::watch_forks();
        auto opened = kiln::service::Service::open(to_overrides(known));
        if (!opened) {
            return report({0, std::move(opened.error())}, error);
        }
        auto handle = std::make_unique<kiln_service>();
        handle->service = *std::move(opened);
        *service = handle.release();
        return KILN_OK;
    });
}

kiln_service* kiln_service_retain(kiln_service* service) {
    return kiln::api::retain(service);
}
void kiln_service_release(kiln_service* service) {
    kiln::api::release(service);
}

kiln_status kiln_service_reload(kiln_service* service, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        auto reloaded = service->service->reload();
        return reloaded ? KILN_OK : report({0, std::move(reloaded.error())}, error);
    });
}

kiln_status kiln_service_statistics(const kiln_service* service, kiln_statistics* statistics) {
    return guarded(nullptr, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", nullptr); usable != KILN_OK) {
            return usable;
        }
        if (statistics == nullptr || !has_room(statistics->struct_size)) {
            return -KILN_ERROR_INVALID_ARGUMENT;
        }
        const kiln::service::Statistics now = service->service->statistics();
        kiln_statistics answer = KILN_STATISTICS_INIT;
        answer.cache_hits = now.cache_hits;
        answer.cache_misses = now.cache_misses;
        answer.cache_damaged = now.cache_damaged;
        answer.memory_hits = now.memory_hits;
        answer.compiles = now.compiles;
        answer.compile_errors = now.compile_errors;
        answer.loads = now.loads;
        answer.compile_seconds = now.compile_seconds;
        answer.layer_hits = now.layer_hits;
        answer.evictions = now.evictions;
        answer.declines = now.declines;
        answer.disabled = now.disabled;
        answer.reloads = now.reloads;
        answer.other_compiler_hits = now.other_compiler_hits;
        write_versioned(answer, statistics);
        return KILN_OK;
    });
}

kiln_status kiln_device_count(kiln_service* service, int32_t* count, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        if (count == nullptr) {
            return report(ErrorCode::invalid_argument, Stage::device,
                          "expected a place for the count, found NULL", error);
        }
        auto devices = service->service->devices();
        if (!devices) {
            return report({0, std::move(devices.error())}, error);
        }
        *count = static_cast<int32_t>(devices->size());
        return KILN_OK;
    });
}

kiln_status kiln_device_get_info(kiln_service* service, int32_t device, kiln_device_info* info,
                                 kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        if (info == nullptr) {
            return report(ErrorCode::invalid_argument, Stage::device,
                          "expected a place for the answer, found NULL", error);
        }
        if (!has_room(info->struct_size)) {
            return report(ErrorCode::invalid_argument, Stage::device,
                          fmt::format("expected a kiln_device_info of {} bytes, found struct_size {}",
                                      sizeof(*info), info->struct_size),
                          error);
        }
        auto found = service->service->device(device);
        if (!found) {
            return report({0, std::move(found.error())}, error);
        }
        const kiln::device::DeviceInfo& known = (*found)->info();
        kiln_device_info answer{};
        copy_text(answer.name, known.name);
        copy_text(answer.target, known.target);
        answer.num_compute_units = known.num_compute_units;
        answer.simulated = known.simulated ? 1 : 0;
        answer.memory_bytes = known.memory_bytes;
        write_versioned(answer, info);
        return KILN_OK;
    });
}

}  // extern "C"
