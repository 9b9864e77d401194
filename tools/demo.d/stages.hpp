// The stages of a decode layer that kiln serves: each launched on arrays of the device, then compared with
// the float64 reference of the very input that it found there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/operators/router_reference.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/service.hpp"

namespace kiln::demo {

// bf16 rows on the device.
struct Rows {
    const void* data = nullptr;
    std::int64_t stride = 0;  // elements
};

// How a stage went.
struct Outcome {
    std::string stage;   // "in_proj"
    std::string kernel;  // the symbol, or what those of several begin with
    double error = 0;    // in the operator's own measure
    double bound = 0;
    bool passed = false;
    std::optional<device::ExecutionCounts> counts;  // on a device that counts
};

// What every stage needs: a plan on the device, and memory. Not thread safe.
class Stage {
  public:
    // Compiles, or takes from the cache, what the tables say for the problem.
    [[nodiscard]] static Result<Stage> create(service::Service& service, std::string name,
                                              const operators::Operator& op, operators::Problem problem);

    [[nodiscard]] const service::Plan& plan() const { return *plan_; }
    [[nodiscard]] const std::shared_ptr<device::Device>& device() const { return plan_->shared_device(); }

    // Waits for what `launch` enqueues; the outcome but for its comparison.
    template <class Launch>
    [[nodiscard]] Result<Outcome> run(std::int64_t m, const Launch& launch) const {
        if (Result<void> begun = begin(); !begun) {
            return fail(begun);
        }
        return end(m, launch());
    }

  private:
    Stage(std::string name, std::shared_ptr<const service::Plan> plan)
        : name_(std::move(name)), plan_(std::move(plan)) {}

    [[nodiscard]] Result<void> begin() const;
    [[nodiscard]] Result<Outcome> end(std::int64_t m, kiln_status status) const;

    std::string name_;
    std::shared_ptr<const service::Plan> plan_;
};

// A projection with weights of its own.
class Projection {
  public:
    [[nodiscard]] static Result<Projection> create(service::Service& service, std::string name,
                                                   std::int64_t n, std::int64_t k, std::uint64_t seed);
    // Of the first k columns of m rows.
    [[nodiscard]] Result<Outcome> run(std::int64_t m, const Rows& x);
    [[nodiscard]] Rows result() const { return {out_->get(), n_}; }

  private:
    Projection(Stage stage, std::int64_t n, std::int64_t k, std::uint64_t seed)
        : stage_(std::move(stage)), n_(n), k_(k), seed_(seed) {}

    Stage stage_;
    std::int64_t n_, k_;
    std::uint64_t seed_;
    std::optional<service::DeviceArray> w_, w_scale_, out_;
};

// The gate with its shared expert.
class Router {
  public:
    [[nodiscard]] static Result<Router> create(service::Service& service,
                                               const operators::RouterProblem& problem, std::uint64_t seed);
    [[nodiscard]] Result<Outcome> run(std::int64_t m, const Rows& x);
    [[nodiscard]] const void* ids() const { return ids_->get(); }
    [[nodiscard]] const void* weights() const { return weights_->get(); }

  private:
    Router(Stage stage, operators::RouterArrays arrays)
        : stage_(std::move(stage)), arrays_(std::move(arrays)) {}

    Stage stage_;
    operators::RouterArrays arrays_;
    std::optional<service::DeviceArray> gate_, shared_gate_, ids_, weights_, workspace_;
};

// The experts. Of their weights, hundreds of megabytes, the device is given those that the router chose.
class FusedMoe {
  public:
    [[nodiscard]] static Result<FusedMoe> create(service::Service& service,
                                                 const operators::FusedMoeProblem& problem,
                                                 std::uint64_t seed);
    [[nodiscard]] Result<Outcome> run(std::int64_t m, const Rows& x, const Router& router);

  private:
    FusedMoe(Stage stage, operators::FusedMoeArrays arrays)
        : stage_(std::move(stage)), arrays_(std::move(arrays)) {}

    [[nodiscard]] Result<void> load_experts();

    Stage stage_;
    operators::FusedMoeArrays arrays_;
    std::optional<service::DeviceArray> w13_, w13_scale_, w2_, w2_scale_, out_, workspace_;
};

// So many bytes of the device's memory.
[[nodiscard]] Result<Bytes> download(device::Device& device, const void* from, std::size_t bytes);

}  // namespace kiln::demo
