// Where the simulator gets a code object's disassembly: from the cache, else from the compile worker.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::sim::hip {

// The listing (compile/listing.hpp) of a code object. A worker disassembles each one once: the store keeps it
// under the request
//   {"kind": "listing", "schema": 1, "code_object_sha256": "..."}
// and the compiler's identity, so that no worker is needed for one that is kept. A store that can not be
// opened is done without. Thread safe.
[[nodiscard]] Result<std::string> listing_of(ByteView code_object);

}  // namespace kiln::sim::hip
