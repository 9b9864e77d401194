#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/service/service.hpp"
#include "runtime/service/tables.hpp"

namespace kiln::service {

namespace {

// What a lookup tells rows apart by, and what it gives out. Where a row stands in its file is neither.
std::string fingerprint(const tables::Row& row) {
    std::string text =
        fmt::format("{} {} {}", row.operator_name, tables::to_text(row.problem), row.device_text());
    for (const tables::Bucket& bucket : row.buckets) {
        text += fmt::format("\n{} {}", bucket.max_m, bucket.template_id);
        for (const auto& [name, value] : bucket.constants) {
            text += fmt::format(" {}={}", name, value);
        }
    }
    return text;
}

// How many rows are in one of two tables alone.
std::size_t count_changed(const tables::Table& before, const tables::Table& after) {
    std::map<std::string, std::ptrdiff_t> difference;
    for (const tables::Row* row : before.rows()) {
        --difference[fingerprint(*row)];
    }
    for (const tables::Row* row : after.rows()) {
        ++difference[fingerprint(*row)];
    }
    std::size_t changed = 0;
    for (const auto& [row, count] : difference) {
        changed += static_cast<std::size_t>(std::abs(count));
    }
    return changed;
}

}  // namespace

Result<void> Service::reload() {
    const std::lock_guard lock(reload_mutex_);
    const SnapshotPtr before = snapshot();
    Result<SnapshotPtr> after = open_snapshot(settings_, before.get());
    if (!after) {
        return fail(after);
    }
    log::event(log::Level::info, "reload",
               {{"rows", (*after)->table->rows().size()},
                {"changed", count_changed(*before->table, *(*after)->table)}});
    {
        const std::lock_guard swap_lock(snapshot_mutex_);
        snapshot_ = *std::move(after);
    }
    ++reloads_;
    return {};
}

}  // namespace kiln::service
