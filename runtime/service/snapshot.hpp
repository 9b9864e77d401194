// What a reload replaces whole: the tables and the templates as they were at one moment.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/service/kernel_sources.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::service {

// Constant, but for the templates that are read when they are first needed. Thread safe.
struct Snapshot {
    Snapshot(std::shared_ptr<const tables::Table> its_table, std::vector<std::filesystem::path> kernel_path)
        : table(std::move(its_table)), sources(std::move(kernel_path)) {}

    const std::shared_ptr<const tables::Table> table;  // never null
    const KernelSources sources;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// A row with the snapshot that it belongs to: it lives for as long as anyone looks at it, reloads or not.
using RowPtr = std::shared_ptr<const tables::Row>;

}  // namespace kiln::service
