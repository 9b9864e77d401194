#include "tools/kiln/tuned_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "runtime/operators/demands.hpp"
#include "runtime/service/tables.hpp"
#include "runtime/tables/writer.hpp"
#include "runtime/tune/made_row.hpp"
#include "tools/kiln/new_file.hpp"

namespace kiln::cli {
namespace {

// The file that rows are to be put into, as it is.
struct OutFile {
    std::string text;
    tables::LoadedTable table;
};

Result<OutFile> read_out(const std::string& path, const service::Service& service) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
        return OutFile{tables::to_table_text({}), {}};
    }
    auto text = read_text_file(path, Stage::table);
    if (!text) {
        return fail(text);
    }
    auto settings = service.settings();
    settings.table_places = {{tables::LayerKind::named, path}};
    settings.shipped_tables = false;
    auto table = service::load_tables(settings);
    if (!table) {
        return fail(table);
    }
    if (!table->faults.empty()) {
        return fail(
            ErrorCode::bad_input, Stage::table,
            fmt::format("--out: expected a sound table, found {}", tables::to_error(table->faults).message));
    }
    return OutFile{std::move(*text), std::move(*table)};
}

// Held while the table is read again and written: tunes that end at once put their rows into the same file,
// each beside the other's. The folder's, since a table is published as another file under its name. Where the
// file system knows no locks, nothing is held.
Result<UniqueFd> lock_folder_of(const std::string& path) {
    auto folder = make_folder_of(path);
    if (!folder) {
        return fail(folder);
    }
    UniqueFd held(::open(folder->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!held.valid()) {
        return fail(ErrorCode::io, Stage::table, system_message("open", *folder, errno));
    }
    if (lock_file(held, Wait::for_ever) == LockOutcome::failed) {
        return fail(ErrorCode::io, Stage::table, system_message("lock", *folder, errno));
    }
    return held;
}

// Puts the rows into the table, each in place of one for the same problem and device. A row that gives way to
// one there is noted as kept.
Result<std::string> put_rows(OutFile out, tune::TuneResult& result) {
    std::vector<const tables::Row*> there = out.table.table.rows();
    auto text = std::move(out.text);
    for (auto& tuned : result.problems) {
        if (!tuned.row || !tuned.kept_because.empty()) {
            continue;
        }
        std::optional<std::size_t> index;
        for (std::size_t i = 0; i < there.size(); ++i) {
            if (!there[i]->is_general() && there[i]->operator_name == tuned.op->name() &&
                there[i]->problem == operators::without_demands(*tuned.op, tuned.problem) &&
                there[i]->target == tuned.row->target && there[i]->cu_num == tuned.row->cu_num) {
                index = i;
                tuned.kept_because = tune::gives_way_to(result.conditions, *there[i]);
            }
        }
        if (!tuned.kept_because.empty()) {
            continue;
        }
        auto changed = tables::with_row(text, index, *tuned.row);
        if (!changed) {
            return changed;
        }
        text = std::move(*changed);
    }
    return text;
}

}  // namespace

bool has_new_rows(const tune::TuneResult& result) {
    return std::ranges::any_of(result.problems, [](const auto& tuned) {
        return tuned.row.has_value() && tuned.kept_because.empty();
    });
}

Result<void> check_tuned_table(const std::string& path, const std::string& all_candidates,
                               const service::Service& service) {
    if (path.empty()) {
        return {};
    }
    const auto place = [](const std::string& file) {
        std::error_code ignored;
        return std::filesystem::weakly_canonical(std::filesystem::absolute(file, ignored), ignored);
    };
    if (!all_candidates.empty() && place(path) == place(all_candidates)) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    "--out: expected another file than --all-candidates, found the same");
    }
    if (auto read = read_out(path, service); !read) {
        return fail(read);
    }
    auto folder = make_folder_of(path);
    if (!folder) {
        return fail(folder);
    }
    return ::access(folder->c_str(), W_OK | X_OK) == 0
               ? Result<void>()
               : fail(ErrorCode::io, Stage::table, system_message("write to", *folder, errno));
}

Result<std::string> put_tuned_rows(const std::string& path, const service::Service& service,
                                   tune::TuneResult& result) {
    if (path.empty() || !has_new_rows(result)) {
        return put_rows({tables::to_table_text({}), {}}, result);
    }
    auto held = lock_folder_of(path);
    if (!held) {
        return fail(held);
    }
    auto out = read_out(path, service);
    if (!out) {
        return fail(out);
    }
    auto text = put_rows(std::move(*out), result);
    if (text && has_new_rows(result)) {
        if (auto written = publish_file(path, std::as_bytes(std::span(*text)), Stage::table); !written) {
            return fail(written);
        }
    }
    return text;
}

}  // namespace kiln::cli
