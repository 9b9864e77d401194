#include "runtime/service/trial_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/service/graph_replay.hpp"

namespace kiln::service {

TrialRun::TrialRun(const Plan& plan, const TrialCase& arrays, std::span<void* const> weights, std::int64_t m,
                   std::span<const device::SimulationRules> rules)
    : plan_(plan), case_(arrays), weights_(weights), m_(m), rules_(rules) {
    result_.m = m;
    result_.bucket = plan.bucket_for(m);
    result_.passed = true;
    for (const std::string& complaint : result_.bucket->loaded()->over_budget) {
        fault(complaint);
    }
}

void TrialRun::fault(std::string_view what) {
    result_.passed = false;
    result_.remark += fmt::format("{}{}", result_.remark.empty() ? "" : "; ", what);
}

void TrialRun::note_difference(const std::vector<Bytes>& found, std::string_view what) {
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

Result<void> TrialRun::make_workspace() {
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

Result<void> TrialRun::poison_scratch() const {
    const std::int64_t bytes = workspace_bytes_ - plan_.zeroed_bytes();
    if (bytes <= 0) {
        return {};
    }
    return device().fill(static_cast<std::byte*>(workspace_->get()) + plan_.zeroed_bytes(), std::byte{0xff},
                         static_cast<std::size_t>(bytes), nullptr);
}

Result<void> TrialRun::launch(const TrialArrays& arrays, device::Stream stream) const {
    const std::vector<void*> inputs = arrays.inputs();
    const std::vector<void*> outputs = arrays.outputs();
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

Result<void> TrialRun::launch_and_wait(const TrialArrays& arrays) const {
    return arrays.poison(device()).and_then([&] { return launch(arrays, nullptr); }).and_then([&] {
        return device().synchronize(nullptr);
    });
}

Result<std::vector<Bytes>> TrialRun::read(const TrialArrays& arrays) {
    return arrays.read(device(), [this](const std::string& what) { fault(what); });
}

Result<void> TrialRun::check_counters() {
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

Result<double> TrialRun::time(const TrialArrays& arrays) const {
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

Result<void> TrialRun::run_exact() {
    const Result<TrialArrays> arrays = TrialArrays::exact(plan_, case_, m_);
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

Result<void> TrialRun::run_timed(const TrialArrays& arrays) {
    const Result<double> microseconds = arrays.poison(device()).and_then([&] { return time(arrays); });
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

Result<void> TrialRun::run_replayed() {
    const Result<TrialArrays> arrays = TrialArrays::guarded(plan_, case_, m_, result_.bucket->max_m);
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    const Result<bool> replayed =
        arrays->poison(device())
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

Result<void> TrialRun::run_under_rules() {
    if (rules_.empty()) {
        return {};
    }
    const Result<TrialArrays> arrays = TrialArrays::exact(plan_, case_, m_);
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

Result<void> TrialRun::run_under(const device::SimulationRules& rules, const TrialArrays& arrays) {
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

Result<TrialResult> TrialRun::finish() {
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

}  // namespace kiln::service
