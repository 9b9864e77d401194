#pragma once

namespace kiln::test {

// An engine whose own kernel writes where nothing is: the context is lost for the rest of the process. What
// kiln says of that, and that it blames none of its own kernels. Returns what the process ends with.
int run_faults();

}  // namespace kiln::test
