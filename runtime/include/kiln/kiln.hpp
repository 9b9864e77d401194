// kiln for C++20: header-only over the C ABI of kiln.h.
//
//     auto service = kiln::Service::open(config);
//     auto qkv     = service.prepare(device, kiln::Linear{.n = 4608, .k = 4096});
//     auto status  = qkv.launch(stream, m, {.x = x, .ldx = k, .w = w, .w_scale = ws, .out = out});
//     if (!status) { /* status.text(), status.declined() */ }
//
// Errors. Nothing throws and nothing need be checked in between: an object that could not be made is empty,
// holds its Failure, and hands it on. A Plan prepared by a Service that did not open has the service's
// failure; launching it returns that status. So `if (!plan) { use(plan.failure()); }` right after prepare()
// is the place to look, and a program that only looks at the status of the launch misses nothing but the
// message.
//
// Thread safety is that of kiln.h: const objects may be used from any number of threads. Service and Plan are
// references with a count: copies are cheap and name the same thing.
//
// Two versions. What is inline here is compiled into every library that uses it, and the loader keeps one
// copy of a name for all of them; so names carry the version of the interface (kiln::v0_1::Service), as the
// symbols of libkiln and its file name do. Libraries built against different versions then live in one
// process, each with a kiln of its own.
#ifndef KILN_KILN_HPP_
#define KILN_KILN_HPP_

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/kiln.h"

// v0_1. Before 1.0 every minor version may change the interface.
#define KILN_INTERFACE_OF(major, minor) v##major##_##minor
#define KILN_INTERFACE_NAMED(major, minor) KILN_INTERFACE_OF(major, minor)
#define KILN_INTERFACE KILN_INTERFACE_NAMED(KILN_VERSION_MAJOR, KILN_VERSION_MINOR)

namespace kiln {
inline namespace KILN_INTERFACE {

// How a call ended. Small, trivially copyable, made without allocating.
class [[nodiscard]] Status {
  public:
    constexpr Status() = default;
    constexpr explicit Status(kiln_status value) : value_(value) {}

    // Done.
    [[nodiscard]] constexpr bool ok() const { return value_ == KILN_OK; }
    constexpr explicit operator bool() const { return ok(); }
    // "Not applicable": the caller keeps its own path. decline() is then a kiln_decline, else 0.
    [[nodiscard]] constexpr bool declined() const { return value_ > 0; }
    [[nodiscard]] constexpr std::int32_t decline() const { return value_ > 0 ? value_ : 0; }
    // Something is wrong. error_code() is then a kiln_error_code, else 0.
    [[nodiscard]] constexpr bool failed() const { return value_ < 0; }
    [[nodiscard]] constexpr std::int32_t error_code() const { return value_ < 0 ? -value_ : 0; }

    [[nodiscard]] constexpr kiln_status value() const { return value_; }
    // One sentence. Never null, constant.
    [[nodiscard]] const char* text() const { return kiln_status_text(value_); }

    friend constexpr bool operator==(Status, Status) = default;

  private:
    kiln_status value_ = KILN_OK;
};

// Why something could not be made: the status, and what was expected, what was found and where.
struct Failure {
    Status status;
    std::int32_t stage = 0;  // kiln_stage
    std::string message;

    // What calls on the empty object return: never ok, though nothing failed where an object was moved from.
    [[nodiscard]] Status of_empty() const {
        return status.ok() ? Status(-KILN_ERROR_INVALID_ARGUMENT) : status;
    }

    // What a call on the empty object returns; `why`, where it is given, gets the whole of it.
    Status pass_on(Failure* why) const {
        if (why != nullptr) {
            *why = *this;
            why->status = of_empty();
        }
        return of_empty();
    }

    // Takes the error object of a C call, which may be null, and frees it.
    static Failure take(kiln_status status, kiln_error* error) {
        Failure failure{Status(status), kiln_error_get_stage(error), kiln_error_get_message(error)};
        kiln_error_free(error);
        return failure;
    }
};

// As kiln_config: a member left null takes its environment variable, then its default.
struct Config {
    const char* cache_dir = nullptr;
    const char* shapes_path = nullptr;
    const char* kernel_path = nullptr;
    const char* target = nullptr;
    const char* device = nullptr;
    const char* jit = nullptr;
    const char* disable = nullptr;
    const char* worker = nullptr;
    const char* hip_library = nullptr;
    const char* log = nullptr;
    std::uint32_t workers = 0;
    bool compile_in_process = false;
    const char* cache_path = nullptr;
    std::uint64_t cache_limit_bytes = 0;
    const char* cuda_library = nullptr;
    const char* log_format = nullptr;
};

enum class LogLevel : std::int32_t {
    debug = KILN_LOG_DEBUG,
    info = KILN_LOG_INFO,
    warning = KILN_LOG_WARNING,
    error = KILN_LOG_ERROR,
};

// The level and the format of the process's log from now on, null: as it is; see kiln_log_set.
inline Status set_log(const char* level, const char* format = nullptr, Failure* why = nullptr) {
    kiln_error* error = nullptr;
    const kiln_status status = kiln_log_set(level, format, why != nullptr ? &error : nullptr);
    if (why != nullptr && status != KILN_OK) {
        *why = Failure::take(status, error);
    }
    return Status(status);
}

// While one lives, the log's lines go to `take` in place of stderr; see kiln_log_callback for what it must
// be fit for. At most one at a time.
class [[nodiscard]] LogTaker {
  public:
    using Take = std::function<void(LogLevel level, std::string_view line)>;

    explicit LogTaker(Take take) : take_(std::move(take)) {
        kiln_log_set_callback(
            [](void* context, std::int32_t level, const char* line) noexcept {
                (*static_cast<const Take*>(context))(static_cast<LogLevel>(level), line);
            },
            &take_);
    }
    LogTaker(const LogTaker&) = delete;
    LogTaker& operator=(const LogTaker&) = delete;
    ~LogTaker() { kiln_log_set_callback(nullptr, nullptr); }

  private:
    Take take_;
};

// When the buckets of a plan are obtained and loaded; see kiln_prepare_mode.
enum class PrepareMode : std::int32_t {
    blocking = KILN_PREPARE_BLOCKING,
    lazy = KILN_PREPARE_LAZY,
    background = KILN_PREPARE_BACKGROUND,
};

enum class Dtype : std::int32_t {
    operator_default = KILN_DTYPE_DEFAULT,
    bf16 = KILN_DTYPE_BF16,
    fp16 = KILN_DTYPE_FP16,
    fp32 = KILN_DTYPE_FP32,
    e4m3fn = KILN_DTYPE_E4M3FN,
    e4m3fnuz = KILN_DTYPE_E4M3FNUZ,
    e5m2 = KILN_DTYPE_E5M2,
    e2m1 = KILN_DTYPE_E2M1,
    e8m0 = KILN_DTYPE_E8M0,
};

enum class WeightLayout : std::int32_t {
    operator_default = KILN_WEIGHT_LAYOUT_DEFAULT,
    preshuffled = KILN_WEIGHT_LAYOUT_PRESHUFFLED,
    row_major = KILN_WEIGHT_LAYOUT_ROW_MAJOR,
};

enum class ScaleGranularity : std::int32_t {
    operator_default = KILN_SCALE_DEFAULT,
    block_128x128 = KILN_SCALE_BLOCK_128X128,
    per_tensor = KILN_SCALE_PER_TENSOR,
    per_row = KILN_SCALE_PER_ROW,
    group_32 = KILN_SCALE_GROUP_32,
};

// A problem resolved for one device; see kiln_plan. Empty when it could not be prepared.
template <class Problem>
class [[nodiscard]] Plan {
  public:
    using Args = typename Problem::Args;

    // An empty plan that says why. Service::prepare makes the others.
    explicit Plan(Failure failure) : failure_(std::move(failure)) {}
    // Takes over one reference.
    explicit Plan(kiln_plan* handle) : handle_(handle) {}

    Plan(const Plan& other) : handle_(kiln_plan_retain(other.handle_)), failure_(other.failure_) {}
    Plan(Plan&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), failure_(std::move(other.failure_)) {}
    Plan& operator=(Plan other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(failure_, other.failure_);
        return *this;
    }
    ~Plan() { kiln_plan_release(handle_); }

    explicit operator bool() const { return handle_ != nullptr; }
    // Why the plan is empty; of no meaning when it is not.
    [[nodiscard]] const Failure& failure() const { return failure_; }

    // Enqueues the problem for m rows on `stream` and returns at once; see kiln_linear_launch. On an empty
    // plan: the status of its failure, KILN_ERROR_INVALID_ARGUMENT for one that was moved from.
    Status launch(void* stream, std::int64_t m, const Args& args) const {
        if (handle_ == nullptr) {
            return failure_.of_empty();
        }
        return Status(Problem::c_launch(handle_, stream, m, args));
    }

    // What a launch of m rows would find, without lock or wait; see kiln_plan_ready. On an empty plan as
    // launch().
    [[nodiscard]] Status ready(std::int64_t m) const {
        return handle_ == nullptr ? failure_.of_empty() : Status(kiln_plan_ready(handle_, m));
    }

    // Has every bucket obtained and waits for that, no longer than `timeout` (negative: without limit); see
    // kiln_plan_wait. The message of a decline or failure goes to `why` where that is given.
    Status wait(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1),
                Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        kiln_error* error = nullptr;
        const kiln_status status =
            kiln_plan_wait(handle_, timeout.count(), why != nullptr ? &error : nullptr);
        if (why != nullptr && status != KILN_OK) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    // Bytes of workspace for launches of up to max_m rows; 0: none is needed. See kiln_plan_workspace_bytes.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t max_m) const {
        return kiln_plan_workspace_bytes(handle_, max_m);
    }

    // Readies a new workspace, once; see kiln_plan_init_workspace. On an empty plan as launch(). The message
    // of a decline or failure goes to `why` where that is given.
    Status init_workspace(void* stream, void* workspace, std::int64_t bytes, Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        kiln_error* error = nullptr;
        const kiln_status status =
            kiln_plan_init_workspace(handle_, stream, workspace, bytes, why != nullptr ? &error : nullptr);
        if (why != nullptr && status != KILN_OK) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    [[nodiscard]] std::int64_t max_m() const { return kiln_plan_max_m(handle_); }
    [[nodiscard]] std::int32_t device() const { return kiln_plan_device(handle_); }
    // Null when no kernel serves this m.
    [[nodiscard]] const char* kernel_name(std::int64_t m) const { return kiln_plan_kernel_name(handle_, m); }

  private:
    kiln_plan* handle_ = nullptr;
    Failure failure_;
};

// Tables, templates, cache, compiler and devices of one program; see kiln_service. Empty when it could not be
// opened.
class [[nodiscard]] Service {
  public:
    static Service open(const Config& config = {}) {
        kiln_config c = KILN_CONFIG_INIT;
        c.cache_dir = config.cache_dir;
        c.shapes_path = config.shapes_path;
        c.kernel_path = config.kernel_path;
        c.target = config.target;
        c.device = config.device;
        c.jit = config.jit;
        c.disable = config.disable;
        c.worker = config.worker;
        c.hip_library = config.hip_library;
        c.log = config.log;
        c.workers = config.workers;
        c.compile_in_process = config.compile_in_process ? 1 : 0;
        c.cache_path = config.cache_path;
        c.cache_limit_bytes = config.cache_limit_bytes;
        c.cuda_library = config.cuda_library;
        c.log_format = config.log_format;
        kiln_service* handle = nullptr;
        kiln_error* error = nullptr;
        const kiln_status status = kiln_service_open(&c, &handle, &error);
        return status == KILN_OK ? Service(handle) : Service(Failure::take(status, error));
    }

    // Takes over one reference.
    explicit Service(kiln_service* handle) : handle_(handle) {}
    explicit Service(Failure failure) : failure_(std::move(failure)) {}
    Service(const Service& other) : handle_(kiln_service_retain(other.handle_)), failure_(other.failure_) {}
    Service(Service&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), failure_(std::move(other.failure_)) {}
    Service& operator=(Service other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(failure_, other.failure_);
        return *this;
    }
    ~Service() { kiln_service_release(handle_); }

    explicit operator bool() const { return handle_ != nullptr; }
    // Why the service is empty; of no meaning when it is not.
    [[nodiscard]] const Failure& failure() const { return failure_; }

    // Whether kiln serves the problem on the device (KILN_NO_DEVICE: on the configured target). Never
    // compiles. The message of a decline or failure goes to `why` where that is given.
    template <class Problem>
    Status supports(std::int32_t device, const Problem& problem, Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        kiln_error* error = nullptr;
        const kiln_status status =
            Problem::c_supports(handle_, device, problem, why != nullptr ? &error : nullptr);
        if (why != nullptr && status != KILN_OK) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    // A plan of the problem; `mode` says when its buckets are loaded, by default before this returns. A
    // decline gives an empty plan too.
    template <class Problem>
    Plan<Problem> prepare(std::int32_t device, const Problem& problem,
                          PrepareMode mode = PrepareMode::blocking) const {
        if (handle_ == nullptr) {
            return Plan<Problem>(failure_);
        }
        kiln_prepare_options options = KILN_PREPARE_OPTIONS_INIT;
        options.mode = static_cast<std::int32_t>(mode);
        kiln_plan* plan = nullptr;
        kiln_error* error = nullptr;
        const kiln_status status = Problem::c_prepare(handle_, device, problem, &options, &plan, &error);
        return status == KILN_OK ? Plan<Problem>(plan) : Plan<Problem>(Failure::take(status, error));
    }

    // Takes the edited tables and templates whole, or none of them; see kiln_service_reload.
    Status reload(Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        kiln_error* error = nullptr;
        const kiln_status status = kiln_service_reload(handle_, why != nullptr ? &error : nullptr);
        if (why != nullptr && status != KILN_OK) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    // How many devices there are; `count` is left alone when that is not known.
    Status device_count(std::int32_t& count, Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        kiln_error* error = nullptr;
        const kiln_status status = kiln_device_count(handle_, &count, why != nullptr ? &error : nullptr);
        if (why != nullptr && status != KILN_OK) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    // `info` is left alone when the status is not ok.
    Status device_info(std::int32_t device, kiln_device_info& info) const {
        if (handle_ == nullptr) {
            return failure_.of_empty();
        }
        kiln_device_info answer{};
        answer.struct_size = sizeof(answer);
        const Status status(kiln_device_get_info(handle_, device, &answer, nullptr));
        if (status.ok()) {
            info = answer;
        }
        return status;
    }

    // All zero for an empty service.
    [[nodiscard]] kiln_statistics statistics() const {
        kiln_statistics statistics = KILN_STATISTICS_INIT;
        if (handle_ != nullptr) {
            kiln_service_statistics(handle_, &statistics);
        }
        return statistics;
    }

    // What it has counted as a page for Prometheus, with these labels at every sample; see
    // kiln_service_metrics. `text` is left alone when the status is not ok.
    Status metrics(std::string& text, std::span<const kiln_label> labels = {}, Failure* why = nullptr) const {
        if (handle_ == nullptr) {
            return failure_.pass_on(why);
        }
        char* page = nullptr;
        kiln_error* error = nullptr;
        const kiln_status status = kiln_service_metrics(handle_, labels.data(), labels.size(), &page,
                                                        why != nullptr ? &error : nullptr);
        if (status == KILN_OK) {
            text = page;
            kiln_text_free(page);
        } else if (why != nullptr) {
            *why = Failure::take(status, error);
        }
        return Status(status);
    }

    [[nodiscard]] kiln_service* handle() const { return handle_; }

  private:
    kiln_service* handle_ = nullptr;
    Failure failure_;
};

}  // namespace KILN_INTERFACE
}  // namespace kiln

// The operators: what Service::supports(), Service::prepare() and Plan take as a problem.
#include "kiln/fused_moe.hpp"
#include "kiln/linear.hpp"
#include "kiln/moe_sort.hpp"
#include "kiln/router.hpp"

#endif  // KILN_KILN_HPP_
