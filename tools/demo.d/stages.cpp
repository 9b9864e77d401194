#include "tools/demo.d/stages.hpp"

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "runtime/operators/linear_reference.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::demo {

namespace {

using service::DeviceArray;

constexpr std::int64_t kMostTokens = 64;

template <class T>
std::vector<T> elements(const Bytes& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

// m rows as a launch finds them: without what lies behind the last one's columns.
Result<std::vector<std::uint16_t>> read_rows(device::Device& device, const Rows& rows, std::int64_t m,
                                             std::int64_t columns) {
    const auto count = static_cast<std::size_t>((m - 1) * rows.stride + columns);
    return download(device, rows.data, count * sizeof(std::uint16_t)).map(elements<std::uint16_t>);
}

// Several results into as many places, or the first error.
struct Take {
    Result<void> done;

    Take& operator()(std::optional<DeviceArray>& place, Result<DeviceArray> array) {
        if (done && array) {
            place.emplace(*std::move(array));
        } else if (done) {
            done = fail(array);
        }
        return *this;
    }
};

template <class T>
Result<DeviceArray> upload(const Stage& stage, const std::vector<T>& values) {
    return DeviceArray::upload(stage.device(), std::as_bytes(std::span(values)));
}

Result<DeviceArray> allocate(const Stage& stage, std::int64_t bytes) {
    return DeviceArray::create(stage.device(), static_cast<std::size_t>(bytes));
}

// For any M of the plan.
Result<DeviceArray> make_workspace(const Stage& stage) {
    const std::int64_t bytes = stage.plan().workspace_bytes(kMostTokens);
    Result<DeviceArray> workspace = allocate(stage, std::max<std::int64_t>(bytes, 1));
    if (workspace) {
        if (auto ready = stage.plan().init_workspace(nullptr, workspace->get(), bytes); !ready) {
            return tl::unexpected(std::move(ready.error().error));
        }
    }
    return workspace;
}

}  // namespace

Result<Bytes> download(device::Device& device, const void* from, std::size_t bytes) {
    Bytes to(bytes);
    Result<void> copied = device.copy_to_host(to, from, nullptr);
    return copied ? Result<Bytes>(std::move(to)) : fail(copied);
}

Result<Stage> Stage::create(service::Service& service, std::string name, const operators::Operator& op,
                            operators::Problem problem) {
    auto plan = service.prepare(0, op, *operators::complete(op, std::move(problem)));
    if (!plan) {
        return tl::unexpected(std::move(plan.error().error));
    }
    return Stage(std::move(name), *std::move(plan));
}

Result<void> Stage::begin() const {
    device::Device& on = plan_->device();
    if (Result<void> current = on.make_current(); !current || !on.info().simulated) {
        return current;
    }
    Result<device::ExecutionCounts> before = on.take_counts();
    return before ? Result<void>() : fail(before);
}

Result<Outcome> Stage::end(std::int64_t m, kiln_status status) const {
    if (status != KILN_OK) {
        return fail(ErrorCode::launch_failed, kiln::Stage::launch,
                    fmt::format("{} with M = {}: {}", name_, m,
                                status > 0 ? operators::decline_text(status) : "the launch failed"));
    }
    device::Device& on = plan_->device();
    if (Result<void> waited = on.synchronize(nullptr); !waited) {
        return fail(waited);
    }
    Outcome outcome{name_, plan_->bucket_for(m)->kernel_name, 0, 0, false, {}};
    if (on.info().simulated) {
        Result<device::ExecutionCounts> counts = on.take_counts();
        if (!counts) {
            return tl::unexpected(std::move(counts.error()));
        }
        outcome.counts = *counts;
    }
    return outcome;
}

Result<Projection> Projection::create(service::Service& service, std::string name, std::int64_t n,
                                      std::int64_t k, std::uint64_t seed) {
    Result<Stage> stage = Stage::create(service, std::move(name), operators::linear(), {{"n", n}, {"k", k}});
    if (!stage) {
        return fail(stage);
    }
    Projection made(*std::move(stage), n, k, seed);
    const operators::LinearArrays arrays = operators::make_linear_case(1, n, k, seed);
    Take take;
    take(made.w_, upload(made.stage_, arrays.w))(made.w_scale_, upload(made.stage_, arrays.w_scale))(
        made.out_, allocate(made.stage_, kMostTokens * n * 2));
    return take.done ? Result<Projection>(std::move(made)) : fail(take.done);
}

Result<Outcome> Projection::run(std::int64_t m, const Rows& x) {
    Result<Outcome> outcome = stage_.run(m, [&] {
        return service::launch<operators::LinearProblem>(
            stage_.plan(), nullptr, m,
            kiln_linear_args{x.data, x.stride, w_->get(), static_cast<const float*>(w_scale_->get()),
                             out_->get()});
    });
    if (!outcome) {
        return outcome;
    }
    device::Device& device = *stage_.device();
    Result<std::vector<std::uint16_t>> input = read_rows(device, x, m, k_);
    Result<Bytes> output = download(device, out_->get(), static_cast<std::size_t>(m * n_) * 2);
    if (!input || !output) {
        return tl::unexpected(!input ? input.error() : output.error());
    }
    operators::LinearArrays arrays = operators::make_linear_case(1, n_, k_, seed_);
    arrays.m = m;
    arrays.ldx = x.stride;
    arrays.x = *std::move(input);
    const auto comparison = operators::compare_linear(elements<std::uint16_t>(*output),
                                                      operators::linear_reference(arrays), m, n_);
    outcome->error = comparison.error;
    outcome->bound = operators::LinearComparison::kBound;
    outcome->passed = comparison.passed();
    return outcome;
}

Result<Router> Router::create(service::Service& service, const operators::RouterProblem& problem,
                              std::uint64_t seed) {
    const auto [hidden, experts, top_k, shared] = problem;
    Result<Stage> stage =
        Stage::create(service, "router", operators::router(),
                      {{"hidden", hidden}, {"experts", experts}, {"top_k", top_k}, {"shared", shared}});
    if (!stage) {
        return fail(stage);
    }
    Router made(*std::move(stage), operators::make_router_case(1, hidden, experts, top_k, shared, seed));
    const std::int64_t results = kMostTokens * problem.columns();
    Take take;
    take(made.gate_, upload(made.stage_, made.arrays_.gate))(made.shared_gate_,
                                                             upload(made.stage_, made.arrays_.shared_gate))(
        made.ids_, allocate(made.stage_, results * 4))(made.weights_, allocate(made.stage_, results * 4))(
        made.workspace_, make_workspace(made.stage_));
    return take.done ? Result<Router>(std::move(made)) : fail(take.done);
}

Result<Outcome> Router::run(std::int64_t m, const Rows& x) {
    kiln_router_args args{};
    args.x = x.data;
    args.ldx = x.stride;
    args.gate = gate_->get();
    args.shared_gate = shared_gate_->get();
    args.ids = static_cast<std::int32_t*>(ids_->get());
    args.weights = static_cast<float*>(weights_->get());
    args.scale = arrays_.scale;
    args.workspace = workspace_->get();
    Result<Outcome> outcome = stage_.run(
        m, [&] { return service::launch<operators::RouterProblem>(stage_.plan(), nullptr, m, args); });
    if (!outcome) {
        return outcome;
    }
    device::Device& device = *stage_.device();
    const auto bytes = static_cast<std::size_t>(m * arrays_.columns()) * 4;
    Result<std::vector<std::uint16_t>> input = read_rows(device, x, m, arrays_.hidden);
    Result<Bytes> ids = download(device, ids_->get(), bytes);
    Result<Bytes> weights = download(device, weights_->get(), bytes);
    if (!input || !ids || !weights) {
        return tl::unexpected(!input ? input.error() : !ids ? ids.error() : weights.error());
    }
    arrays_.m = m;
    arrays_.ldx = x.stride;
    arrays_.x = *std::move(input);
    const auto comparison =
        operators::compare_router(elements<std::int32_t>(*ids), elements<float>(*weights),
                                  operators::router_reference(arrays_), m, arrays_.columns());
    outcome->error = comparison.error;
    outcome->bound = operators::RouterComparison::kBound;
    outcome->passed = comparison.passed();
    return outcome;
}

Result<FusedMoe> FusedMoe::create(service::Service& service, const operators::FusedMoeProblem& problem,
                                  std::uint64_t seed) {
    Result<Stage> stage = Stage::create(service, "fused_moe", operators::fused_moe(),
                                        {{"hidden", problem.hidden},
                                         {"intermediate", problem.intermediate},
                                         {"experts", problem.experts},
                                         {"slots", problem.slots},
                                         {"weights", std::string(problem.fp8 ? "fp8" : "mxfp4")}});
    if (!stage) {
        return fail(stage);
    }
    operators::FusedMoeArrays arrays;
    arrays.problem = problem;
    arrays.seed = seed;
    FusedMoe made(*std::move(stage), std::move(arrays));
    const operators::FusedMoeBytes bytes = operators::fused_moe_bytes(problem);
    const auto room = [&](std::size_t count) {
        return allocate(made.stage_, static_cast<std::int64_t>(count));
    };
    Take take;
    take(made.w13_, room(bytes.w13))(made.w13_scale_, room(bytes.w13_scale))(made.w2_, room(bytes.w2))(
        made.w2_scale_, room(bytes.w2_scale))(
        made.out_, allocate(made.stage_, kMostTokens * problem.hidden * 2))(made.workspace_,
                                                                            make_workspace(made.stage_));
    return take.done ? Result<FusedMoe>(std::move(made)) : fail(take.done);
}

// Of the experts that arrays_.ids name, those that are not there yet.
Result<void> FusedMoe::load_experts() {
    std::set<std::int32_t> known;
    for (const auto& [id, expert] : arrays_.experts) {
        known.insert(id);
    }
    operators::add_experts(arrays_);
    for (const auto& [id, expert] : arrays_.experts) {
        if (known.contains(id)) {
            continue;
        }
        const std::pair<const std::vector<std::uint8_t>*, const DeviceArray*> parts[] = {
            {&expert.w13, &*w13_},
            {&expert.w13_scale, &*w13_scale_},
            {&expert.w2, &*w2_},
            {&expert.w2_scale, &*w2_scale_}};
        for (const auto& [bytes, array] : parts) {
            auto* at = static_cast<std::byte*>(array->get()) + static_cast<std::size_t>(id) * bytes->size();
            if (Result<void> copied =
                    stage_.device()->copy_to_device(at, std::as_bytes(std::span(*bytes)), nullptr);
                !copied) {
                return copied;
            }
        }
    }
    return {};
}

Result<Outcome> FusedMoe::run(std::int64_t m, const Rows& x, const Router& router) {
    device::Device& device = *stage_.device();
    const std::int64_t hidden = arrays_.problem.hidden;
    const auto pairs = static_cast<std::size_t>(m * arrays_.problem.slots);
    Result<std::vector<std::uint16_t>> input = read_rows(device, x, m, hidden);
    Result<Bytes> ids = download(device, router.ids(), pairs * 4);
    Result<Bytes> weights = download(device, router.weights(), pairs * 4);
    if (!input || !ids || !weights) {
        return tl::unexpected(!input ? input.error() : !ids ? ids.error() : weights.error());
    }
    arrays_.m = m;
    arrays_.ldx = x.stride;
    arrays_.x = *std::move(input);
    arrays_.ids = elements<std::int32_t>(*ids);
    arrays_.weights = elements<float>(*weights);
    if (Result<void> loaded = load_experts(); !loaded) {
        return fail(loaded);
    }
    kiln_fused_moe_args args{};
    args.x = x.data;
    args.ldx = x.stride;
    args.w13 = w13_->get();
    args.w13_scale = w13_scale_->get();
    args.w2 = w2_->get();
    args.w2_scale = w2_scale_->get();
    args.ids = static_cast<const std::int32_t*>(router.ids());
    args.weights = static_cast<const float*>(router.weights());
    args.out = out_->get();
    args.workspace = workspace_->get();
    Result<Outcome> outcome = stage_.run(
        m, [&] { return service::launch<operators::FusedMoeProblem>(stage_.plan(), nullptr, m, args); });
    if (!outcome) {
        return outcome;
    }
    Result<Bytes> output = download(device, out_->get(), static_cast<std::size_t>(m * hidden) * 2);
    if (!output) {
        return tl::unexpected(output.error());
    }
    const auto comparison = operators::compare_fused_moe(elements<std::uint16_t>(*output),
                                                         operators::fused_moe_reference(arrays_), m, hidden);
    outcome->error = comparison.error;
    outcome->bound = operators::FusedMoeComparison::kBound;
    outcome->passed = comparison.passed();
    return outcome;
}

}  // namespace kiln::demo
