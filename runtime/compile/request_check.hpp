// Refuses a compile request that can not be meant, before any worker sees it.
#pragma once

#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile {

// invalid_argument says which part is wrong: a name that would leave the compiler's folder, a text that is
// empty or holds a zero byte (the compiler would see only what stands before it), a target that is no word,
// an option that names one.
[[nodiscard]] Result<void> check_request(const CompileRequest& request);

}  // namespace kiln::compile
