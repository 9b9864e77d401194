// kiln warm: compiles what the tables name into the cache, on all cores.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct WarmOptions {
    std::vector<std::string> words;
    std::string target;
};

std::string describe(const operators::Specialisation& specialisation) {
    return fmt::format("{} {} max_m={} {}", specialisation.op->name(),
                       operators::format_problem(*specialisation.op, specialisation.problem),
                       specialisation.bucket.max_m, specialisation.target.text());
}

Json describe_item(const service::WarmItem& item) {
    const auto& specialisation = item.specialisation;
    Json object = {{"operator", specialisation.op->name()},  {"problem", to_json(specialisation.problem)},
                   {"max_m", specialisation.bucket.max_m},   {"template", specialisation.bucket.template_id},
                   {"target", specialisation.target.text()}, {"kernel", specialisation.kernel_name}};
    if (item.error) {
        object["error"] = to_json(*item.error);
    } else {
        object["source"] = service::to_text(item.source);
        object["seconds"] = item.compile_seconds;
        object["key"] = item.key_digest;
    }
    return object;
}

// Specialisations that any of the filters selects, each once.
Result<std::vector<operators::Specialisation>> select(const service::Service& service,
                                                      const std::vector<service::WarmFilter>& filters,
                                                      const WarmOptions& options) {
    std::vector<operators::Specialisation> selected;
    std::set<std::string> seen;
    for (const auto& filter : filters) {
        std::vector<Error> errors;
        for (auto& specialisation : service.matching(filter, errors)) {
            if (seen.insert(specialisation.request_document).second) {
                selected.push_back(std::move(specialisation));
            }
        }
        if (!errors.empty()) {
            return tl::unexpected(errors.front());
        }
    }
    if (selected.empty()) {
        return fail(ErrorCode::not_found, Stage::table,
                    fmt::format("no row of the shape tables is {}", to_text(options.words, options.target)));
    }
    return selected;
}

// How many of the compiled ones did not get into a store: warming was in vain for them.
std::size_t count_lost(const service::WarmSummary& summary, service::Service& service) {
    if (service.builder().store() == nullptr) {
        return summary.compiled;
    }
    return static_cast<std::size_t>(std::ranges::count_if(summary.items, [&](const service::WarmItem& item) {
        if (item.error || item.source != service::ArtifactSource::compiled) {
            return false;
        }
        const auto found = service.builder().find(item.specialisation);
        return !found || !found->has_value();
    }));
}

void print_summary(const service::WarmSummary& summary, service::Service& service) {
    const auto* store = service.builder().store();
    const auto where = store != nullptr ? store->folder().string() : "no cache folder";
    if (summary.compiled == 0 && summary.failed == 0) {
        print("nothing to compile: all {} specialisations were in the cache, {:.2f} s ({})\n", summary.hits,
              summary.seconds, where);
    } else {
        print("compiled {}, found {} in the cache, failed {}, {:.2f} s ({})\n", summary.compiled,
              summary.hits, summary.failed, summary.seconds, where);
    }
}

ExitCode warm(const WarmOptions& options, const CommonOptions& common) {
    const auto words = split_words(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    auto opened = open_service(common, overrides_for(*words));
    if (!opened) {
        return report(opened.error(), common);
    }
    auto& service = **opened;
    const auto filters = make_filters(*words, options.target);
    if (!filters) {
        return report(filters.error(), common);
    }
    const auto selected = select(service, *filters, options);
    if (!selected) {
        return report(selected.error(), common);
    }

    service::WarmSummary summary;
    {
        ProgressBar progress(common.json);
        summary =
            service.warm(*selected, {.progress = [&](std::size_t done, std::size_t total, const auto& item) {
                progress.step(done, total,
                              fmt::format("{}: {}", describe(item.specialisation),
                                          item.error ? "failed" : service::to_text(item.source)));
            }});
    }

    auto exit_code = ExitCode::ok;
    for (const auto& item : summary.items) {
        if (item.error) {
            print_diagnostic(fmt::format("{}: {}", describe(item.specialisation), item.error->message));
            exit_code = std::max(exit_code, exit_code_of(*item.error));
        }
    }
    const auto lost = count_lost(summary, service);
    if (lost > 0) {
        print_diagnostic(fmt::format("{} of {} compiled specialisations could not be kept in the cache", lost,
                                     summary.compiled));
        exit_code = std::max(exit_code, ExitCode::environment);
    }
    if (common.json) {
        Json items = Json::array();
        for (const auto& item : summary.items) {
            items.push_back(describe_item(item));
        }
        print_json({{"summary",
                     {{"compiled", summary.compiled},
                      {"hits", summary.hits},
                      {"failed", summary.failed},
                      {"lost", lost},
                      {"seconds", summary.seconds}}},
                    {"items", items}});
    } else {
        print_summary(summary, service);
    }
    return exit_code;
}

}  // namespace

void add_warm(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("warm", "compile what the tables name into the cache");
    auto options = std::make_shared<WarmOptions>();
    command->add_option("what", options->words,
                        "[TABLE...] [OPERATOR key=value...]...; all rows when left out");
    command->add_option("--target", options->target, "only rows that serve this target, gfx950:xnack- say");
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return warm(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
