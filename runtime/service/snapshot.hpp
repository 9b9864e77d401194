// What a reload replaces whole: the tables and the templates as they were at one moment.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/service/kernel_sources.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::service {

// Constant once others can see it: what the sources still read then, the library carries. Thread safe.
struct Snapshot {
    explicit Snapshot(std::vector<std::filesystem::path> kernel_path) : sources(std::move(kernel_path)) {}

    std::shared_ptr<const tables::Table> table;  // not null
    const KernelSources sources;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// A row with the snapshot that it belongs to, or what a general row says for one problem: it lives for as
// long as anyone looks at it, reloads or not.
using RowPtr = std::shared_ptr<const tables::Row>;

}  // namespace kiln::service
