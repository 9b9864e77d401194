// Removing from the folder of a store: what Store::prune(), Store::clear() and eviction are made of.
#pragma once

#include <optional>

#include "cache/entry_folder.hpp"
#include "cache/store.hpp"

namespace kiln::cache {

// As Store::prune says. An entry under `keep` stays whatever the bounds are.
[[nodiscard]] Result<PruneReport> prune_folder(const EntryFolder& folder, const PruneOptions& options,
                                               const std::optional<Digest>& keep = {});

// As Store::clear says of the files: every entry that is listed goes, empty or in use.
[[nodiscard]] Result<PruneReport> clear_folder(const EntryFolder& folder);

// Removes the store's folders that are empty, but FOLDER itself.
void remove_empty_folders(const EntryFolder& folder);

// Bytes of the entries that share the first two digits of `digest`: a 256th of a store, since digests are
// spread evenly.
[[nodiscard]] std::uint64_t bytes_of_group(const EntryFolder& folder, const Digest& digest);

}  // namespace kiln::cache
