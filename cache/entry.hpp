// One cache entry: what it holds, and how that stands in a file. (The grammar belongs here; see the owner of this room.)
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "cache/key.hpp"

namespace kiln::cache {

struct Entry {
    Bytes code_object;
    std::string metadata;  // JSON object: what a person or `kiln show --meta` wants to know; never decides a lookup
    std::string listing;   // disassembly; may be empty
};

struct StoredEntry {
    Key key;
    Entry entry;
};

}  // namespace kiln::cache
