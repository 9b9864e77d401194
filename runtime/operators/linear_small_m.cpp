#include "runtime/operators/linear_small_m.hpp"

#include <fmt/format.h>

namespace kiln::operators {

namespace {

constexpr std::int64_t kMaxWeightBytes = std::int64_t{1} << 32;

}  // namespace

std::string LinearSmallM::kernel_name(const Problem& problem, const Bucket& bucket) const {
    const auto [n, k] = dimensions(problem);
    return fmt::format("kiln_linear_n{}_k{}_m{}", n, k, bucket.max_m);
}

std::vector<KernelLaunch> LinearSmallM::kernels(const Problem& problem, const Bucket& bucket) const {
    const device::LaunchShape shape = launch_shape(problem, bucket);
    return {{kernel_name(problem, bucket), shape, {.fixed = shape.grid.x}}};
}

std::vector<std::pair<std::string, std::int64_t>> LinearSmallM::constants(const Problem& problem,
                                                                          const Bucket& bucket) const {
    const auto [n, k] = dimensions(problem);
    std::vector<std::pair<std::string, std::int64_t>> all{{"kN", n}, {"kK", k}, {"kMaxM", bucket.max_m}};
    for (const ConstantName& name : constant_names()) {
        all.emplace_back(name.header, constant(bucket, name.row));
    }
    return all;
}

std::vector<tables::RowFault> LinearSmallM::check(const Problem& problem, const Bucket& bucket) const {
    std::vector<tables::RowFault> faults = check_constant_names(*this, bucket, constant_names());
    if (!faults.empty()) {
        return faults;
    }

    // These keep everything that follows within 64 bits, so nothing more is said of a row that breaks one.
    const LinearProblem dimensions = LinearSmallM::dimensions(problem);
    const std::int64_t most_n = (kMaxWeightBytes - 1) / dimensions.k;
    Demands require;
    const bool weights_fit = require(
        dimensions.n <= most_n, "/constants",
        fmt::format("n at most {} where k = {}: weights are reached by 32-bit offsets", most_n, dimensions.k),
        dimensions.n);
    if (require(bucket.max_m <= max_rows(), "/max_m", fmt::format("at most {}", max_rows()), bucket.max_m) &&
        weights_fit) {
        check_constants(dimensions, bucket, require);
    }
    return require.take();
}

}  // namespace kiln::operators
