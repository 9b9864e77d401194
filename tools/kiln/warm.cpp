// kiln warm: compiles what the tables name into the cache, on all cores; or says what it would compile.

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/warm_failures.hpp"
#include "tools/kiln/warm_selection.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct WarmOptions {
    std::vector<std::string> words;
    std::string target;
    std::string cu_num;
    std::string jobs;
    std::string shard;
    bool dry_run = false;
    bool check = false;
};

Json describe_wanted(const operators::Specialisation& specialisation) {
    return {{"operator", specialisation.op->name()},  {"problem", to_json(specialisation.problem)},
            {"max_m", specialisation.bucket.max_m},   {"template", specialisation.bucket.template_id},
            {"target", specialisation.target.text()}, {"kernel", specialisation.kernel_name}};
}

Json describe_item(const service::WarmItem& item) {
    auto object = describe_wanted(item.specialisation);
    if (item.skipped) {
        object["skipped"] = true;
    } else if (item.error) {
        object["error"] = to_json(*item.error);
    } else {
        object["source"] = service::to_text(item.source);
        object["seconds"] = item.compile_seconds;
        object["key"] = item.key_digest;
    }
    return object;
}

// How many are in no store now, not kept or evicted by others of this run: warming was in vain for them.
std::size_t count_lost(const service::WarmSummary& summary, service::Service& service) {
    if (service.builder().store() == nullptr) {
        return summary.compiled;
    }
    return static_cast<std::size_t>(std::ranges::count_if(summary.items, [&](const service::WarmItem& item) {
        if (item.error || item.skipped) {
            return false;
        }
        const auto found = service.builder().find(item.specialisation);
        return !found || !found->has_value();
    }));
}

std::string place_of(service::Service& service) {
    const auto* store = service.builder().store();
    return store != nullptr ? store->folder().string() : "no cache folder";
}

void print_summary(const service::WarmSummary& summary, service::Service& service) {
    const auto skipped = summary.skipped > 0 ? fmt::format(", left {} undone", summary.skipped) : "";
    if (summary.compiled == 0 && summary.failed == 0 && summary.skipped == 0) {
        print("nothing to compile: all {} specialisations were in the cache, {:.2f} s ({})\n", summary.hits,
              summary.seconds, place_of(service));
    } else {
        print("compiled {}, found {} in the cache, failed {}{}, {:.2f} s ({})\n", summary.compiled,
              summary.hits, summary.failed, skipped, summary.seconds, place_of(service));
    }
}

ExitCode compile_all(service::Service& service, const Selection& selection, unsigned jobs,
                     Invocation& invocation) {
    const auto& common = invocation.common;
    const Grace& grace = *invocation.grace;
    service::WarmSummary summary;
    {
        ProgressBar progress(common.json);
        const auto step = [&](std::size_t done, std::size_t total, const service::WarmItem& item) {
            progress.step(done, total,
                          fmt::format("{}: {}", to_text(item.specialisation),
                                      item.error ? "failed" : service::to_text(item.source)));
        };
        summary = service.warm(selection.wanted, {.jobs = jobs, .stop = &grace.stop(), .progress = step});
    }
    const bool interrupted = grace.requested();

    auto exit_code = print_failures(summary);
    const auto lost = count_lost(summary, service);
    if (lost > 0) {
        print_diagnostic(fmt::format("{} of {} specialisations could not be kept in the cache", lost,
                                     summary.compiled + summary.hits));
        exit_code = std::max(exit_code, ExitCode::environment);
    }
    invocation.metrics.count(summary);
    invocation.metrics.count("lost", lost);
    if (common.json) {
        Json items = Json::array();
        for (const auto& item : summary.items) {
            items.push_back(describe_item(item));
        }
        print_json({{"summary",
                     {{"compiled", summary.compiled},
                      {"hits", summary.hits},
                      {"failed", summary.failed},
                      {"skipped", summary.skipped},
                      {"lost", lost},
                      {"switched_off", selection.switched_off},
                      {"without_compiler", selection.without_compiler},
                      {"seconds", summary.seconds}}},
                    {"shard", describe_shard(selection)},
                    {"interrupted", interrupted},
                    {"items", items}});
    } else {
        print_summary(summary, service);
    }
    return interrupted ? ExitCode::interrupted : exit_code;
}

// Says what compile_all() would do. With --check, 1 when it would compile anything; a gate that looked at
// nothing has not passed either, unless all there is to look at is in other shards.
ExitCode look_only(service::Service& service, const Selection& selection, bool check,
                   Invocation& invocation) {
    const auto& common = invocation.common;
    const auto& selected = selection.wanted;
    const auto checks = service.check_warm(selected);
    const auto hits = std::ranges::count_if(checks, &service::WarmCheck::cached);
    const auto missing = static_cast<std::ptrdiff_t>(selected.size()) - hits;
    invocation.metrics.count("hits", static_cast<std::uint64_t>(hits));
    invocation.metrics.count("missing", static_cast<std::uint64_t>(missing));
    Json items = Json::array();
    for (std::size_t i = 0; i < selected.size(); ++i) {
        auto item = describe_wanted(selected[i]);
        if (checks[i].cached) {
            item["source"] = service::to_text(checks[i].source);
        } else {
            item["missing"] = true;
        }
        if (checks[i].error) {
            item["error"] = to_json(*checks[i].error);
            print_diagnostic(fmt::format("{}: {}", to_text(selected[i]), checks[i].error->message));
        }
        items.push_back(std::move(item));
        if (!common.json) {
            print("{}  {}\n", checks[i].cached ? "in the cache" : "to compile  ", to_text(selected[i]));
        }
    }
    if (common.json) {
        print_json({{"summary",
                     {{"compiled", 0},
                      {"hits", hits},
                      {"failed", 0},
                      {"missing", missing},
                      {"switched_off", selection.switched_off},
                      {"without_compiler", selection.without_compiler},
                      {"seconds", 0}}},
                    {"shard", describe_shard(selection)},
                    {"dry_run", true},
                    {"items", items}});
    } else {
        print("{} to compile, {} in the cache ({})\n", missing, hits, place_of(service));
    }
    return check && (missing > 0 || selection.selected == 0) ? ExitCode::check_failed : ExitCode::ok;
}

ExitCode warm(const WarmOptions& options, Invocation& invocation) {
    const auto& common = invocation.common;
    const auto words = split_words(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    const auto jobs = parse_jobs(options.jobs);
    if (!jobs) {
        return report(jobs.error(), common);
    }
    const auto shard = parse_shard(options.shard);
    if (!shard) {
        return report(shard.error(), common);
    }
    const auto cu_num = parse_cu_num(options.cu_num);
    if (!cu_num) {
        return report(cu_num.error(), common);
    }
    auto overrides = overrides_for(*words);
    overrides.workers = *jobs;
    auto opened = open_service(common, overrides);
    if (!opened) {
        return report(opened.error(), common);
    }
    const std::shared_ptr<service::Service> shared = std::move(*opened);
    auto& service = *shared;
    const auto target = asked_target(options.target, service.settings());
    if (cu_num->has_value() && target.empty()) {
        return report(Error{ErrorCode::bad_input, Stage::configure,
                            "--cu-num: expected --target (or KILN_TARGET) beside it, found none"},
                      common);
    }
    const auto filters = make_filters(*words, target, *cu_num);
    if (!filters) {
        return report(filters.error(), common);
    }
    const auto selected = select_to_warm(service, *filters, *words, target, *shard);
    if (!selected) {
        return report(selected.error(), common);
    }
    print_remarks(*selected, common);
    if (options.dry_run || options.check) {
        return look_only(service, *selected, options.check, invocation);
    }
    invocation.metrics.follow(shared);  // who only looked has counted nothing
    // Service::warm looks at the flag.
    invocation.grace = std::make_unique<Grace>([] {});
    return compile_all(service, *selected, *jobs, invocation);
}

}  // namespace

void add_warm(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("warm", "compile what the tables name into the cache");
    auto options = std::make_shared<WarmOptions>();
    command->add_option("what", options->words,
                        "[TABLE...] [OPERATOR key=value...]...; all rows when left out");
    command->add_option("--target", options->target,
                        "only rows that serve this target: gfx950, gfx950:xnack-, sm_90a (KILN_TARGET)");
    command->add_option("--cu-num", options->cu_num, kCuNumHelp);
    command->add_option("--jobs", options->jobs, "compiles at once; one for each core when left out");
    command->add_option("--shard", options->shard, kShardHelp);
    add_metrics_file(*command, invocation, {"compiled", "hits", "failed", "skipped", "lost", "missing"});
    command->add_flag("--dry-run", options->dry_run, "compile nothing, list what would be compiled");
    command->add_flag("--check", options->check,
                      "compile nothing, and end with 1 if anything would be: a gate for deployments");
    invocation.manuals.describe(
        *command,
        {.text = "With no TABLE named, the shipped tables and the user's are used; with some, "
                 "those in place of all others. With no problem, all their rows. A problem is "
                 "OPERATOR key=value ..., where operators are linear, router, moe_sort and "
                 "fused_moe: linear n=4608 k=4096.\n\n--check asks for what a service here would "
                 "use: with a compiler, entries of this very compiler, and of bundles any; "
                 "without one, entries of any. What KILN_DISABLE switches off is left out; where "
                 "it leaves nothing, --check ends with 1.\n\nWithout --target, rows for processors "
                 "that nothing here compiles for are left out too; rows with cu_num are taken.\n\n"
                 "--shard needs no word between machines: each computes the same split from the "
                 "same tables, kiln and KILN_DISABLE, whatever its cache holds. A row that is "
                 "added moves few of the others.\n\nInterrupted (Ctrl-C), it keeps what is compiled "
                 "and says what it did; a second time ends it at once.",
         .examples = {{"kiln warm --target gfx950", "all that the tables name for one target"},
                      {"kiln warm model.json linear n=4608 k=4096", "one problem of one table"},
                      {"kiln warm --check --metrics-file /var/lib/node_exporter/kiln_warm.prom",
                       "is everything there? with the answer for Prometheus"}},
         .exits = {{0, "all is in the cache"},
                   {1, "a compile failed, or --check found something missing"},
                   {2, "bad usage, or a table or variable that is malformed"},
                   {3, "no compiler, or no cache that can be written"},
                   {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return warm(*options, invocation); };
    });
}

}  // namespace kiln::cli
