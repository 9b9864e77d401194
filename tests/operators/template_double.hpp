// A template of two kernels that need a workspace, which follow the number of tokens differently.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::test {

class TemplateDouble final : public operators::KernelTemplate {
  public:
    std::string_view id() const override { return "linear/double"; }
    std::string_view processor() const override { return "gfx950"; }
    std::vector<tables::RowFault> check(const operators::Problem&, const operators::Bucket&) const override {
        return {};
    }
    std::string kernel_name(const operators::Problem&, const operators::Bucket& bucket) const override {
        return "kiln_double_m" + std::to_string(bucket.max_m);
    }
    std::vector<operators::KernelLaunch> kernels(const operators::Problem& problem,
                                                 const operators::Bucket& bucket) const override {
        const std::string name = kernel_name(problem, bucket);
        return {{operators::kernel_symbol(name, "first"),
                 {{1, 2, 1}, {64, 1, 1}, 0},
                 {.fixed = 3, .per_step = 2, .step = 4, .per_token = 10}},
                {operators::kernel_symbol(name, "second"), {{1, 1, 1}, {256, 1, 1}, 512}, {.fixed = 7}}};
    }
    // A bucket of up to 4 tokens needs nothing.
    operators::WorkspaceNeed workspace(const operators::Problem&, const operators::Bucket& bucket,
                                       std::int64_t m) const override {
        return bucket.max_m <= 4 ? operators::WorkspaceNeed{} : operators::WorkspaceNeed{260, 100 * m};
    }
    std::vector<std::pair<std::string, std::int64_t>> constants(const operators::Problem&,
                                                                const operators::Bucket&) const override {
        return {{"kN", 16}};
    }
    const operators::KernargBlock& kernargs() const override { return operators::linear_kernargs(); }
    std::vector<std::string> options() const override { return {"-O3"}; }
    std::string probe() const override { return {}; }
};

}  // namespace kiln::test
