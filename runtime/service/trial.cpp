#include "runtime/service/trial.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/linear_reference.hpp"
#include "runtime/service/device_array.hpp"

namespace kiln::service {

namespace {

using device::Device;
using operators::LinearComparison;

class LinearTrial final : public Trial {
  public:
    LinearTrial(std::shared_ptr<const Plan> plan, operators::LinearArrays arrays, DeviceArray w,
                DeviceArray w_scale)
        : plan_(std::move(plan)),
          arrays_(std::move(arrays)),
          reference_(operators::linear_reference(arrays_)),
          w_(std::move(w)),
          w_scale_(std::move(w_scale)) {}

    Result<TrialResult> run(std::int64_t m) override;

  private:
    // The arrays that depend on M, exactly as large as M makes them.
    struct Rows {
        DeviceArray x, out;
    };
    [[nodiscard]] Result<Rows> make_rows(std::int64_t m) const;
    [[nodiscard]] Result<void> launch(std::int64_t m, const Rows& rows) const;
    // Microseconds of the quickest of a few launches, between events.
    [[nodiscard]] Result<double> time(std::int64_t m, const Rows& rows) const;

    const std::shared_ptr<const Plan> plan_;
    const operators::LinearArrays arrays_;
    const std::vector<double> reference_;
    const DeviceArray w_, w_scale_;
};

Result<LinearTrial::Rows> LinearTrial::make_rows(std::int64_t m) const {
    const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + arrays_.k);
    const std::size_t out_bytes = static_cast<std::size_t>(m * arrays_.n) * sizeof(std::uint16_t);
    Result<DeviceArray> x =
        DeviceArray::upload(plan_->shared_device(), std::as_bytes(std::span(arrays_.x).first(elements)));
    Result<DeviceArray> out = DeviceArray::create(plan_->shared_device(), out_bytes);
    if (!x || !out) {
        return fail(!x ? x : out);
    }
    // NaN everywhere: what a launch leaves out shows.
    if (Result<void> filled = plan_->device().fill(out->get(), std::byte{0xff}, out_bytes, nullptr);
        !filled) {
        return fail(filled);
    }
    return Rows{*std::move(x), *std::move(out)};
}

Result<void> LinearTrial::launch(std::int64_t m, const Rows& rows) const {
    const kiln_linear_args args{rows.x.get(), arrays_.ldx, w_.get(),
                                static_cast<const float*>(w_scale_.get()), rows.out.get()};
    const kiln_status status = launch_linear(*plan_, nullptr, m, args);
    if (status == KILN_OK) {
        return {};
    }
    const bool is_decline = status > 0;
    return fail(
        is_decline ? ErrorCode::invalid_argument : static_cast<ErrorCode>(-status), Stage::launch,
        fmt::format("launch with M = {} {}", m,
                    is_decline ? fmt::format("declined: {}", operators::decline_text(status)) : "failed"));
}

Result<double> LinearTrial::time(std::int64_t m, const Rows& rows) const {
    Device& device = plan_->device();
    constexpr int kRepeats = 20;
    const Result<device::Event> start = device.create_event();
    const Result<device::Event> stop = device.create_event();
    if (!start || !stop) {
        return tl::unexpected<Error>(!start ? start.error() : stop.error());
    }
    Result<double> best = 0.0;
    for (int i = 0; i < kRepeats && best; ++i) {
        const Result<float> milliseconds =
            device.record(*start, nullptr)
                .and_then([&] { return launch(m, rows); })
                .and_then([&] { return device.record(*stop, nullptr); })
                .and_then([&] { return device.synchronize(nullptr); })
                .and_then([&] { return device.elapsed_milliseconds(*start, *stop); });
        if (!milliseconds) {
            best = tl::unexpected<Error>(milliseconds.error());
        } else if (i == 0 || *milliseconds * 1e3 < *best) {
            best = *milliseconds * 1e3;
        }
    }
    static_cast<void>(device.destroy_event(*start));
    static_cast<void>(device.destroy_event(*stop));
    return best;
}

Result<TrialResult> LinearTrial::run(std::int64_t m) {
    if (m < 1 || m > arrays_.m) {
        return fail(
            ErrorCode::invalid_argument, Stage::launch,
            fmt::format("expected M from 1 to {}, for which the trial was made, found {}", arrays_.m, m));
    }
    Device& device = plan_->device();
    if (Result<void> current = device.make_current(); !current) {
        return fail(current);
    }
    const Result<Rows> rows = make_rows(m);
    if (!rows) {
        return tl::unexpected<Error>(rows.error());
    }
    TrialResult result;
    if (device.info().simulated) {
        // What ran before is not this launch's.
        const Result<device::ExecutionCounts> counts =
            device.take_counts()
                .and_then([&](const auto&) { return launch(m, *rows); })
                .and_then([&] { return device.synchronize(nullptr); })
                .and_then([&] { return device.take_counts(); });
        if (!counts) {
            return tl::unexpected<Error>(counts.error());
        }
        result.counts = *counts;
    } else {
        const Result<double> microseconds = time(m, *rows);
        if (!microseconds) {
            return tl::unexpected<Error>(microseconds.error());
        }
        result.microseconds = *microseconds;
    }
    std::vector<std::uint16_t> out(static_cast<std::size_t>(m * arrays_.n));
    if (Result<void> copied =
            device.copy_to_host(std::as_writable_bytes(std::span(out)), rows->out.get(), nullptr);
        !copied) {
        return fail(copied);
    }
    const LinearComparison comparison = operators::compare_linear(out, reference_, m, arrays_.n);
    result.m = m;
    result.bucket = plan_->bucket_for(m);
    result.error = comparison.error;
    result.bound = LinearComparison::kBound;
    result.passed = comparison.passed();
    result.remark = comparison.too_far > 0
                        ? fmt::format("{} of {} differ, {} by more than is allowed", comparison.differing,
                                      comparison.outputs, comparison.too_far)
                        : fmt::format("{} of {} differ", comparison.differing, comparison.outputs);
    return result;
}

Result<std::unique_ptr<Trial>> make_linear_trial(std::shared_ptr<const Plan> plan, std::int64_t max_m,
                                                 std::uint64_t seed) {
    const auto [n, k] = std::get<operators::LinearProblem>(plan->typed());
    operators::LinearArrays arrays = operators::make_linear_case(max_m, n, k, seed);
    Result<DeviceArray> w = DeviceArray::upload(plan->shared_device(), std::as_bytes(std::span(arrays.w)));
    Result<DeviceArray> w_scale =
        DeviceArray::upload(plan->shared_device(), std::as_bytes(std::span(arrays.w_scale)));
    if (!w || !w_scale) {
        return fail(!w ? w : w_scale);
    }
    return std::make_unique<LinearTrial>(std::move(plan), std::move(arrays), *std::move(w),
                                         *std::move(w_scale));
}

}  // namespace

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan, std::int64_t max_m,
                                             std::uint64_t seed) {
    if (std::holds_alternative<operators::LinearProblem>(plan->typed())) {
        return make_linear_trial(std::move(plan), max_m, seed);
    }
    return fail(ErrorCode::internal, Stage::configure, fmt::format("{} has no trial", plan->op().name()));
}

}  // namespace kiln::service
