#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "runtime/service/service.hpp"
#include "runtime/service/tables.hpp"

namespace kiln::service {

namespace {

// What a lookup tells rows apart by, and what it gives out. Where a row stands in its file is neither.
std::string fingerprint(const tables::Row& row) {
    std::string text =
        fmt::format("{} {} {}", row.operator_name, tables::to_text(row.problem), row.target.text());
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

// A row whose template is not there serves nothing and is no fault. But a template that was in use is missed.
Result<void> check_templates(const Snapshot& before, const Snapshot& after) {
    std::set<std::string> gone;
    for (const tables::Row* row : after.table->rows()) {
        for (const tables::Bucket& bucket : row->buckets) {
            if (before.sources.has_read(bucket.template_id, row->target) &&
                !after.sources.has(bucket.template_id, row->target)) {
                gone.insert(operators::template_path(bucket.template_id, row->target));
            }
        }
    }
    if (gone.empty()) {
        return {};
    }
    return fail(ErrorCode::bad_input, Stage::table,
                fmt::format("expected the templates that were in use, found no {}", fmt::join(gone, ", ")));
}

}  // namespace

Result<void> Service::reload() {
    const std::lock_guard lock(reload_mutex_);
    Result<std::shared_ptr<const tables::Table>> table = open_table(settings_);
    if (!table) {
        return fail(table);
    }
    const SnapshotPtr before = snapshot();
    auto after = std::make_shared<const Snapshot>(*std::move(table), settings_.kernel_path);
    if (Result<void> sound = check_templates(*before, *after); !sound) {
        return fail(sound);
    }
    const std::size_t changed = count_changed(*before->table, *after->table);
    log::event(log::Level::info, "reload", {{"rows", after->table->rows().size()}, {"changed", changed}});
    {
        const std::lock_guard swap_lock(snapshot_mutex_);
        snapshot_ = std::move(after);
    }
    ++reloads_;
    return {};
}

}  // namespace kiln::service
