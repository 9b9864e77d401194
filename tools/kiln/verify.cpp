// kiln verify: runs specialisations on a device and compares with the float64 reference.

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "runtime/service/trial.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct VerifyOptions {
    std::vector<std::string> words;
    std::string m;
    std::string target;
    std::string seed = "1";
    std::string ordinal = "0";
    bool sanitize = false;
};

// The numbers among the options.
struct TrialOptions {
    std::vector<std::int64_t> m;  // empty: chosen by the plan's buckets
    std::uint64_t seed = 0;
    int ordinal = 0;
    std::vector<device::SimulationRules> rules;  // of the simulator, each for one more launch
};

Result<TrialOptions> parse_trial_options(const VerifyOptions& options) {
    auto m = parse_numbers("--m", options.m, 1);
    if (!m) {
        return fail(m);
    }
    const auto seed = parse_number("--seed", options.seed, 0);
    if (!seed) {
        return tl::unexpected(seed.error());
    }
    const auto ordinal = parse_number("--ordinal", options.ordinal, 0);
    if (!ordinal || *ordinal > std::numeric_limits<int>::max()) {
        return ordinal ? fail(ErrorCode::bad_input, Stage::configure,
                              fmt::format("--ordinal: expected a device's number, found {}", *ordinal))
                       : tl::unexpected(ordinal.error());
    }
    TrialOptions trials{std::move(*m), static_cast<std::uint64_t>(*seed), static_cast<int>(*ordinal), {}};
    if (options.sanitize) {
        trials.rules = service::all_rules(trials.seed);
    }
    return trials;
}

// A kernel of a launch, and what it cost.
struct CountedKernel {
    std::string template_id;
    std::string symbol;
    device::ExecutionCounts counts;
};

// One problem at one M: a result, or why there is none.
struct Case {
    const operators::Operator* op = nullptr;
    operators::Problem problem;
    std::int64_t m = 0;                          // 0 when the problem as a whole was refused
    std::optional<service::TrialResult> result;  // its bucket went with the plan
    std::string template_id;
    std::string kernel_name;
    std::string source;
    std::vector<CountedKernel> stages;  // in the order of a launch; none on a device that does not count
    std::optional<operators::Refusal> refusal;

    [[nodiscard]] bool passed() const { return result && result->passed; }
    [[nodiscard]] bool declined() const { return refusal && refusal->decline != 0; }
};

struct Tally {
    std::size_t passed = 0, failed = 0, declined = 0;
};

Tally count(const std::vector<Case>& cases) {
    Tally tally;
    for (const auto& one : cases) {
        ++(one.passed() ? tally.passed : one.declined() ? tally.declined : tally.failed);
    }
    return tally;
}

// M = 1, both edges of every bucket, and a value in its middle; of a bucket that goes on for ever, as far as
// some way beyond where it begins.
std::vector<std::int64_t> interesting_m(const service::Plan& plan) {
    constexpr std::int64_t kForEver = 4096, kFar = 256;
    std::set<std::int64_t> values{1};
    std::int64_t first = 1;
    for (const auto& bucket : plan.buckets()) {
        const auto last =
            bucket.max_m <= kForEver ? bucket.max_m : std::min(bucket.max_m, first + std::max(first, kFar));
        values.insert({first, first + (last - first) / 2, last});
        first = bucket.max_m + 1;
    }
    return {values.begin(), values.end()};
}

struct Subject {
    const operators::Operator* op = nullptr;
    operators::Problem problem;

    friend bool operator==(const Subject&, const Subject&) = default;
};

// The problems of the rows that the filters select for the device; a problem that is written out in full and
// has no row stays in the list, so that its decline is seen.
std::vector<Subject> select_problems(const service::Service& service,
                                     const std::vector<service::WarmFilter>& filters) {
    std::vector<Subject> subjects;
    const auto add = [&](Subject subject) {
        if (std::ranges::find(subjects, subject) == subjects.end()) {
            subjects.push_back(std::move(subject));
        }
    };
    for (const auto& filter : filters) {
        const auto rows = service.rows(filter);
        for (const auto& row : rows) {
            add({operators::find_operator(row->operator_name), row->problem});
        }
        if (rows.empty() && filter.op != nullptr) {
            if (auto whole = operators::complete(*filter.op, filter.problem)) {
                add({filter.op, std::move(*whole)});
            }
        }
    }
    return subjects;
}

// The counts of a launch by the kernels of the bucket that served it.
std::vector<CountedKernel> by_kernel(const service::PlanBucket& bucket,
                                     const std::vector<device::ExecutionCounts>& launches) {
    std::vector<CountedKernel> kernels;
    for (const auto& [specialisation, offset] : bucket.pipeline->stages) {
        for (const auto& kernel : specialisation.kernels) {
            if (kernels.size() < launches.size()) {
                kernels.push_back({std::string(specialisation.source_template->id()), kernel.symbol,
                                   launches[kernels.size()]});
            }
        }
    }
    return kernels;
}

// Runs every M of one problem and appends a case for each, up to where a stop is asked for.
void verify_problem(service::Service& service, const Subject& subject, const TrialOptions& options,
                    const Grace& grace, ProgressBar& progress, std::vector<Case>& cases) {
    const Case blank{subject.op, subject.problem, 0, {}, {}, {}, {}, {}, {}};
    const auto refuse = [&](operators::Refusal refusal) {
        cases.push_back(blank);
        cases.back().refusal = std::move(refusal);
    };
    const auto plan = service.prepare(options.ordinal, *subject.op, subject.problem);
    if (grace.requested()) {
        return;  // what the stop itself ended has not failed
    }
    if (!plan) {
        return refuse(plan.error());
    }
    const auto values = options.m.empty() ? interesting_m(**plan) : options.m;
    const auto label =
        fmt::format("{} {}", subject.op->name(), operators::format_problem(*subject.op, subject.problem));
    std::unique_ptr<service::Trial> trial;
    for (std::size_t i = 0; i < values.size() && !grace.requested(); ++i) {
        progress.step(i + 1, values.size(), fmt::format("{} M={}", label, values[i]));
        auto one = blank;
        one.m = values[i];
        const auto* bucket = (*plan)->bucket_for(values[i]);
        if (bucket == nullptr) {
            one.refusal = {KILN_DECLINE_M_TOO_LARGE,
                           {ErrorCode::invalid_argument, Stage::launch,
                            fmt::format("M = {}, the row ends at {}", values[i], (*plan)->max_m())}};
            cases.push_back(std::move(one));
            continue;
        }
        if (trial == nullptr) {
            const auto largest = std::min(*std::ranges::max_element(values), (*plan)->max_m());
            auto made = service::Trial::create(*plan, largest, options.seed);
            if (!made) {
                return refuse({0, made.error()});
            }
            trial = std::move(*made);
        }
        one.template_id = bucket->template_id;
        one.kernel_name = bucket->kernel_name;
        one.source = service::to_text(bucket->loaded()->source());
        if (auto result = trial->run(values[i], options.rules)) {
            one.stages = by_kernel(*bucket, result->launches);
            one.result = std::move(*result);
        } else {
            one.refusal = {0, result.error()};
        }
        cases.push_back(std::move(one));
    }
}

Json describe(const Case& one) {
    Json object = {{"operator", one.op->name()}, {"problem", to_json(one.problem)}};
    object["m"] = one.m == 0 ? Json() : Json(one.m);
    if (one.refusal) {
        object["outcome"] = one.declined() ? "declined" : "failed";
        object[one.declined() ? "declined" : "failure"] =
            one.declined() ? to_json(*one.refusal) : to_json(one.refusal->error);
    }
    if (!one.template_id.empty()) {
        object["template"] = one.template_id;
        object["source"] = one.source;
    }
    if (one.result) {
        object["outcome"] = one.passed() ? "passed" : "failed";
        object["kernel"] = one.kernel_name;
        object["error"] = one.result->error;
        object["bound"] = one.result->bound;
        object["remark"] = one.result->remark;
        object["replayed"] = one.result->replayed;
        if (one.result->counts) {
            object["counts"] = to_json(*one.result->counts);
            object["stages"] = Json::array();
            for (const auto& [template_id, symbol, counts] : one.stages) {
                object["stages"].push_back(
                    {{"template", template_id}, {"kernel", symbol}, {"counts", to_json(counts)}});
            }
        }
        if (one.result->microseconds) {
            object["microseconds"] = *one.result->microseconds;
        }
    }
    return object;
}

void print_table(const std::vector<Case>& cases, bool simulated) {
    std::vector<std::string> header = {"operator", "problem", "M", "from", "error", "bound", "", "graph"};
    const auto cost_columns =
        simulated ? std::vector<std::string>{"instructions", "valu", "mfma", "read", "written"}
                  : std::vector<std::string>{"us"};
    header.insert(header.end(), cost_columns.begin(), cost_columns.end());
    TextTable table(header);
    for (const auto& one : cases) {
        std::vector<std::string> row = {std::string(one.op->name()),
                                        operators::format_problem(*one.op, one.problem),
                                        one.m == 0 ? "all" : std::to_string(one.m), one.source};
        if (one.result) {
            row.insert(row.end(),
                       {fmt::format("{:.2g}", one.result->error), fmt::format("{:g}", one.result->bound),
                        one.passed() ? "ok" : "FAILED", one.result->replayed ? "replayed" : "none"});
            if (one.result->counts) {
                const auto& counts = *one.result->counts;
                row.insert(row.end(), {short_count(counts.instructions), short_count(counts.valu),
                                       short_count(counts.mfma), short_bytes(counts.global_bytes_read),
                                       short_bytes(counts.global_bytes_written)});
            } else if (one.result->microseconds) {
                row.push_back(fmt::format("{:.2f}", *one.result->microseconds));
            }
        } else {
            row.insert(row.end(), {"", "", one.declined() ? "declined" : "FAILED"});
        }
        row.resize(header.size());
        table.add(std::move(row));
    }
    table.print();
}

// Every refusal and every failure on stderr, by name.
void print_complaints(const std::vector<Case>& cases) {
    for (const auto& one : cases) {
        if (one.passed()) {
            continue;
        }
        print_diagnostic(
            fmt::format("{} {}{}: {}{}", one.op->name(), operators::format_problem(*one.op, one.problem),
                        one.m == 0 ? "" : fmt::format(" M={}", one.m), one.declined() ? "declined: " : "",
                        one.refusal ? one.refusal->error.message : one.result->remark));
    }
}

struct Run {
    const device::DeviceInfo& device;
    std::vector<Case> cases;
    std::uint64_t compiled = 0;
    bool interrupted = false;
};

void print_json_document(const Run& run, const Tally& tally, const TrialOptions& options) {
    Json listed = Json::array();
    for (const auto& one : run.cases) {
        listed.push_back(describe(one));
    }
    Json rules = Json::array();
    for (const auto& one : options.rules) {
        rules.push_back({{"order", one.order}, {"scopes", one.scopes}, {"checks", one.checks}});
    }
    print_json(
        {{"summary",
          {{"passed", tally.passed},
           {"failed", tally.failed},
           {"declined", tally.declined},
           {"compiled", run.compiled}}},
         {"device",
          {{"name", run.device.name}, {"target", run.device.target}, {"simulated", run.device.simulated}}},
         {"seed", options.seed},
         {"sanitize", std::move(rules)},
         {"interrupted", run.interrupted},
         {"cases", listed}});
}

void print_text(const Run& run, const Tally& tally, const TrialOptions& options) {
    print("device {}: {}, {}; inputs from seed {}\n\n", options.ordinal, run.device.name, run.device.target,
          options.seed);
    print_table(run.cases, run.device.simulated);
    if (!options.rules.empty()) {
        print(
            "\neach once more under {} rules: orders ascending, descending, shuffle:SEED and interleave:SEED "
            "from seed {}, scopes early and late, all checks\n",
            options.rules.size(), options.seed);
    }
    print("\n{}passed {}, failed {}, declined {}; compiled {}\n", run.interrupted ? "interrupted: " : "",
          tally.passed, tally.failed, tally.declined, run.compiled);
}

// What could not be run at all says why by its code; a run that checked nothing has not passed.
ExitCode exit_code_of(const std::vector<Case>& cases, const Tally& tally) {
    auto code = tally.failed > 0 || tally.passed == 0 ? ExitCode::check_failed : ExitCode::ok;
    for (const auto& one : cases) {
        if (one.refusal && !one.declined()) {
            code = std::max(code, kiln::cli::exit_code_of(one.refusal->error));
        }
    }
    return code;
}

ExitCode verify(const VerifyOptions& options, Invocation& invocation) {
    const auto& common = invocation.common;
    const auto words = split_words(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    const auto trials = parse_trial_options(options);
    if (!trials) {
        return report(trials.error(), common);
    }
    auto opened = open_service(common, overrides_for(*words));
    if (!opened) {
        return report(opened.error(), common);
    }
    // Shared with the grace, which lives longer than this function.
    const std::shared_ptr<service::Service> shared = std::move(*opened);
    auto& service = *shared;
    invocation.metrics.follow(shared);
    const auto device = service.device(trials->ordinal);
    if (!device) {
        return report(device.error(), common);
    }
    const auto& info = (*device)->info();
    if (!trials->rules.empty()) {
        if (!info.simulated) {
            return report(
                Error{ErrorCode::bad_input, Stage::configure,
                      fmt::format("--sanitize: expected a simulated device (KILN_DEVICE=sim), found {}",
                                  info.name)},
                common);
        }
        // From the first allocation on.
        if (const auto set = (*device)->set_rules(trials->rules.front()); !set) {
            return report(set.error(), common);
        }
    }
    const auto filters =
        make_filters(*words, options.target.empty() ? info.target : options.target, info.num_compute_units);
    if (!filters) {
        return report(filters.error(), common);
    }
    const auto device_target = tables::parse_target(info.target);
    if (device_target && !tables::serves(filters->front().target->target, *device_target)) {
        return report(Error{ErrorCode::bad_input, Stage::configure,
                            fmt::format("--target {}: expected one that device {} serves, which is {}",
                                        options.target, trials->ordinal, info.target)},
                      common);
    }
    const auto subjects = select_problems(service, *filters);
    if (subjects.empty()) {
        return report(nothing_selected(service, *filters, to_text(options.words, info.target)), common);
    }

    // A compile under way is ended; a case on the device is waited for.
    invocation.grace = std::make_unique<Grace>([shared] { shared->builder().stop(); });
    std::vector<Case> cases;
    {
        ProgressBar progress(common.json);
        for (const auto& subject : subjects) {
            if (!invocation.grace->requested()) {
                verify_problem(service, subject, *trials, *invocation.grace, progress, cases);
            }
        }
    }
    const Run run = {info, std::move(cases), service.statistics().compiles, invocation.grace->requested()};
    const auto tally = count(run.cases);
    invocation.metrics.count("passed", tally.passed);
    invocation.metrics.count("failed", tally.failed);
    invocation.metrics.count("declined", tally.declined);
    print_complaints(run.cases);
    if (common.json) {
        print_json_document(run, tally, *trials);
    } else {
        print_text(run, tally, *trials);
    }
    return run.interrupted ? ExitCode::interrupted : exit_code_of(run.cases, tally);
}

}  // namespace

void add_verify(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("verify", "run kernels on a device and compare with a float64 reference");
    auto options = std::make_shared<VerifyOptions>();
    command->add_option("what", options->words,
                        "[TABLE...] [OPERATOR key=value...]...; all rows when left out");
    command->add_option(
        "--m", options->m,
        "values of M and ranges, \"1,8,16-32\"; 1, the edges and the middle of every bucket when left out");
    command->add_option("--target", options->target,
                        "only rows that serve this target; the device's when left out");
    command->add_option("--seed", options->seed, "of the random inputs")->capture_default_str();
    command->add_option("--ordinal", options->ordinal, "which device")->capture_default_str();
    command->add_flag(
        "--sanitize", options->sanitize,
        "on the simulator: also under every order of work-groups and both extremes of visibility, with every "
        "check");
    add_metrics_file(*command, invocation, {"passed", "failed", "declined"});
    invocation.manuals.describe(
        *command, {.text = "A problem is OPERATOR key=value ..., where operators are linear, router, "
                           "moe_sort and fused_moe: linear n=4608 k=4096. Every case is launched, replayed "
                           "from a graph where the device has graphs, and compared with what a float64 "
                           "computation on the host gives; each operator has bounds of its own. On the "
                           "simulator it counts what was executed as well.\n\nInterrupted (Ctrl-C), it ends "
                           "the compile under way, waits for the case on the device, and says what it "
                           "found; a second time ends it at once.",
                   .examples = {{"kiln verify linear n=5120 k=4096 --m 1,8,16-32",
                                 "one problem at these numbers of tokens"},
                                {"kiln verify --device sim --sanitize router --m 1",
                                 "with every check of the simulator"},
                                {"kiln verify --json model.json", "all rows of a table, for a program"}},
                   .exits = {{0, "every case passed"},
                             {1, "one failed, or all were declined"},
                             {2, "bad usage or bad input, or no row to look at"},
                             {3, "no device, or a kernel that is not in the cache and can not be compiled"},
                             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return verify(*options, invocation); };
    });
}

}  // namespace kiln::cli
