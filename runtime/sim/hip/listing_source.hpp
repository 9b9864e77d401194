// Where the simulator gets a code object's disassembly: from the cache and its layers, else from the compile
// worker.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::sim::hip {

// Where to look. Empty: what the environment says (KILN_CACHE_DIR, KILN_CACHE_PATH, KILN_WORKER), else the
// usual places.
struct ListingPlaces {
    std::string cache_folder;
    std::string cache_path;  // read-only folders and bundles, ':' between
    std::string worker;
    friend bool operator==(const ListingPlaces&, const ListingPlaces&) = default;
};

// The listing (compile/listing.hpp) of a code object. A worker disassembles each one once: the store keeps it
// under the request
//   {"kind": "listing", "schema": 1, "code_object_sha256": "..."}     (compile/listing_request.hpp)
// and the compiler's identity, so that no worker is needed for one that is kept, there or in a read-only
// folder or a bundle; where there is no compiler or no worker, one that any compiler made is taken. A place
// that can not be opened is done without. Thread safe. The stores and workers of the last few places asked
// for stay open.
[[nodiscard]] Result<std::string> listing_of(ByteView code_object, const ListingPlaces& places);

}  // namespace kiln::sim::hip
