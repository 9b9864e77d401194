// The template linear/small_m: which constants it takes, and how what it compiles to is launched. The
// contract is kernel_src/linear/README.md.
#pragma once

namespace kiln::operators {

class Template;

[[nodiscard]] const Template& linear_small_m();

}  // namespace kiln::operators
