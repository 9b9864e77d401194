// The request part of the key that a listing is kept under, of whichever compiler it is: written by whoever
// keeps listings, looked for by the simulator.
#pragma once

#include <string>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/digest.hpp"

namespace kiln::compile {

[[nodiscard]] inline std::string listing_request(ByteView code_object) {
    return fmt::format(R"({{"kind":"listing","schema":1,"code_object_sha256":"{}"}})",
                       sha256(code_object).hex());
}

// Metadata of such an entry.
inline constexpr const char* kListingMetadata = R"({"kind":"listing"})";

}  // namespace kiln::compile
