#include <utility>

#include <fmt/format.h>

#include "runtime/api/handles.hpp"

namespace {

using kiln::ErrorCode;
using kiln::Stage;
using kiln::api::check;
using kiln::api::guarded;
using kiln::api::report;
using kiln::operators::Problem;
using kiln::service::PrepareMode;

// The words that tables and the command line have for the values of an enum, in the order of the values.
constexpr const char* kDtypes[] = {nullptr,    "bf16", "fp16", "fp32", "e4m3fn",
                                   "e4m3fnuz", "e5m2", "e2m1", "e8m0"};
constexpr const char* kLayouts[] = {nullptr, "preshuffled", "row_major"};
constexpr const char* kGranularities[] = {nullptr, "block_128x128", "per_tensor", "per_row", "group_32"};

// Sets a field from an enum; 0 leaves it to its default. False for a value that the enum does not have.
template <std::size_t kCount>
bool set_word(Problem& problem, const char* field, const char* const (&words)[kCount], std::int32_t value) {
    if (value < 0 || value >= static_cast<std::int32_t>(kCount)) {
        return false;
    }
    if (value != 0) {
        problem.emplace(field, std::string(words[value]));
    }
    return true;
}

kiln::Result<Problem> to_problem(const kiln_linear* given) {
    kiln_linear linear = KILN_LINEAR_INIT;
    if (given == nullptr || !kiln::api::read_versioned(given, given->struct_size, &linear, sizeof(linear)) ||
        linear.reserved != 0) {
        return kiln::fail(
            ErrorCode::invalid_argument, Stage::configure,
            fmt::format("expected a kiln_linear of {} bytes (KILN_LINEAR_INIT), found {}", sizeof(linear),
                        given == nullptr ? "NULL" : "another, or members that this version does not know"));
    }
    Problem problem;
    problem.emplace("n", linear.n);
    problem.emplace("k", linear.k);
    const bool known = set_word(problem, "x_type", kDtypes, linear.x_type) &&
                       set_word(problem, "w_type", kDtypes, linear.w_type) &&
                       set_word(problem, "w_scale_type", kDtypes, linear.w_scale_type) &&
                       set_word(problem, "out_type", kDtypes, linear.out_type) &&
                       set_word(problem, "w_layout", kLayouts, linear.w_layout) &&
                       set_word(problem, "w_scale_granularity", kGranularities, linear.w_scale_granularity);
    if (!known) {
        return kiln::fail(
            ErrorCode::invalid_argument, Stage::configure,
            "expected values of kiln_dtype, kiln_weight_layout and kiln_scale_granularity, found another");
    }
    problem.emplace("w_scale_strided", std::int64_t{linear.w_scale_strided != 0});
    problem.emplace("x_quantised", std::int64_t{linear.x_quantised != 0});
    problem.emplace("bias", std::int64_t{linear.bias != 0});
    problem.emplace("x_inner_stride", linear.x_inner_stride == 0 ? std::int64_t{1} : linear.x_inner_stride);
    return kiln::operators::complete(kiln::operators::linear(), std::move(problem));
}

}  // namespace

extern "C" {

kiln_status kiln_linear_supports(kiln_service* service, int32_t device, const kiln_linear* problem,
                                 kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        kiln::Result<Problem> asked = to_problem(problem);
        if (!asked) {
            return report({0, std::move(asked.error())}, error);
        }
        const kiln::operators::Operator& op = kiln::operators::linear();
        const auto answer = device == KILN_NO_DEVICE ? service->service->supports(op, *asked)
                                                     : service->service->supports(device, op, *asked);
        return answer ? KILN_OK : report(answer.error(), error);
    });
}

kiln_status kiln_linear_prepare(kiln_service* service, int32_t device, const kiln_linear* problem,
                                const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        if (plan == nullptr) {
            return report(ErrorCode::invalid_argument, Stage::configure,
                          "expected a place for the plan, found NULL", error);
        }
        const kiln::Result<PrepareMode> mode = kiln::api::to_mode(options);
        if (!mode) {
            return report({0, mode.error()}, error);
        }
        kiln::Result<Problem> asked = to_problem(problem);
        if (!asked) {
            return report({0, std::move(asked.error())}, error);
        }
        auto handle = std::make_unique<kiln_plan>();
        auto prepared = service->service->prepare(device, kiln::operators::linear(), *asked, *mode);
        if (!prepared) {
            return report(prepared.error(), error);
        }
        handle->plan = *std::move(prepared);
        *plan = handle.release();
        return KILN_OK;
    });
}

kiln_status kiln_linear_launch(const kiln_plan* plan, void* stream, int64_t m, const kiln_linear_args* args) {
    static constexpr kiln_linear_args kNothing{};  // M = 0 looks at no argument
    if (plan == nullptr || (args == nullptr && m != 0)) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    if (kiln::api::is_of_parent(plan)) [[unlikely]] {
        return -KILN_ERROR_ENVIRONMENT;
    }
    return kiln::service::launch_linear(*plan->plan, stream, m, args != nullptr ? *args : kNothing);
}

}  // extern "C"
