// kiln tune: which template with which constants serves a problem best at an M.

#include <unistd.h>

#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/operators/demands.hpp"
#include "runtime/tune/trial_server.hpp"
#include "runtime/tune/tuner.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/tuned_table.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

constexpr const char* kServerCommand = "tune-server";

struct TuneWords {
    std::vector<std::string> words;
    std::string m;
    double error_bound = 1;
    double min_improvement = 3;
    std::string warmup = "5", iters = "20", processes = "3", seed = "1", ordinal = "0";
    double timeout = 60;
    std::vector<std::string> templates;
    std::string out, all_candidates;
    bool resume = false;
    bool retry = false;
};

auto bad_option(std::string message) {
    return fail(ErrorCode::bad_input, Stage::configure, std::move(message));
}

// Starts this very program again, with what it was told beside the environment.
std::vector<std::string> server_command(const CommonOptions& common) {
    std::vector<std::string> command = {"/proc/self/exe", kServerCommand, std::to_string(::getpid())};
    if (!common.device.empty()) {
        command.insert(command.end(), {"--device", common.device});
    }
    if (!common.cache_dir.empty()) {
        command.insert(command.end(), {"--cache-dir", common.cache_dir});
    }
    return command;
}

// Of any operator: those that a row may name.
std::set<std::string_view> nameable_templates() {
    std::set<std::string_view> ids;
    for (const operators::Operator* op : operators::all_operators()) {
        for (const operators::Template* known : op->templates()) {
            if (known->serves_rows()) {
                ids.insert(known->id());
            }
        }
    }
    return ids;
}

Result<tune::TuneOptions> parse_options(const TuneWords& words, const CommonOptions& common) {
    constexpr double kLongest = 24 * 3600;
    tune::TuneOptions options;
    const auto values = parse_numbers("--m", words.m, 1);
    if (!values) {
        return tl::unexpected(values.error());
    }
    if (values->empty()) {
        return bad_option("--m: expected the values of M to tune for, found none");
    }
    options.m = *values;
    if (!(words.error_bound > 0 && words.error_bound <= 1)) {
        return bad_option(fmt::format(
            "--error-bound: expected a part of the operator's own bound, above 0 and at most 1, found {:g}",
            words.error_bound));
    }
    if (!(words.min_improvement >= 0 && words.min_improvement < 100)) {
        return bad_option(fmt::format("--min-improvement: expected percent from 0 to below 100, found {:g}",
                                      words.min_improvement));
    }
    if (!(words.timeout > 0 && words.timeout <= kLongest)) {
        return bad_option(fmt::format("--timeout: expected seconds, above 0 and at most {:g}, found {:g}",
                                      kLongest, words.timeout));
    }
    options.error_bound = words.error_bound;
    options.min_improvement = words.min_improvement;
    options.timeout = std::chrono::milliseconds(std::llround(words.timeout * 1e3));
    const auto number = [](const char* option, const std::string& text, std::int64_t least, auto& value) {
        return parse_number(option, text, least).map([&](std::int64_t parsed) {
            value = static_cast<std::remove_reference_t<decltype(value)>>(parsed);
        });
    };
    if (const auto parsed =
            number("--warmup", words.warmup, 0, options.warmup)
                .and_then([&] { return number("--iters", words.iters, 1, options.iters); })
                .and_then([&] { return number("--processes", words.processes, 1, options.processes); })
                .and_then([&] { return number("--seed", words.seed, 0, options.seed); })
                .and_then([&] { return number("--ordinal", words.ordinal, 0, options.ordinal); });
        !parsed) {
        return tl::unexpected(parsed.error());
    }
    if (words.resume && words.all_candidates.empty()) {
        return bad_option("--resume: expected --all-candidates FILE, which it goes on from, found none");
    }
    const std::set<std::string_view> known = nameable_templates();
    for (const std::string& id : words.templates) {
        if (!known.contains(id)) {
            return bad_option(
                fmt::format("--template: expected one of {}, found {}", fmt::join(known, ", "), id));
        }
    }
    options.templates = words.templates;
    options.all_candidates = words.all_candidates;
    if (words.retry && !words.resume) {
        return bad_option("--retry: expected --resume, whose file says what is tried again, found none");
    }
    options.resume = words.resume;
    options.retry = words.retry;
    options.trial_command = server_command(common);
    return options;
}

// The problems that the rows name, for the device; and one that is spelled out whole, with a row or without.
std::vector<tune::TuneSubject> select_subjects(const service::Service& service,
                                               const std::vector<service::WarmFilter>& filters) {
    std::vector<tune::TuneSubject> subjects;
    for (const auto& filter : filters) {
        const auto rows = service.rows(filter);
        for (const auto& row : rows) {
            subjects.push_back({operators::find_operator(row->operator_name), row->problem});
        }
        if (rows.empty() && filter.op != nullptr) {
            if (auto whole = operators::complete(*filter.op, filter.problem)) {
                subjects.push_back({filter.op, std::move(*whole)});
            }
        }
    }
    return subjects;
}

// A row is made once: what two problems have in common, with a demand and without, is not tuned at a time.
Result<void> check_subjects(const std::vector<tune::TuneSubject>& subjects) {
    std::set<std::pair<const operators::Operator*, operators::Problem>> seen;
    for (const auto& subject : subjects) {
        if (!seen.emplace(subject.op, operators::without_demands(*subject.op, subject.problem)).second) {
            return fail(ErrorCode::bad_input, Stage::configure,
                        fmt::format("expected each problem once, with one demand or none, found {} again",
                                    service::label(*subject.op, subject.problem)));
        }
    }
    return {};
}

Json bucket_json(const tables::Bucket& bucket) {
    Json constants = Json::object();
    for (const auto& [name, value] : bucket.constants) {
        constants[name] = value;
    }
    return {{"max_m", bucket.max_m}, {"template", bucket.template_id}, {"constants", std::move(constants)}};
}

Json ranked_json(const std::optional<tune::Ranked>& ranked) {
    return ranked ? Json{{"bucket", bucket_json(ranked->bucket)}, {"us", ranked->us}} : Json();
}

std::map<std::string, std::size_t> count_statuses(const tune::TuneResult& result) {
    std::map<std::string, std::size_t> counts;
    for (const auto& tuned : result.problems) {
        for (const auto& candidate : tuned.tried) {
            ++counts[std::string(tune::to_text(candidate.finding.status))];
        }
    }
    return counts;
}

void print_document(const tune::TuneResult& result, const std::string& table, const TuneWords& words) {
    Json problems = Json::array();
    for (const auto& tuned : result.problems) {
        Json choices = Json::array();
        for (const auto& choice : tuned.choices) {
            choices.push_back({{"m", choice.subject.m},
                               {"winner", ranked_json(choice.winner)},
                               {"runner_up", ranked_json(choice.runner_up)},
                               {"present", ranked_json(choice.present)},
                               {"stays", choice.stays},
                               {"why", choice.why}});
        }
        Json one = {{"operator", tuned.op->name()},
                    {"problem", to_json(tuned.problem)},
                    {"target", tuned.target.text()},
                    {"candidates", tuned.tried.size()},
                    {"choices", std::move(choices)},
                    {"new_row", tuned.row.has_value() && tuned.kept_because.empty()}};
        if (!tuned.kept_because.empty()) {
            one["kept_because"] = tuned.kept_because;
        }
        problems.push_back(std::move(one));
    }
    Json document = {{"kind", result.conditions.kind},
                     {"device", result.conditions.device},
                     {"interrupted", result.interrupted},
                     {"candidates", count_statuses(result)},
                     {"problems", std::move(problems)}};
    if (has_new_rows(result)) {
        document["table"] = Json::parse(table);
        if (!words.out.empty()) {
            document["file"] = words.out;
        }
    }
    print_json(document);
}

std::string short_bucket(const tables::Bucket& bucket) {
    std::string text = bucket.template_id;
    for (const auto& [name, value] : bucket.constants) {
        text += fmt::format(" {}={}", name, value);
    }
    return text;
}

// What was chosen and why, a line for each M.
std::string summary(const tune::TuneResult& result) {
    const bool is_model = result.conditions.kind == "model";
    auto text = fmt::format("device: {}, {}; {}\n", result.conditions.device, result.conditions.driver,
                            is_model ? "us are of a cost model: model, not measured" : "us are measured");
    for (const auto& tuned : result.problems) {
        text += fmt::format("\n{} {} on {}\n", tuned.op->name(),
                            operators::format_problem(*tuned.op, tuned.problem), tuned.target.text());
        for (const auto& choice : tuned.choices) {
            text += choice.winner ? fmt::format("  M={:<5} {:9.2f} us{}  {}: {}\n", choice.subject.m,
                                                choice.winner->us, is_model ? " (model)" : "",
                                                short_bucket(choice.winner->bucket), choice.why)
                                  : fmt::format("  M={:<5} {}\n", choice.subject.m, choice.why);
        }
        if (!tuned.kept_because.empty()) {
            text += fmt::format("  no row is written: {}\n", tuned.kept_because);
        }
    }
    std::string counted;
    for (const auto& [status, count] : count_statuses(result)) {
        counted += fmt::format("{}{} {}", counted.empty() ? "" : ", ", count, status);
    }
    return text + fmt::format("\n{}candidates: {}\n", result.interrupted ? "interrupted; " : "",
                              counted.empty() ? "none" : counted);
}

// Every candidate that did not come to an end well, by name.
void print_complaints(const tune::TuneResult& result) {
    for (const auto& tuned : result.problems) {
        for (const auto& candidate : tuned.tried) {
            if (candidate.finding.status != tune::Status::ok) {
                print_diagnostic(fmt::format(
                    "M={} {}: {}: {}", candidate.subject.m, short_bucket(candidate.bucket),
                    tune::to_text(candidate.finding.status), cut_words(candidate.finding.message)));
            }
        }
    }
}

ExitCode run_tune(const TuneWords& words, Invocation& invocation) {
    const auto& common = invocation.common;
    const auto split = split_words(words.words);
    if (!split) {
        return report(split.error(), common);
    }
    if (split->problems.empty() || !split->tables.empty()) {
        return report(Error{ErrorCode::bad_input, Stage::configure,
                            "expected OPERATOR key=value..., and no table, to tune for"},
                      common);
    }
    auto options = parse_options(words, common);
    if (!options) {
        return report(options.error(), common);
    }
    auto opened = open_service(common);
    if (!opened) {
        return report(opened.error(), common);
    }
    const std::shared_ptr<service::Service> shared = std::move(*opened);
    auto& service = *shared;
    invocation.metrics.follow(shared);
    const auto device = service.device(options->ordinal);
    if (!device) {
        return report(device.error(), common);
    }
    const auto filters = make_filters(*split, (*device)->info().target);
    if (!filters) {
        return report(filters.error(), common);
    }
    const auto subjects = select_subjects(service, *filters);
    if (subjects.empty()) {
        return report(nothing_selected(service, *filters, to_text(words.words, (*device)->info().target)),
                      common);
    }
    if (const auto checked = check_subjects(subjects); !checked) {
        return report(checked.error(), common);
    }
    if (const auto checked = check_tuned_table(words.out, words.all_candidates, service); !checked) {
        return report(checked.error(), common);
    }
    invocation.grace = std::make_unique<Grace>([shared] { shared->builder().stop(); });
    options->stop = &invocation.grace->stop();
    auto result = [&] {
        ProgressBar progress(common.json);
        options->progress = [&](std::size_t done, std::size_t total, const std::string& label) {
            progress.step(done, total, label);
        };
        return tune::tune(service, subjects, *options);
    }();
    if (!result) {
        return report(result.error(), common);
    }
    const auto table = put_tuned_rows(words.out, service, *result);
    if (!table) {
        return report(table.error(), common);
    }
    const bool has_rows = has_new_rows(*result);
    for (const auto& [status, count] : count_statuses(*result)) {
        invocation.metrics.count(status, count);
    }
    print_complaints(*result);
    if (common.json) {
        print_document(*result, *table, words);
    } else if (!words.out.empty() || !has_rows) {
        print("{}", summary(*result));
        print("{}\n", !has_rows           ? "nothing is better than what there is: no row was written"
                      : words.out.empty() ? ""
                                          : fmt::format("{} written", words.out));
    } else {
        print_diagnostic(summary(*result));
        print("{}", *table);
    }
    const bool any_winner = std::ranges::any_of(result->problems, [](const auto& tuned) {
        return std::ranges::all_of(tuned.choices,
                                   [](const auto& choice) { return choice.winner.has_value(); });
    });
    return result->interrupted ? ExitCode::interrupted : any_winner ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_tune(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("tune", "try what could serve problems, and make rows of what serves them best");
    auto words = std::make_shared<TuneWords>();
    command->add_option("what", words->words, "[OPERATOR key=value...]...")->required();
    command->add_option("--m", words->m, "values of M and ranges, \"1,8,16-32\": where buckets end")
        ->required();
    command
        ->add_option("--error-bound", words->error_bound,
                     "of an error, as a part of the operator's own bound")
        ->capture_default_str();
    command
        ->add_option("--min-improvement", words->min_improvement,
                     "percent that anything must be faster by than what serves now")
        ->capture_default_str();
    command->add_option("--warmup", words->warmup, "replays that are not timed")->capture_default_str();
    command->add_option("--iters", words->iters, "replays that are; finalists get 2.5 times as many")
        ->capture_default_str();
    command->add_option("--processes", words->processes, "that replay the finalists; medians decide")
        ->capture_default_str();
    command->add_option("--timeout", words->timeout, "seconds for a candidate")->capture_default_str();
    command->add_option("--template", words->templates,
                        "whose candidates are tried, besides what serves now; all when left out");
    command->add_option("--out", words->out,
                        "the table that rows are put into, made with its folders, other rows kept; standard "
                        "output when left out");
    command->add_option("--all-candidates", words->all_candidates,
                        "a new file of every result, a line each: for kiln report, and --resume");
    command->add_flag("--resume", words->resume, "go on from what --all-candidates holds");
    command->add_flag("--retry", words->retry, "with --resume: try again what failed, hung or crashed");
    command->add_option("--seed", words->seed, "of the random inputs")->capture_default_str();
    command->add_option("--ordinal", words->ordinal, "which device")->capture_default_str();
    add_metrics_file(*command, invocation,
                     {to_text(tune::Status::ok), to_text(tune::Status::failed), to_text(tune::Status::wrong),
                      to_text(tune::Status::hung), to_text(tune::Status::crashed)});
    invocation.manuals.describe(
        *command, {.text = "A problem is OPERATOR key=value ..., where operators are linear, router, "
                           "moe_sort and fused_moe: linear n=4608 k=4096. Each combination of constants is "
                           "compiled ahead, run in a process of its own, compared with the reference and "
                           "only then timed; what serves now stays unless it is beaten.\n\nOn a GPU replays "
                           "of graphs are timed, with weights that no cache holds. On the simulator a cost "
                           "model decides: its rows are marked \"model\", and never take the place of "
                           "measured ones.\n\nInterrupted (Ctrl-C), it keeps what --all-candidates has; "
                           "--resume goes on from there.",
                   .examples = {{"kiln tune linear n=4096 k=2048 --m 8,16,24,32 --out mine.json",
                                 "the best row goes into a table"},
                                {"kiln tune linear n=4096 k=2048 --m 8 --all-candidates all.jsonl --resume",
                                 "a tune that was stopped goes on"}},
                   .exits = {{0, "tuned, whether or not anything better was found"},
                             {1, "no candidate came to an end well"},
                             {2, "bad usage or bad input"},
                             {3, "the environment lacks something"},
                             {130, "interrupted: --resume goes on"}}});
    command->callback([&invocation, words] {
        invocation.run = [&invocation, words] { return run_tune(*words, invocation); };
    });

    auto* server = app.add_subcommand(kServerCommand, "tries candidates for kiln tune");
    server->group("");  // not a command for a person
    auto parent = std::make_shared<int>(0);
    server->add_option("parent", *parent)->required();
    server->callback([&invocation, parent] {
        invocation.run = [&invocation, parent] {
            return static_cast<ExitCode>(tune::serve_trials(overrides_of(invocation.common), *parent));
        };
    });
}

}  // namespace kiln::cli
