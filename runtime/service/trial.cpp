#include "runtime/service/trial.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/service/fused_moe_trial.hpp"
#include "runtime/service/graph_replay.hpp"
#include "runtime/service/linear_trial.hpp"
#include "runtime/service/moe_sort_trial.hpp"
#include "runtime/service/router_trial.hpp"

namespace kiln::service {

namespace {

using device::Device;

constexpr std::byte kCanary{0xa5};
constexpr std::size_t kLeastMargin = 4096;  // bytes, a multiple of what any array must be aligned to
constexpr std::int64_t kMostPadding = 64;   // tokens

// Twice a NaN of bf16, one NaN of float32, and an integer that is no index of anything.
constexpr std::array kPadding{std::byte{0xc1}, std::byte{0x7f}, std::byte{0xc1}, std::byte{0x7f}};

std::vector<void*> pointers_of(const std::vector<DeviceArray>& arrays) {
    std::vector<void*> pointers(arrays.size());
    std::ranges::transform(arrays, pointers.begin(), &DeviceArray::get);
    return pointers;
}

// What a launch of one trial writes, between margins of canaries or exact.
struct OutputArray {
    DeviceArray memory;
    TrialOutput what;
    std::size_t margin = 0;

    [[nodiscard]] std::byte* get() const { return static_cast<std::byte*>(memory.get()) + margin; }
};

// The arrays of one launch, and what is done with them.
struct Arrays {
    std::vector<DeviceArray> inputs;
    std::vector<OutputArray> outputs;
};

// One case under way: its results so far, and whatever is wrong with them.
class Run {
  public:
    Run(const Plan& plan, const TrialCase& arrays, std::span<void* const> weights, std::int64_t m,
        std::span<const device::SimulationRules> rules)
        : plan_(plan), case_(arrays), weights_(weights), m_(m), rules_(rules) {
        result_.m = m;
        result_.bucket = plan.bucket_for(m);
        result_.passed = true;
        for (const std::string& complaint : result_.bucket->loaded()->over_budget) {
            fault(complaint);
        }
    }

    Result<TrialResult> finish();

  private:
    void fault(std::string_view what) {
        result_.passed = false;
        result_.remark += fmt::format("{}{}", result_.remark.empty() ? "" : "; ", what);
    }
    // Every launch of a case computes the same bits; where the bucket is not deterministic, right ones.
    void note_difference(const std::vector<Bytes>& found, std::string_view what);

    [[nodiscard]] Result<Arrays> exact() const;
    [[nodiscard]] Result<Arrays> guarded() const;
    [[nodiscard]] Result<void> make_workspace();
    [[nodiscard]] Result<void> poison_scratch() const;
    [[nodiscard]] Result<void> poison(const Arrays& arrays) const;
    [[nodiscard]] Result<void> launch(const Arrays& arrays, device::Stream stream) const;
    [[nodiscard]] Result<void> launch_and_wait(const Arrays& arrays) const;
    [[nodiscard]] Result<std::vector<Bytes>> read(const Arrays& arrays);
    [[nodiscard]] Result<void> check_counters();

    // 1., 2., 3. and 4. of trial.hpp.
    [[nodiscard]] Result<void> run_exact();
    [[nodiscard]] Result<void> run_timed(const Arrays& arrays);
    // Microseconds of the quickest of a few launches, between events.
    [[nodiscard]] Result<double> time(const Arrays& arrays) const;
    [[nodiscard]] Result<void> run_replayed();
    [[nodiscard]] Result<void> run_under_rules();
    [[nodiscard]] Result<void> run_under(const device::SimulationRules& rules, const Arrays& arrays);

    [[nodiscard]] Device& device() const { return plan_.device(); }

    const Plan& plan_;
    const TrialCase& case_;
    const std::span<void* const> weights_;
    const std::int64_t m_;
    const std::span<const device::SimulationRules> rules_;
    std::optional<DeviceArray> workspace_;
    std::int64_t workspace_bytes_ = 0;
    std::vector<Bytes> first_;  // outputs of 1.
    TrialResult result_;
};

void Run::note_difference(const std::vector<Bytes>& found, std::string_view what) {
    if (!result_.bucket->is_deterministic) {
        if (const TrialVerdict verdict = case_.compare(*result_.bucket, m_, found); !verdict.passed) {
            fault(fmt::format("{}: {}", what, verdict.remark));
        }
        return;
    }
    const std::vector<TrialOutput> outputs = case_.outputs(m_);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t step = outputs[i].element_bytes;
        std::size_t differing = 0;
        for (std::size_t at = 0; at + step <= found[i].size(); at += step) {
            differing += std::memcmp(&found[i][at], &first_[i][at], step) != 0 ? 1 : 0;
        }
        if (differing > 0) {
            fault(fmt::format("{}: {} differs from the first launch in {} of {}", outputs[i].name, what,
                              differing, found[i].size() / step));
        }
    }
}

Result<Arrays> Run::exact() const {
    Arrays arrays;
    for (const TrialInput& input : case_.inputs(m_)) {
        Result<DeviceArray> memory = DeviceArray::upload(plan_.shared_device(), input.bytes);
        if (!memory) {
            return fail(memory);
        }
        arrays.inputs.push_back(*std::move(memory));
    }
    for (const TrialOutput& output : case_.outputs(m_)) {
        Result<DeviceArray> memory = DeviceArray::create(plan_.shared_device(), output.bytes);
        if (!memory) {
            return fail(memory);
        }
        arrays.outputs.push_back({*std::move(memory), output});
    }
    return arrays;
}

Result<Arrays> Run::guarded() const {
    // As many tokens as a kernel that pads would read, or write.
    const std::int64_t padding = std::min(result_.bucket->max_m - m_, kMostPadding);
    Arrays arrays;
    for (const TrialInput& input : case_.inputs(m_)) {
        Bytes padded(input.bytes.begin(), input.bytes.end());
        const std::size_t whole = padded.size() + static_cast<std::size_t>(padding) * input.token_bytes;
        while (padded.size() < whole) {
            padded.push_back(kPadding[padded.size() % kPadding.size()]);
        }
        Result<DeviceArray> memory = DeviceArray::upload(plan_.shared_device(), padded);
        if (!memory) {
            return fail(memory);
        }
        arrays.inputs.push_back(*std::move(memory));
    }
    const std::vector<TrialOutput> outputs = case_.outputs(m_);
    const std::vector<TrialOutput> larger = case_.outputs(m_ + padding);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t growth = larger[i].bytes - std::min(larger[i].bytes, outputs[i].bytes);
        const std::size_t margin = kLeastMargin + (growth + kLeastMargin - 1) / kLeastMargin * kLeastMargin;
        const Bytes canaries(2 * margin + outputs[i].bytes, kCanary);
        Result<DeviceArray> memory = DeviceArray::upload(plan_.shared_device(), canaries);
        if (!memory) {
            return fail(memory);
        }
        arrays.outputs.push_back({*std::move(memory), outputs[i], margin});
    }
    return arrays;
}

Result<void> Run::make_workspace() {
    workspace_bytes_ = plan_.workspace_bytes(m_);
    if (workspace_bytes_ == 0) {
        return {};
    }
    Result<DeviceArray> memory =
        DeviceArray::create(plan_.shared_device(), static_cast<std::size_t>(workspace_bytes_));
    if (!memory) {
        return fail(memory);
    }
    workspace_.emplace(*std::move(memory));
    if (!device().info().simulated) {
        if (Result<void> poisoned = poison_scratch(); !poisoned) {
            return poisoned;
        }
    }
    operators::Answer<void> ready = plan_.init_workspace(nullptr, workspace_->get(), workspace_bytes_);
    return ready ? Result<void>() : tl::unexpected(std::move(ready.error().error));
}

Result<void> Run::poison_scratch() const {
    const std::int64_t bytes = workspace_bytes_ - plan_.zeroed_bytes();
    if (bytes <= 0) {
        return {};
    }
    return device().fill(static_cast<std::byte*>(workspace_->get()) + plan_.zeroed_bytes(), std::byte{0xff},
                         static_cast<std::size_t>(bytes), nullptr);
}

Result<void> Run::poison(const Arrays& arrays) const {
    for (const OutputArray& output : arrays.outputs) {
        if (Result<void> filled = device().fill(output.get(), output.what.before, output.what.bytes, nullptr);
            !filled) {
            return filled;
        }
    }
    return {};
}

Result<void> Run::launch(const Arrays& arrays, device::Stream stream) const {
    const std::vector<void*> inputs = pointers_of(arrays.inputs);
    std::vector<void*> outputs(arrays.outputs.size());
    std::ranges::transform(arrays.outputs, outputs.begin(), &OutputArray::get);
    const kiln_status status = case_.launch(
        plan_, stream, m_, {weights_, inputs, outputs, workspace_ ? workspace_->get() : nullptr});
    if (status == KILN_OK) {
        return {};
    }
    const bool is_decline = status > 0;
    return fail(
        is_decline ? ErrorCode::invalid_argument : static_cast<ErrorCode>(-status), Stage::launch,
        fmt::format("launch with M = {} {}", m_,
                    is_decline ? fmt::format("declined: {}", operators::decline_text(status)) : "failed"));
}

Result<void> Run::launch_and_wait(const Arrays& arrays) const {
    return poison(arrays).and_then([&] { return launch(arrays, nullptr); }).and_then([&] {
        return device().synchronize(nullptr);
    });
}

Result<std::vector<Bytes>> Run::read(const Arrays& arrays) {
    std::vector<Bytes> results;
    for (const OutputArray& output : arrays.outputs) {
        Bytes all(2 * output.margin + output.what.bytes);
        if (Result<void> copied = device().copy_to_host(all, output.memory.get(), nullptr); !copied) {
            return fail(copied);
        }
        const auto is_canary = [](std::byte value) { return value == kCanary; };
        const std::span<const std::byte> bytes(all);
        if (!std::ranges::all_of(bytes.first(output.margin), is_canary)) {
            fault(fmt::format("the launch writes before {}", output.what.name));
        }
        if (!std::ranges::all_of(bytes.last(output.margin), is_canary)) {
            fault(fmt::format("the launch writes behind {}", output.what.name));
        }
        const std::span<const std::byte> inner = bytes.subspan(output.margin, output.what.bytes);
        results.emplace_back(inner.begin(), inner.end());
    }
    return results;
}

Result<void> Run::check_counters() {
    if (!workspace_ || plan_.zeroed_bytes() == 0) {
        return {};
    }
    Bytes counters(static_cast<std::size_t>(plan_.zeroed_bytes()));
    if (Result<void> copied = device().copy_to_host(counters, workspace_->get(), nullptr); !copied) {
        return copied;
    }
    const auto first = std::ranges::find_if(counters, [](std::byte value) { return value != std::byte{0}; });
    if (first != counters.end()) {
        fault(fmt::format("the launch leaves the workspace's counters other than zero at byte {}",
                          first - counters.begin()));
    }
    return {};
}

Result<double> Run::time(const Arrays& arrays) const {
    constexpr int kRepeats = 20;
    const Result<device::Event> start = device().create_event();
    const Result<device::Event> stop = device().create_event();
    if (!start || !stop) {
        return tl::unexpected<Error>(!start ? start.error() : stop.error());
    }
    Result<double> best = 0.0;
    for (int i = 0; i < kRepeats && best; ++i) {
        const Result<float> milliseconds =
            device()
                .record(*start, nullptr)
                .and_then([&] { return launch(arrays, nullptr); })
                .and_then([&] { return device().record(*stop, nullptr); })
                .and_then([&] { return device().synchronize(nullptr); })
                .and_then([&] { return device().elapsed_milliseconds(*start, *stop); });
        if (!milliseconds) {
            best = tl::unexpected<Error>(milliseconds.error());
        } else if (i == 0 || *milliseconds * 1e3 < *best) {
            best = *milliseconds * 1e3;
        }
    }
    static_cast<void>(device().destroy_event(*start));
    static_cast<void>(device().destroy_event(*stop));
    return best;
}

Result<void> Run::run_exact() {
    const Result<Arrays> arrays = exact();
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    const bool counts = device().info().simulated;
    Result<void> launched = launch_and_wait(*arrays);
    if (counts && launched) {
        Result<std::vector<device::ExecutionCounts>> launches = device().launch_counts();
        if (!launches) {
            return tl::unexpected<Error>(launches.error());
        }
        result_.launches = *std::move(launches);
        Result<device::ExecutionCounts> taken = device().take_counts();
        if (!taken) {
            return tl::unexpected<Error>(taken.error());
        }
        result_.counts = *taken;
    }
    if (!launched) {
        return launched;
    }
    Result<std::vector<Bytes>> first = read(*arrays);
    if (!first) {
        return fail(first);
    }
    first_ = *std::move(first);
    if (Result<void> checked = check_counters(); !checked) {
        return checked;
    }
    return counts ? Result<void>() : run_timed(*arrays);
}

Result<void> Run::run_timed(const Arrays& arrays) {
    const Result<double> microseconds = poison(arrays).and_then([&] { return time(arrays); });
    if (!microseconds) {
        return tl::unexpected<Error>(microseconds.error());
    }
    result_.microseconds = *microseconds;
    const Result<std::vector<Bytes>> last = read(arrays);
    if (!last) {
        return tl::unexpected<Error>(last.error());
    }
    note_difference(*last, "a later launch");
    return check_counters();
}

Result<void> Run::run_replayed() {
    const Result<Arrays> arrays = guarded();
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    const Result<bool> replayed =
        poison(*arrays)
            .and_then([&] { return workspace_ ? poison_scratch() : Result<void>(); })
            .and_then([&] { return device().synchronize(nullptr); })
            .and_then([&] {
                return replay_recorded(device(),
                                       [&](device::Stream stream) { return launch(*arrays, stream); });
            });
    if (!replayed) {
        return tl::unexpected<Error>(replayed.error());
    }
    result_.replayed = *replayed;
    if (!*replayed) {
        return {};
    }
    const Result<std::vector<Bytes>> results = read(*arrays);
    if (!results) {
        return tl::unexpected<Error>(results.error());
    }
    note_difference(*results, "a replay from a graph");
    return check_counters();
}

Result<void> Run::run_under_rules() {
    if (rules_.empty()) {
        return {};
    }
    const Result<Arrays> arrays = exact();
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    for (const device::SimulationRules& rules : rules_) {
        if (Result<void> done = run_under(rules, *arrays); !done) {
            return fail(
                done.error().code, done.error().stage,
                fmt::format("order {}, scopes {}: {}", rules.order, rules.scopes, done.error().message));
        }
    }
    return device().set_rules(rules_.front());
}

Result<void> Run::run_under(const device::SimulationRules& rules, const Arrays& arrays) {
    // What an earlier launch left there is what this one computes too: a stale read would not show.
    Result<void> launched = device()
                                .set_rules(rules)
                                .and_then([&] { return workspace_ ? poison_scratch() : Result<void>(); })
                                .and_then([&] { return launch_and_wait(arrays); });
    if (!launched) {
        return launched;
    }
    const Result<std::vector<Bytes>> results = read(arrays);
    if (!results) {
        return tl::unexpected<Error>(results.error());
    }
    note_difference(*results, fmt::format("a launch with order {} and scopes {}", rules.order, rules.scopes));
    return check_counters();
}

Result<TrialResult> Run::finish() {
    Result<void> done = make_workspace()
                            .and_then([&]() -> Result<void> {
                                // What ran before is not this case's.
                                if (!device().info().simulated) {
                                    return {};
                                }
                                Result<device::ExecutionCounts> before = device().take_counts();
                                return before ? Result<void>() : fail(before);
                            })
                            .and_then([&] { return run_exact(); })
                            .and_then([&] { return run_replayed(); })
                            .and_then([&] { return run_under_rules(); });
    if (!done) {
        return fail(done);
    }
    const TrialVerdict verdict = case_.compare(*result_.bucket, m_, first_);
    result_.error = verdict.error;
    result_.bound = verdict.bound;
    result_.passed = result_.passed && verdict.passed;
    result_.remark =
        result_.remark.empty() ? verdict.remark : fmt::format("{}; {}", verdict.remark, result_.remark);
    return std::move(result_);
}

}  // namespace

std::unique_ptr<TrialCase> make_case(const operators::TypedProblem& problem, std::int64_t max_m,
                                     std::uint64_t seed) {
    return std::visit([&](const auto& one) { return make_trial_case(one, max_m, seed); }, problem);
}

Result<DeviceArray> load_weights(const std::shared_ptr<Device>& device, const TrialInput& input) {
    if (input.parts.empty()) {
        return DeviceArray::upload(device, input.bytes);
    }
    Result<DeviceArray> memory = DeviceArray::create(device, input.whole_bytes);
    for (const TrialPart& part : input.parts) {
        if (memory) {
            auto* at = static_cast<std::byte*>(memory->get()) + part.offset;
            if (Result<void> copied = device->copy_to_device(at, part.bytes, nullptr); !copied) {
                return fail(copied);
            }
        }
    }
    return memory;
}

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan, std::int64_t max_m,
                                             std::uint64_t seed) {
    std::shared_ptr<const TrialCase> arrays = make_case(plan->typed(), max_m, seed);
    return create(std::move(plan), std::move(arrays));
}

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan,
                                             std::shared_ptr<const TrialCase> arrays) {
    std::vector<DeviceArray> weights;
    for (const TrialInput& input : arrays->weights()) {
        Result<DeviceArray> memory = load_weights(plan->shared_device(), input);
        if (!memory) {
            return fail(memory);
        }
        weights.push_back(*std::move(memory));
    }
    return std::unique_ptr<Trial>(new Trial(std::move(plan), std::move(arrays), std::move(weights)));
}

Result<TrialResult> Trial::run(std::int64_t m, std::span<const device::SimulationRules> rules) {
    if (m < 1 || m > case_->max_m()) {
        return fail(ErrorCode::invalid_argument, Stage::launch,
                    fmt::format("expected M from 1 to {}, for which the trial was made, found {}",
                                case_->max_m(), m));
    }
    if (Result<void> current = plan_->device().make_current(); !current) {
        return fail(current);
    }
    return Run(*plan_, *case_, pointers_of(weights_), m, rules).finish();
}

std::vector<device::SimulationRules> all_rules(std::uint64_t seed) {
    std::vector<device::SimulationRules> rules;
    for (const char* scopes : {"early", "late"}) {
        for (const char* order : {"ascending", "descending"}) {
            rules.push_back({order, scopes, "all"});
        }
        rules.push_back({fmt::format("shuffle:{}", seed), scopes, "all"});
        // What only a narrow window shows wants more than one.
        for (std::uint64_t n = 0; n < 3; ++n) {
            rules.push_back({fmt::format("interleave:{}", seed + n), scopes, "all"});
        }
    }
    return rules;
}

}  // namespace kiln::service
