// What the service must know of a kernel template: which constants tile a problem, which specialisations a
// launch runs, and how what they compile to is launched.
//
// Most templates are one source and one specialisation (KernelTemplate). Others are pipelines: a launch runs
// the specialisations of several templates, its stages, one after the other. A stage is a specialisation like
// any other, and shared with every bucket, problem and operator that comes to the same one.
//
// Everything here is constant and free to be used from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/mxmoe_bucket.hpp"
#include "runtime/tables/loader.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::operators {

using tables::Bucket;
using tables::Problem;

class KernelTemplate;
class Operator;

// A bucket with its constants resolved, where packing a launch's arguments depends on them.
using TypedBucket = std::variant<std::monostate, MxmoeBucket>;

// What a tuner tries of a template: the combinations of each product, of any of them. A product of nothing is
// one candidate, without constants.
struct ConstantValues {
    std::string_view name;  // in a shape table
    std::vector<std::int64_t> values;
};
using SpaceProduct = std::vector<ConstantValues>;
using Space = std::vector<SpaceProduct>;

// One of the specialisations that a launch of a bucket runs.
struct PipelineStage {
    const KernelTemplate* source = nullptr;
    const Operator* op = nullptr;  // whose problem it is; null: the operator of the bucket's row
    Problem problem;               // complete, as the operator has it
    Bucket bucket;                 // of that problem: what its kernels are made from, and their budget
    // Where its kernels' arguments begin in the block that the row's operator packs.
    std::uint32_t kernarg_offset = 0;
};

// What the bucket of a row may name on one processor. One id may have several, each with constants of its
// own.
class Template {
  public:
    virtual ~Template() = default;

    [[nodiscard]] virtual std::string_view id() const = 0;         // "linear/small_m"
    [[nodiscard]] virtual std::string_view processor() const = 0;  // "gfx950"
    // False: it is only there as a stage, and no row may name it.
    [[nodiscard]] virtual bool serves_rows() const { return true; }

    // What keeps this bucket from serving the problem: constants missing, unknown, out of range, not tiling
    // it. Pointers of the faults start at the bucket: "/constants/tiles_n".
    [[nodiscard]] virtual std::vector<tables::RowFault> check(const Problem& problem,
                                                              const Bucket& bucket) const = 0;
    // Every template that a stage may be of, whatever the problem.
    [[nodiscard]] virtual std::vector<const KernelTemplate*> parts() const = 0;

    // The constants that are worth timing for a bucket that ends at max_m. check() may still refuse some of
    // them. Empty: nothing to tune. Requires a problem that the operator's judge() accepts.
    [[nodiscard]] virtual Space space(const Problem& /*problem*/, std::int64_t /*max_m*/) const { return {}; }

    // The rest requires that check() had nothing to say.

    // "kiln_linear_n5120_k4096_m32": what a person calls it. Of a kernel template it is the symbol of the
    // only kernel, or what those of several begin with.
    [[nodiscard]] virtual std::string kernel_name(const Problem& problem, const Bucket& bucket) const = 0;
    // At least one, in the order in which a launch enqueues them; check() of each has nothing to say.
    [[nodiscard]] virtual std::vector<PipelineStage> stages(const Problem& problem,
                                                            const Bucket& bucket) const = 0;
    // For a launch of m tokens, all stages together.
    [[nodiscard]] virtual WorkspaceNeed workspace(const Problem& /*problem*/, const Bucket& /*bucket*/,
                                                  std::int64_t /*m*/) const {
        return {};
    }
    // Whether two launches with the same input give the same bits.
    [[nodiscard]] virtual bool is_deterministic(const Problem& /*problem*/, const Bucket& /*bucket*/) const {
        return true;
    }
    // What pack() of the operator wants to know of the bucket.
    [[nodiscard]] virtual TypedBucket typed(const Problem& /*problem*/, const Bucket& /*bucket*/) const {
        return {};
    }
};

// A source with constants: what is compiled.
class KernelTemplate : public Template {
  public:
    // What every kernel of it takes.
    [[nodiscard]] virtual const KernargBlock& kernargs() const = 0;
    // At least one, in the order in which a launch enqueues them. The only one has kernel_name() as its
    // symbol; each of several has a kernel_symbol() of it.
    [[nodiscard]] virtual std::vector<KernelLaunch> kernels(const Problem& problem,
                                                            const Bucket& bucket) const = 0;
    // All constants that the source sees, in the order in which constants.h lists them: "kN" -> 5120.
    [[nodiscard]] virtual std::vector<std::pair<std::string, std::int64_t>> constants(
        const Problem& problem, const Bucket& bucket) const = 0;
    // What the compiler is told, target aside.
    [[nodiscard]] virtual std::vector<std::string> options() const = 0;
    // A kernel of one line that needs of the compiler what the template needs: one that refuses it can not
    // build for the target at all, one that takes it has something against the template.
    [[nodiscard]] virtual std::string probe() const = 0;

    // Itself, alone.
    [[nodiscard]] std::vector<const KernelTemplate*> parts() const final { return {this}; }
    [[nodiscard]] std::vector<PipelineStage> stages(const Problem& problem,
                                                    const Bucket& bucket) const final {
        return {{this, nullptr, problem, bucket, 0}};
    }
};

}  // namespace kiln::operators
