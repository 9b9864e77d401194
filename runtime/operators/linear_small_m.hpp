// The template linear/small_m: which constants it takes on each processor, and how what it compiles to is
// launched. The contracts are kernel_src/linear/README.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

inline constexpr std::int64_t kTile = 16;    // rows and columns of a matrix tile
inline constexpr std::int64_t kBlock = 128;  // k that share a scale

[[nodiscard]] const KernelTemplate& linear_small_m_gfx950();
[[nodiscard]] const KernelTemplate& linear_small_m_sm_90a();

// What the processors have in common: the problem, the arguments, the name of the kernel, and that constants
// are a fixed set of numbers. Constant, thread safe.
class LinearSmallM : public KernelTemplate {
  public:
    std::string_view id() const final { return "linear/small_m"; }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const final;

    std::string kernel_name(const Problem& problem, const Bucket& bucket) const final;
    const KernargBlock& kernargs() const final { return linear_kernargs(); }
    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const final;
    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket& bucket) const final;

  protected:
    // In the order in which constants.h lists them.
    [[nodiscard]] virtual std::span<const ConstantName> constant_names() const = 0;
    // The launch of a bucket's only kernel, the same for every M.
    [[nodiscard]] virtual device::LaunchShape launch_shape(const Problem& problem,
                                                           const Bucket& bucket) const = 0;
    // The largest max_m of a bucket.
    [[nodiscard]] virtual std::int64_t max_rows() const = 0;

    // What the constants must satisfy on the processor. They are all there, no others are, the weights stay
    // below 4 GiB and max_m at or below max_rows().
    virtual void check_constants(const LinearProblem& problem, const Bucket& bucket,
                                 Demands& require) const = 0;

    [[nodiscard]] static LinearProblem dimensions(const Problem& problem) {
        return std::get<LinearProblem>(linear().typed(problem));
    }
};

}  // namespace kiln::operators
