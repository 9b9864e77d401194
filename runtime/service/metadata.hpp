// The JSON that stands beside a code object in its cache entry: what `kiln show --meta` prints. No
// lookup and no load depends on it: those look at the code object.
//
//   {"kernel": "kiln_linear_n5120_k4096_m32", "operator": "linear", "problem": {...}, "max_m": 32,
//    "template": "linear/small_m", "constants": {...}, "target": "gfx950", "options": [...],
//    "vgprs": 81, "agprs": 4, "sgprs": 40, "lds_bytes": 32768, "scratch_bytes": 0, "vgpr_spills": 0,
//    "sgpr_spills": 0, "max_threads": 1024, "kernarg_bytes": 40, "arguments": [{"name", "offset", "size",
//    "kind"}, ...], "code_bytes": 5120, "compile_seconds": 0.2}
//
// Of a template with several kernels "kernel" is what their symbols begin with, and "kernels" lists for each
// what stands from "vgprs" to "arguments" otherwise, with its symbol as "kernel".
//
// Of a cubin "registers" (of a thread), "shared_bytes" (static), "stack_bytes" (of a thread) and "cluster"
// (the work-groups that the source demands) stand for "vgprs" to "sgpr_spills", and its arguments have an
// offset and a size alone: a cubin holds neither their names nor their kinds.
#pragma once

#include <string>

#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/operators/specialisation.hpp"

namespace kiln::service {

[[nodiscard]] std::string describe_artifact(const operators::Specialisation& specialisation,
                                            const compile::CodeObject& code_object, double compile_seconds);

// The kernarg ABI: every kernel exists, and the names (of a cubin, which has none, only the rest), offsets
// and sizes of its explicit arguments are those that the plan packs. load_failed names the first difference.
[[nodiscard]] Result<void> check_kernel_abi(const operators::Specialisation& specialisation,
                                            const compile::CodeObject& code_object);

}  // namespace kiln::service
