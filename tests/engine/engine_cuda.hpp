// The CUDA driver of a test's own, beyond what every engine does.
#pragma once

#include <cstddef>

#include "tests/engine/library.hpp"

namespace kiln::test::engine {

// libcuda, initialised. The same copy that kiln binds.
const Library& cuda();

// The primary context of a device, retained by this engine at the first call.
void* primary_context(int ordinal);

// A function of a module loaded into the current context; the text is PTX.
void* load_function(const char* ptx, const char* name);

}  // namespace kiln::test::engine
