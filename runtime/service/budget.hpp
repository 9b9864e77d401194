// Whether compiled kernels keep to what their row allows them.
#pragma once

#include <string>
#include <vector>

#include "runtime/compile/code_object.hpp"
#include "runtime/operators/specialisation.hpp"

namespace kiln::service {

// What the kernels of a specialisation do not keep to, a sentence each: the budget of its bucket, and that no
// kernel has scratch memory or spilled registers. Waves per SIMD are only known of AMD's processors.
[[nodiscard]] std::vector<std::string> over_budget(const operators::Specialisation& specialisation,
                                                   const compile::CodeObject& code_object);

}  // namespace kiln::service
