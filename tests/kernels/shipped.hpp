// The specialisations that the shipped tables ask for, compiled by the real compiler: what the tests of this
// folder look at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/operators/specialisation.hpp"

namespace kiln::kernels_test {

// Every bucket of every row that the shipped tables have of an operator for a processor, in their order; of a
// general row, those of its examples. Fails the test on a fault in a table.
std::vector<operators::Specialisation> shipped_specialisations(std::string_view processor,
                                                               std::string_view operator_name = "linear");

// As if a row had asked for it: a shape that no table has.
operators::Specialisation specialise_linear(std::int64_t n, std::int64_t k, std::int64_t max_m,
                                            const tables::Constants& constants,
                                            std::string_view processor = "gfx950");

operators::Pipeline pipeline_for(const operators::Operator& op, const operators::Problem& problem,
                                 const operators::Bucket& bucket, std::string_view processor = "gfx950");
// Of a bucket that has one stage.
operators::Specialisation specialise_shape(const operators::Operator& op, const operators::Problem& problem,
                                           const operators::Bucket& bucket,
                                           std::string_view processor = "gfx950");

// Whether this machine has a compiler for the processor; the reason is printed where it has none.
bool can_build_for(std::string_view processor);

struct Built {
    operators::Specialisation specialisation;
    compile::CompileResult result;

    [[nodiscard]] std::int64_t constant(const char* name) const {
        return specialisation.bucket.constants.find(name)->second;
    }
    [[nodiscard]] std::int64_t field(const char* name) const {
        return std::get<std::int64_t>(specialisation.problem.find(name)->second);
    }
    // Of the code object's only kernel, checked to have the name asked for.
    [[nodiscard]] compile::KernelInfo kernel() const;
    // Of one of several: "gate_up".
    [[nodiscard]] compile::KernelInfo kernel(std::string_view part) const;
};

// Compiled on as many workers as there are cores; in the order of the requests. What another test compiled
// comes out of the folder that KERNEL_TEST_STORE names.
std::vector<Built> build(std::vector<operators::Specialisation> specialisations);

}  // namespace kiln::kernels_test
