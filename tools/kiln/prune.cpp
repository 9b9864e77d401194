// kiln prune and kiln clear: remove from the user's store. Layers are never touched.

#include <unistd.h>

#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "base/amount.hpp"
#include "tools/kiln/cache_view.hpp"

namespace kiln::cli {
namespace {

struct RemovalOptions {
    std::string max_size;
    std::string max_age;
    bool dry_run = false;
    bool yes = false;
};

tl::unexpected<Error> bad_option(std::string_view option, const Error& error) {
    return fail(error.code, error.stage, fmt::format("{}: {}", option, error.message));
}

// Without any bound said, the store's own.
Result<cache::PruneOptions> read_bounds(const RemovalOptions& options, const service::Settings& settings) {
    cache::PruneOptions bounds;
    bounds.dry_run = options.dry_run;
    if (!options.max_size.empty()) {
        const auto bytes = parse_bytes(options.max_size);
        if (!bytes) {
            return bad_option("--max-size", bytes.error());
        }
        bounds.max_bytes = *bytes;
    }
    if (!options.max_age.empty()) {
        const auto age = parse_duration(options.max_age);
        if (!age) {
            return bad_option("--max-age", age.error());
        }
        bounds.max_age = *age;
    }
    if (!bounds.max_bytes && !bounds.max_age && settings.cache_limit != 0) {
        bounds.max_bytes = settings.cache_limit;
    }
    return bounds;
}

ExitCode prune(const RemovalOptions& options, const CommonOptions& common) {
    const auto view = open_cache_view(common);
    if (!view) {
        return report(view.error(), common);
    }
    const auto bounds = read_bounds(options, view->settings);
    if (!bounds) {
        return report(bounds.error(), common);
    }
    if (view->places.store == nullptr) {  // no folder, nothing in it
        return print_report({}, *view, options.dry_run, common);
    }
    const auto pruned = view->places.store->prune(*bounds);
    return pruned ? print_report(*pruned, *view, options.dry_run, common) : report(pruned.error(), common);
}

// Asks a person; a script says what it means by calling the command at all.
bool may_clear(const cache::PruneReport& what, const CacheView& view, const RemovalOptions& options) {
    if (options.yes || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
        return true;
    }
    std::cerr << fmt::format("remove {} entries, {}, from {}? [y/N] ", what.removed.size(),
                             short_bytes(what.bytes), view.settings.cache_dir.string());
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

ExitCode clear(const RemovalOptions& options, const CommonOptions& common) {
    const auto view = open_cache_view(common);
    if (!view) {
        return report(view.error(), common);
    }
    auto* store = view->places.store.get();
    if (store == nullptr) {
        return print_report({}, *view, options.dry_run, common);
    }
    const auto what = store->prune({.max_bytes = 0, .dry_run = true});
    if (!what) {
        return report(what.error(), common);
    }
    if (options.dry_run) {
        return print_report(*what, *view, true, common);
    }
    if (!may_clear(*what, *view, options)) {
        return report(Error{ErrorCode::bad_input, Stage::cache, "nothing was removed"}, common);
    }
    const auto cleared = store->clear();
    return cleared ? print_report(*cleared, *view, false, common) : report(cleared.error(), common);
}

}  // namespace

void add_prune(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand(
        "prune", "remove what was used least recently, and what killed processes left in the cache");
    auto options = std::make_shared<RemovalOptions>();
    command->add_option("--max-size", options->max_size,
                        "until the entries are no larger than this, 500MB or 10GiB say (KILN_CACHE_LIMIT)");
    command->add_option("--max-age", options->max_age, "entries not used for longer than this, 30d say");
    command->add_flag("--dry-run", options->dry_run, "say what would be removed, and remove nothing");
    invocation.manuals.describe(
        *command, {.text = "Entries that other processes use at the moment are safe: what they loaded stays "
                           "loaded, and what they miss they compile again.",
                   .examples = {{"kiln prune --max-size 5GiB --max-age 30d", "both bounds"},
                                {"kiln prune --max-age 30d --dry-run", "only what would go"}},
                   .exits = {{0, "removed, or nothing to remove"},
                             {2, "bad usage, or a variable that is malformed"},
                             {3, "the cache can not be read or written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return prune(*options, invocation.common); };
    });
}

void add_clear(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("clear", "remove every entry of the cache, and nothing that is not kiln's");
    auto options = std::make_shared<RemovalOptions>();
    command->add_flag("--dry-run", options->dry_run, "say what would be removed, and remove nothing");
    command->add_flag("--yes,-y", options->yes, "do not ask, where a person sits at a terminal");
    invocation.manuals.describe(
        *command,
        {.text = "The folder and whatever else lies in it stay. Layers of KILN_CACHE_PATH are not "
                 "touched.",
         .examples = {{"kiln clear --yes", "without a question"}},
         .exits = {
             {0, "empty"},
             {2, "bad usage, a variable that is malformed, or a question that was not answered with yes"},
             {3, "the cache can not be read or written"},
             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return clear(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
