#include "runtime/service/linear_trial.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/linear_reference.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/graph_replay.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::service {

namespace {

using device::Device;
using operators::LinearComparison;

constexpr std::uint16_t kNan = 0x7fc1;
constexpr std::byte kCanary{0xa5};
constexpr std::size_t kLeastMargin = 4096;  // bytes, a multiple of what the result must be aligned to

void fault(std::string_view what, TrialResult& result) {
    result.passed = false;
    result.remark += fmt::format("{}{}", result.remark.empty() ? "" : "; ", what);
}

// Every launch of a case computes the same bits.
void note_difference(std::span<const std::uint16_t> expected, std::span<const std::uint16_t> found,
                     std::string_view what, TrialResult& result) {
    const auto differing =
        std::transform_reduce(expected.begin(), expected.end(), found.begin(), std::size_t{0}, std::plus<>(),
                              [](std::uint16_t a, std::uint16_t b) { return std::size_t{a != b}; });
    if (differing > 0) {
        fault(fmt::format("{} differs from the first launch in {} of {}", what, differing, expected.size()),
              result);
    }
}

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
    using Output = std::vector<std::uint16_t>;  // bf16 bits, [m, n]

    // The arrays that depend on M.
    struct Rows {
        DeviceArray x, out;
        std::size_t margin = 0;  // bytes of canaries before the result, and behind it
    };
    [[nodiscard]] Result<Rows> exact_rows(std::int64_t m) const;
    [[nodiscard]] Result<Rows> guarded_rows(std::int64_t m) const;
    [[nodiscard]] Result<void> poison(std::int64_t m, const Rows& rows) const;
    [[nodiscard]] Result<void> launch(std::int64_t m, const Rows& rows, device::Stream stream) const;
    // The result, with its margins.
    [[nodiscard]] Result<Bytes> read(std::int64_t m, const Rows& rows) const;
    // The same, of rows without margins.
    [[nodiscard]] Result<Output> output(std::int64_t m, const Rows& rows) const;

    // 1. and 2. of trial.hpp.
    [[nodiscard]] Result<Output> run_exact(std::int64_t m, TrialResult& result) const;
    // Microseconds of the quickest of a few launches, between events.
    [[nodiscard]] Result<double> time(std::int64_t m, const Rows& rows) const;
    // 3. of trial.hpp.
    [[nodiscard]] Result<void> run_replayed(std::int64_t m, const Output& expected,
                                            TrialResult& result) const;

    [[nodiscard]] std::size_t out_bytes(std::int64_t m) const {
        return static_cast<std::size_t>(m * arrays_.n) * sizeof(std::uint16_t);
    }

    const std::shared_ptr<const Plan> plan_;
    const operators::LinearArrays arrays_;
    const std::vector<double> reference_;
    const DeviceArray w_, w_scale_;
};

Result<LinearTrial::Rows> LinearTrial::exact_rows(std::int64_t m) const {
    const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + arrays_.k);
    Result<DeviceArray> x =
        DeviceArray::upload(plan_->shared_device(), std::as_bytes(std::span(arrays_.x).first(elements)));
    Result<DeviceArray> out = DeviceArray::create(plan_->shared_device(), out_bytes(m));
    if (!x || !out) {
        return fail(!x ? x : out);
    }
    return Rows{*std::move(x), *std::move(out)};
}

Result<LinearTrial::Rows> LinearTrial::guarded_rows(std::int64_t m) const {
    // As many rows as the bucket has at most: what a kernel that pads would read, or write.
    const std::int64_t all = plan_->bucket_for(m)->max_m;
    std::vector<std::uint16_t> values(static_cast<std::size_t>(all * arrays_.ldx), kNan);
    std::copy_n(arrays_.x.begin(), m * arrays_.ldx, values.begin());
    const std::size_t margin = kLeastMargin + out_bytes(all - m);
    const Bytes canaries(2 * margin + out_bytes(m), kCanary);
    Result<DeviceArray> x = DeviceArray::upload(plan_->shared_device(), std::as_bytes(std::span(values)));
    Result<DeviceArray> out = DeviceArray::upload(plan_->shared_device(), canaries);
    if (!x || !out) {
        return fail(!x ? x : out);
    }
    return Rows{*std::move(x), *std::move(out), margin};
}

Result<void> LinearTrial::poison(std::int64_t m, const Rows& rows) const {
    // NaN everywhere: what a launch leaves out shows.
    return plan_->device().fill(static_cast<std::byte*>(rows.out.get()) + rows.margin, std::byte{0xff},
                                out_bytes(m), nullptr);
}

Result<Bytes> LinearTrial::read(std::int64_t m, const Rows& rows) const {
    Bytes bytes(2 * rows.margin + out_bytes(m));
    Result<void> copied = plan_->device().copy_to_host(bytes, rows.out.get(), nullptr);
    return copied ? Result<Bytes>(std::move(bytes)) : fail(copied);
}

Result<LinearTrial::Output> LinearTrial::output(std::int64_t m, const Rows& rows) const {
    Output out(static_cast<std::size_t>(m * arrays_.n));
    Result<void> copied =
        plan_->device().copy_to_host(std::as_writable_bytes(std::span(out)), rows.out.get(), nullptr);
    return copied ? Result<Output>(std::move(out)) : fail(copied);
}

Result<void> LinearTrial::launch(std::int64_t m, const Rows& rows, device::Stream stream) const {
    const kiln_linear_args args{rows.x.get(), arrays_.ldx, w_.get(),
                                static_cast<const float*>(w_scale_.get()),
                                static_cast<std::byte*>(rows.out.get()) + rows.margin};
    const kiln_status status = service::launch<operators::LinearProblem>(*plan_, stream, m, args);
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
                .and_then([&] { return launch(m, rows, nullptr); })
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

Result<LinearTrial::Output> LinearTrial::run_exact(std::int64_t m, TrialResult& result) const {
    Device& device = plan_->device();
    const Result<Rows> rows = exact_rows(m);
    if (!rows) {
        return tl::unexpected<Error>(rows.error());
    }
    const auto launch_and_wait = [&] {
        return poison(m, *rows).and_then([&] { return launch(m, *rows, nullptr); }).and_then([&] {
            return device.synchronize(nullptr);
        });
    };
    if (device.info().simulated) {
        // What ran before is not this launch's.
        const Result<device::ExecutionCounts> counts =
            device.take_counts().and_then([&](const auto&) { return launch_and_wait(); }).and_then([&] {
                return device.take_counts();
            });
        if (!counts) {
            return tl::unexpected<Error>(counts.error());
        }
        result.counts = *counts;
        return output(m, *rows);
    }
    Result<Output> first = launch_and_wait().and_then([&] { return output(m, *rows); });
    if (!first) {
        return first;
    }
    const Result<double> microseconds = poison(m, *rows).and_then([&] { return time(m, *rows); });
    const Result<Output> last = output(m, *rows);
    if (!microseconds || !last) {
        return tl::unexpected<Error>(!microseconds ? microseconds.error() : last.error());
    }
    result.microseconds = *microseconds;
    note_difference(*first, *last, "a later launch", result);
    return first;
}

Result<void> LinearTrial::run_replayed(std::int64_t m, const Output& expected, TrialResult& result) const {
    const Result<Rows> rows = guarded_rows(m);
    if (!rows) {
        return tl::unexpected<Error>(rows.error());
    }
    Device& device = plan_->device();
    const Result<bool> replayed =
        poison(m, *rows).and_then([&] { return device.synchronize(nullptr); }).and_then([&] {
            return replay_recorded(device, [&](device::Stream stream) { return launch(m, *rows, stream); });
        });
    if (!replayed) {
        return tl::unexpected<Error>(replayed.error());
    }
    result.replayed = *replayed;
    if (!*replayed) {
        return {};
    }
    const Result<Bytes> bytes = read(m, *rows);
    if (!bytes) {
        return tl::unexpected<Error>(bytes.error());
    }
    const std::span<const std::byte> all(*bytes);
    const auto is_canary = [](std::byte value) { return value == kCanary; };
    if (!std::ranges::all_of(all.first(rows->margin), is_canary)) {
        fault("the launch writes before the result", result);
    }
    if (!std::ranges::all_of(all.last(rows->margin), is_canary)) {
        fault("the launch writes behind the result", result);
    }
    Output out(expected.size());
    std::memcpy(out.data(), all.data() + rows->margin, out_bytes(m));
    note_difference(expected, out, "a replay from a graph", result);
    return {};
}

Result<TrialResult> LinearTrial::run(std::int64_t m) {
    if (m < 1 || m > arrays_.m) {
        return fail(
            ErrorCode::invalid_argument, Stage::launch,
            fmt::format("expected M from 1 to {}, for which the trial was made, found {}", arrays_.m, m));
    }
    if (Result<void> current = plan_->device().make_current(); !current) {
        return fail(current);
    }
    TrialResult result;
    result.m = m;
    result.bucket = plan_->bucket_for(m);
    result.bound = LinearComparison::kBound;
    result.passed = true;
    const Result<Output> out = run_exact(m, result);
    if (!out) {
        return tl::unexpected<Error>(out.error());
    }
    if (const Result<void> done = run_replayed(m, *out, result); !done) {
        return tl::unexpected<Error>(done.error());
    }
    const LinearComparison comparison = operators::compare_linear(*out, reference_, m, arrays_.n);
    result.error = comparison.error;
    result.passed = result.passed && comparison.passed();
    std::string remark = fmt::format("{} of {} differ", comparison.differing, comparison.outputs);
    if (comparison.too_far > 0) {
        remark += fmt::format(", {} by more than is allowed", comparison.too_far);
    }
    result.remark = result.remark.empty() ? remark : fmt::format("{}; {}", remark, result.remark);
    return result;
}

}  // namespace

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

}  // namespace kiln::service
