// kiln's operators with the engine's own kernels behind them: what kiln declines runs plain.
//
// Everything that is decided when a model is loaded is decided here: one plan for each problem of the model,
// a workspace for each plan that wants one. Nothing changes afterwards; after an edit of the tables the
// engine makes another Operators, and keeps this one for as long as a graph has captured its launches.
#pragma once

#include <cstdint>
#include <kiln/kiln.hpp>
#include <map>
#include <string>
#include <utility>

#include "gpu.hpp"
#include "model.hpp"
#include "plain.hpp"

namespace engine {

// What served an operator: the kernel's name, or "plain: " and kiln's reason to decline.
using Served = std::map<std::string, std::string>;

// What a router made of m tokens, in memory of the device.
struct Routing {
    Buffer logits, ids, weights;  // [M, kAllExperts] (of the plain path alone), [M, kSlots], [M, kSlots]

    explicit Routing(Gpu& gpu);
};

class Operators {
  public:
    // Plans by the service for a device, every kernel that they need loaded. A problem that kiln declines has
    // an empty plan, which declines every launch with the same reason. Throws where kiln fails.
    Operators(const kiln::Service& service, int device, const Model& model, Gpu& gpu, Plain& plain,
              Stream stream);
    // No plans: all-plain.
    Operators(Gpu& gpu, Plain& plain);

    // Each enqueues its operator for m rows; `served` says by what.
    void linear(Stream stream, std::int64_t m, const ProjectionWeights& weights, const Buffer& x,
                const Buffer& out, Served& served) const;
    void route(Stream stream, std::int64_t m, const Layer& layer, const Buffer& x, const Routing& routing,
               Served& served) const;
    void experts(Stream stream, std::int64_t m, const ExpertWeights& weights, const Buffer& x,
                 const Buffer& ids, const Buffer& routing_weights, const Buffer& out, Served& served) const;

  private:
    using Size = std::pair<std::int64_t, std::int64_t>;  // n, k

    Plain* plain_;
    std::map<Size, kiln::Plan<kiln::Linear>> linear_;
    kiln::Plan<kiln::Router> router_;
    kiln::Plan<kiln::MoeSort> sort_;
    kiln::Plan<kiln::FusedMoe> experts_;
    Buffer router_space_, sort_space_, experts_space_;
    SortedPairs sorted_;
};

}  // namespace engine
