// How many cores there are to share work over.
#pragma once

namespace kiln {

// Cores that this process may run on (its affinity, which a container or taskset narrows), at least 1.
[[nodiscard]] unsigned cores_of_this_process();

}  // namespace kiln
