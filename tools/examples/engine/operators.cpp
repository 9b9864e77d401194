#include "operators.hpp"

#include <algorithm>

namespace engine {

namespace {

constexpr kiln::Router kRouter{.hidden = kHidden, .experts = kExperts, .top_k = kTopK};
constexpr kiln::MoeSort kSort{.experts = kAllExperts, .slots = kSlots, .block_m = SortedPairs::kBlockM};
constexpr kiln::FusedMoe kFusedMoe{.hidden = kHidden,
                                   .intermediate = kIntermediate,
                                   .experts = kAllExperts,
                                   .slots = kSlots,
                                   .weights = kiln::MoeWeights::mxfp4};

template <class Problem>
kiln::Plan<Problem> prepare(const kiln::Service& service, int device, const Problem& problem) {
    kiln::Plan<Problem> plan = service.prepare(device, problem);
    if (!plan && !plan.failure().status.declined()) {
        throw Error(plan.failure().message);
    }
    return plan;
}

// A plan of an operator that the engine has switched off.
template <class Problem>
kiln::Plan<Problem> none() {
    return kiln::Plan<Problem>(kiln::Failure{kiln::Status(KILN_DECLINE_SWITCHED_OFF), 0, {}});
}

// For every M that the plan covers and the engine has.
template <class Problem>
Buffer make_workspace(const kiln::Plan<Problem>& plan, Gpu& gpu, Stream stream) {
    const std::int64_t bytes = plan ? plan.workspace_bytes(kMostTokens) : 0;
    Buffer space(gpu, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
    kiln::Failure why;
    if (plan && !plan.init_workspace(stream, space.as<void>(), bytes, &why)) {
        throw Error(why.message);
    }
    return space;
}

// Launches kiln's kernel. False where kiln declines: then the engine's own is to run. Valid while the stream
// captures: a decline has enqueued nothing.
template <class Problem>
bool launch(const kiln::Plan<Problem>& plan, Stream stream, std::int64_t m,
            const typename Problem::Args& arguments, const std::string& name, Served& served) {
    const kiln::Status status = plan.launch(stream, m, arguments);
    if (!status && !status.declined()) {
        throw Error(name + ": " + status.text());
    }
    served[name] = status ? plan.kernel_name(m) : std::string("plain: ") + status.text();
    return status.ok();
}

}  // namespace

Routing::Routing(Gpu& gpu)
    : logits(gpu, kMostTokens * kAllExperts * sizeof(float)),
      ids(gpu, kMostTokens * kSlots * sizeof(std::int32_t)),
      weights(gpu, kMostTokens * kSlots * sizeof(float)) {}

Operators::Operators(const kiln::Service& service, int device, const Model& model, Gpu& gpu, Plain& plain,
                     Stream stream)
    : plain_(&plain),
      router_(prepare(service, device, kRouter)),
      sort_(prepare(service, device, kSort)),
      experts_(prepare(service, device, kFusedMoe)),
      router_space_(make_workspace(router_, gpu, stream)),
      sort_space_(make_workspace(sort_, gpu, stream)),
      experts_space_(make_workspace(experts_, gpu, stream)),
      sorted_(gpu) {
    for (const Layer& layer : model.layers) {
        for (const ProjectionWeights* weights : {&layer.in, &layer.out}) {
            const Size size(weights->n, weights->k);
            if (!linear_.contains(size)) {
                linear_.emplace(size,
                                prepare(service, device, kiln::Linear{.n = weights->n, .k = weights->k}));
            }
        }
    }
}

Operators::Operators(Gpu& gpu, Plain& plain)
    : plain_(&plain),
      router_(none<kiln::Router>()),
      sort_(none<kiln::MoeSort>()),
      experts_(none<kiln::FusedMoe>()),
      router_space_(gpu, 1),
      sort_space_(gpu, 1),
      experts_space_(gpu, 1),
      sorted_(gpu) {}

void Operators::linear(Stream stream, std::int64_t m, const ProjectionWeights& weights, const Buffer& x,
                       const Buffer& out, Served& served) const {
    static const auto switched_off = none<kiln::Linear>();
    const auto found = linear_.find(Size(weights.n, weights.k));
    const std::string name = "linear " + std::to_string(weights.n) + "x" + std::to_string(weights.k);
    if (!launch(found != linear_.end() ? found->second : switched_off, stream, m,
                {.x = x.as<void>(),
                 .ldx = weights.k,
                 .w = weights.w.as<void>(),
                 .w_scale = weights.w_scale.as<float>(),
                 .out = out.as<void>()},
                name, served)) {
        plain_->linear(stream, m, weights, x, out);
    }
}

void Operators::route(Stream stream, std::int64_t m, const Layer& layer, const Buffer& x,
                      const Routing& routing, Served& served) const {
    if (!launch(router_, stream, m,
                {.x = x.as<void>(),
                 .ldx = kHidden,
                 .gate = layer.gate.as<void>(),
                 .shared_gate = layer.shared_gate.as<void>(),
                 .ids = routing.ids.as<std::int32_t>(),
                 .weights = routing.weights.as<float>(),
                 .scale = 1,
                 .workspace = router_space_.as<void>()},
                "router", served)) {
        plain_->logits(stream, m, layer, x, routing.logits);
        plain_->choose(stream, m, routing.logits, routing.ids);
        plain_->weigh(stream, m, routing.logits, routing.ids, routing.weights);
    }
}

void Operators::experts(Stream stream, std::int64_t m, const ExpertWeights& weights, const Buffer& x,
                        const Buffer& ids, const Buffer& routing_weights, const Buffer& out,
                        Served& served) const {
    if (launch(experts_, stream, m,
               {.x = x.as<void>(),
                .ldx = kHidden,
                .w13 = weights.w13.as<void>(),
                .w13_scale = weights.w13_scale.as<void>(),
                .w2 = weights.w2.as<void>(),
                .w2_scale = weights.w2_scale.as<void>(),
                .ids = ids.as<std::int32_t>(),
                .weights = routing_weights.as<float>(),
                .out = out.as<void>(),
                .workspace = experts_space_.as<void>()},
               "fused_moe", served)) {
        return;
    }
    // The engine's own experts work on sorted pairs: an operator of kiln's too.
    if (!launch(sort_, stream, m,
                {.ids = ids.as<std::int32_t>(),
                 .weights = routing_weights.as<float>(),
                 .sorted_ids = sorted_.ids.as<std::int32_t>(),
                 .sorted_weights = sorted_.weights.as<float>(),
                 .sorted_expert_ids = sorted_.expert_ids.as<std::int32_t>(),
                 .num_valid = sorted_.num_valid.as<std::int32_t>(),
                 .workspace = sort_space_.as<void>()},
                "moe_sort", served)) {
        plain_->sort(stream, m, ids, sorted_);
    }
    plain_->experts(stream, m, weights, x, sorted_, routing_weights, out);
}

}  // namespace engine
