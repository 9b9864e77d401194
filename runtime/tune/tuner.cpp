#include "runtime/tune/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "runtime/operators/demands.hpp"
#include "runtime/tune/candidates.hpp"
#include "runtime/tune/choice.hpp"
#include "runtime/tune/made_row.hpp"
#include "runtime/tune/median.hpp"
#include "runtime/tune/record_file.hpp"
#include "runtime/tune/trial_runner.hpp"

namespace kiln::tune {

namespace {

constexpr std::size_t kFinalists = 3;  // beside the present one
// Of what a screening replays, for a finalist.
constexpr std::int64_t kLongerWarmup = 2;
constexpr double kLongerIters = 2.5;

// "libnvrtc.so.12 1f2e3d4c5b6a, ...": enough of each part to tell compilers apart.
std::string compiler_text(service::Service& service, const std::string& target) {
    constexpr std::size_t kDigits = 12;
    const Result<compile::Compiler*> compiler = service.builder().compiler();
    if (!compiler) {
        return "none";
    }
    const Result<compile::CompilerIdentity> identity = (*compiler)->identity(target);
    if (!identity) {
        return "unknown";
    }
    std::string text;
    const auto document = nlohmann::json::parse(identity->document, nullptr, false);
    for (const auto& component : document.value("components", nlohmann::json::array())) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", component.value("name", ""),
                            component.value("build_id", component.value("sha256", "")).substr(0, kDigits));
    }
    return text;
}

Conditions conditions_of(service::Service& service, const device::DeviceInfo& info,
                         const TuneOptions& options) {
    const std::time_t now = std::time(nullptr);
    return {.kind = info.simulated ? "model" : "measured",
            .device = info.name,
            .device_target = info.target,
            .compute_units = info.num_compute_units,
            .simulated = info.simulated,
            .driver = info.driver,
            .compiler = compiler_text(service, info.target),
            .seed = options.seed,
            .error_bound = options.error_bound,
            .min_improvement = options.min_improvement,
            .warmup = options.warmup,
            .iters = options.iters,
            .processes = options.processes,
            .model = info.simulated ? kCostModelRevision : 0,
            .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(now))};
}

// What is known of one candidate while it is under way.
struct Entry {
    CandidateRecord record;
    bool known = false;   // tried, now or by an earlier tune
    std::string failure;  // it does not compile: why
};

struct Work {
    TunedProblem tuned;
    tables::Row row;  // the problem and the target, with the buckets that serve the problem now
    std::map<std::int64_t, std::vector<Entry>> entries;  // by M
    // Whether a bucket computes the same bits run after run.
    [[nodiscard]] bool is_deterministic(const tables::Bucket& bucket) const {
        const operators::Template* source =
            tuned.op->find_template(bucket.template_id, tuned.target.processor);
        return source == nullptr || source->is_deterministic(tuned.problem, bucket);
    }
};

class Tuning {
  public:
    Tuning(service::Service& service, const TuneOptions& options, const device::DeviceInfo& info)
        : service_(service), options_(options), info_(info) {}

    Result<TuneResult> run(const std::vector<TuneSubject>& subjects);

  private:
    [[nodiscard]] bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
    [[nodiscard]] Result<Work> plan(const TuneSubject& subject);
    // What an earlier tune left of it, where that is still of the same code.
    void take_known(Work& work) const;
    [[nodiscard]] bool is_kept(const CandidateRecord& found) const;
    // Tells what a bucket compiles to from what its kernels' sources or options make of it otherwise.
    [[nodiscard]] std::string code_of(const Work& work, const tables::Bucket& bucket) const;
    // Compiles whatever is to be tried, and notes what does not compile.
    // An error where the machine lacks what it takes: that is no candidate's fault, and none is recorded.
    [[nodiscard]] Result<void> compile(std::vector<Work>& works);
    // False when it was stopped.
    [[nodiscard]] Result<bool> tune(Work& work);
    [[nodiscard]] Result<bool> screen(Work& work);
    [[nodiscard]] Result<bool> replay_finalists(Work& work);
    [[nodiscard]] Result<bool> decide(Work& work);
    // Whether the bucket that serves the larger M may serve the lesser too; nothing when it was stopped.
    [[nodiscard]] Result<std::optional<bool>> merges(Work& work, std::int64_t m, const tables::Bucket& own,
                                                     const tables::Bucket& larger);
    [[nodiscard]] TrialRunner runner(const Work& work) const;
    [[nodiscard]] Result<void> keep(Entry& entry, Finding finding);
    void say(const Work& work, std::int64_t m) const;

    service::Service& service_;
    const TuneOptions& options_;
    const device::DeviceInfo& info_;
    std::unique_ptr<RecordFile> file_;
    TuneResult result_;
    std::size_t done_ = 0, total_ = 0;
};

Result<Work> Tuning::plan(const TuneSubject& subject) {
    const Result<tables::Target> device = tables::parse_target(info_.target);
    if (!device) {
        return tl::unexpected<Error>(device.error());
    }
    Work work;
    work.tuned.op = subject.op;
    work.tuned.problem = subject.problem;
    work.tuned.target = {device->processor, {}};
    // The row as a whole: it serves problems with other demands too.
    const service::Explanation shown =
        service_.explain(*subject.op, operators::without_demands(*subject.op, subject.problem), 1,
                         {*device, info_.num_compute_units});
    work.row.operator_name = subject.op->name();
    if (shown.row != nullptr) {
        work.tuned.before = shown.row;
        work.tuned.target = shown.row->target;
        work.row = operators::serving(*subject.op, *shown.row, subject.problem);
    } else if (shown.refusal->decline != KILN_DECLINE_SHAPE &&
               shown.refusal->decline != KILN_DECLINE_PROCESSOR) {
        return tl::unexpected<Error>(shown.refusal->error);
    }
    work.row.problem = subject.problem;
    work.row.target = work.tuned.target;
    for (const std::int64_t m : options_.m) {
        const tables::Bucket* present = work.row.bucket_for(m);
        std::vector<Entry>& entries = work.entries[m];
        for (Candidate& candidate :
             candidates(*subject.op, subject.problem, m, work.tuned.target, present, options_.templates)) {
            Entry entry;
            entry.record.subject = {std::string(subject.op->name()), subject.problem,
                                    work.tuned.target.text(), m};
            entry.record.conditions = result_.conditions;
            entry.record.bucket = std::move(candidate.bucket);
            entry.record.code = code_of(work, entry.record.bucket);
            entry.record.present = candidate.present;
            entries.push_back(std::move(entry));
        }
        if (entries.empty()) {
            return fail(
                ErrorCode::bad_input, Stage::table,
                fmt::format("{} at M = {} on {}: expected a template that declares what is to be tried "
                            "there, found none",
                            service::label(*subject.op, subject.problem), m, work.tuned.target.text()));
        }
        total_ += entries.size();
    }
    take_known(work);
    return work;
}

std::string Tuning::code_of(const Work& work, const tables::Bucket& bucket) const {
    constexpr std::size_t kDigits = 16;
    const Result<operators::Pipeline> pipeline = service_.pipeline(work.row, bucket);
    if (!pipeline) {
        return {};
    }
    std::string documents;
    for (const auto& [specialisation, offset] : pipeline->stages) {
        documents += specialisation.request_document + "\n";
    }
    return sha256(documents).hex().substr(0, kDigits);
}

bool Tuning::is_kept(const CandidateRecord& found) const {
    const Status status = found.finding.status;
    return !options_.retry || status == Status::ok || status == Status::wrong;
}

void Tuning::take_known(Work& work) const {
    for (const CandidateRecord& found : file_->found().candidates) {
        const auto entries = work.entries.find(found.subject.m);
        if (entries == work.entries.end()) {
            continue;
        }
        for (Entry& entry : entries->second) {
            if (is_kept(found) && entry.record.subject == found.subject &&
                entry.record.bucket == found.bucket && entry.record.present == found.present &&
                entry.record.code == found.code) {
                entry.record = found;
                entry.known = true;
            }
        }
    }
}

Result<void> Tuning::compile(std::vector<Work>& works) {
    std::vector<operators::Specialisation> wanted;
    std::map<std::string, std::string> failures;  // by request document
    std::vector<std::pair<Entry*, std::vector<std::string>>> needs;
    for (Work& work : works) {
        for (auto& [m, entries] : work.entries) {
            for (Entry& entry : entries) {
                if (entry.known) {
                    continue;
                }
                const Result<operators::Pipeline> pipeline = service_.pipeline(work.row, entry.record.bucket);
                if (!pipeline) {
                    entry.failure = pipeline.error().message;
                    continue;
                }
                needs.emplace_back(&entry, std::vector<std::string>());
                for (const auto& [specialisation, offset] : pipeline->stages) {
                    needs.back().second.push_back(specialisation.request_document);
                    if (failures.emplace(specialisation.request_document, "").second) {
                        wanted.push_back(specialisation);
                    }
                }
            }
        }
    }
    service::WarmOptions warm;
    warm.stop = options_.stop;
    warm.progress = [&](std::size_t done, std::size_t total, const service::WarmItem& item) {
        options_.progress(done, total, fmt::format("compile {}", item.specialisation.kernel_name));
    };
    for (service::WarmItem& item : service_.warm(wanted, warm).items) {
        if (item.error && item.error->code == ErrorCode::environment && !stopped()) {
            return tl::unexpected<Error>(*std::move(item.error));
        }
        if (item.error) {
            failures[item.specialisation.request_document] = std::move(item.error->message);
        }
    }
    for (auto& [entry, documents] : needs) {
        for (const std::string& document : documents) {
            if (entry->failure.empty()) {
                entry->failure = failures[document];
            }
        }
    }
    return {};
}

void Tuning::say(const Work& work, std::int64_t m) const {
    options_.progress(done_, total_,
                      fmt::format("{} M={}", service::label(*work.tuned.op, work.tuned.problem), m));
}

TrialRunner Tuning::runner(const Work& work) const {
    return TrialRunner({.command = options_.trial_command,
                        .subject = {std::string(work.tuned.op->name()), work.tuned.problem,
                                    work.tuned.target.text(), options_.m.back()},
                        .seed = options_.seed,
                        .ordinal = options_.ordinal,
                        .error_bound = options_.error_bound,
                        .timeout = options_.timeout,
                        .stop = options_.stop});
}

Result<void> Tuning::keep(Entry& entry, Finding finding) {
    entry.record.finding = std::move(finding);
    entry.known = true;
    return file_->append(candidate_line(entry.record));
}

Result<bool> Tuning::screen(Work& work) {
    TrialRunner trials = runner(work);
    for (auto& [m, entries] : work.entries) {
        for (Entry& entry : entries) {
            ++done_;
            if (entry.known) {
                continue;
            }
            if (stopped()) {
                return false;
            }
            say(work, m);
            Finding finding;
            if (!entry.failure.empty()) {
                finding.message = entry.failure;
            } else {
                Result<std::optional<Finding>> tried =
                    trials.attempt(m, entry.record.bucket, options_.warmup, options_.iters);
                if (!tried) {
                    return tl::unexpected<Error>(tried.error());
                }
                if (!*tried) {
                    return false;
                }
                finding = **std::move(tried);
            }
            if (Result<void> kept = keep(entry, std::move(finding)); !kept) {
                return tl::unexpected<Error>(kept.error());
            }
        }
    }
    return true;
}

Result<bool> Tuning::replay_finalists(Work& work) {
    std::vector<std::pair<std::int64_t, Entry*>> left;
    for (auto& [m, entries] : work.entries) {
        std::vector<CandidateRecord> records;
        for (const Entry& entry : entries) {
            records.push_back(entry.record);
        }
        for (const std::size_t i : finalists(records, kFinalists)) {
            if (entries[i].record.finals_us.empty()) {
                left.emplace_back(m, &entries[i]);
            }
        }
    }
    std::map<Entry*, std::vector<double>> medians;
    for (std::int64_t process = 0; process < options_.processes && !left.empty(); ++process) {
        TrialRunner trials = runner(work);
        for (const auto& [m, entry] : left) {
            if (stopped()) {
                return false;
            }
            say(work, m);
            const Result<std::optional<Finding>> tried =
                trials.attempt(m, entry->record.bucket, kLongerWarmup * options_.warmup,
                               static_cast<std::int64_t>(kLongerIters * static_cast<double>(options_.iters)));
            if (!tried) {
                return tl::unexpected<Error>(tried.error());
            }
            if (!*tried) {
                return false;
            }
            if ((*tried)->us) {
                medians[entry].push_back(*(*tried)->us);
            }
        }
    }
    for (const auto& [m, entry] : left) {
        const std::vector<double>& replayed = medians[entry];
        // One that fails now is none that decides.
        if (std::ssize(replayed) == options_.processes) {
            entry->record.finals_us = replayed;
            entry->record.finding.us = median(replayed);
            if (Result<void> kept = file_->append(final_line(entry->record)); !kept) {
                return tl::unexpected<Error>(kept.error());
            }
        }
    }
    return true;
}

Result<std::optional<bool>> Tuning::merges(Work& work, std::int64_t m, const tables::Bucket& own,
                                           const tables::Bucket& larger) {
    std::vector<Entry>& entries = work.entries.at(m);
    const auto winner = std::ranges::find_if(
        entries, [&](const Entry& entry) { return entry.record.bucket == own && !entry.record.present; });
    // Finalists were replayed longer, and the other was not.
    const double own_us = screened_us(winner->record);
    Entry entry{winner->record, false, {}};
    entry.record.bucket = larger;
    entry.record.finals_us.clear();
    entry.record.conditions = result_.conditions;
    entry.record.code = code_of(work, larger);
    for (const CandidateRecord& found : file_->found().candidates) {
        if (is_kept(found) && found.subject == entry.record.subject && found.bucket == larger &&
            !found.present && found.code == entry.record.code) {
            entry.record = found;
            entry.known = true;
        }
    }
    if (!entry.known) {
        TrialRunner trials = runner(work);
        Result<std::optional<Finding>> tried = trials.attempt(m, larger, options_.warmup, options_.iters);
        if (!tried) {
            return tl::unexpected<Error>(tried.error());
        }
        if (!*tried) {
            return std::nullopt;
        }
        if (Result<void> kept = keep(entry, **std::move(tried)); !kept) {
            return tl::unexpected<Error>(kept.error());
        }
    }
    return entry.record.finding.status == Status::ok &&
           may_merge(own_us, screened_us(entry.record), options_.min_improvement);
}

Result<bool> Tuning::decide(Work& work) {
    std::vector<Decision> decisions;
    for (const auto& [m, entries] : work.entries) {
        std::vector<CandidateRecord> records;
        for (const Entry& entry : entries) {
            records.push_back(entry.record);
        }
        ChoiceRecord choice = choose(records, options_.min_improvement);
        choice.conditions = result_.conditions;
        const bool is_new = choice.winner && !choice.stays;
        decisions.push_back({m, is_new ? std::optional(choice.winner->bucket) : std::nullopt});
        if (std::ranges::none_of(file_->found().choices,
                                 [&](const ChoiceRecord& found) { return found.says_same(choice); })) {
            if (Result<void> kept = file_->append(choice_line(choice)); !kept) {
                return tl::unexpected<Error>(kept.error());
            }
        }
        work.tuned.choices.push_back(std::move(choice));
    }
    for (std::size_t i = decisions.size(); i-- > 1;) {
        Decision& lesser = decisions[i - 1];
        const Decision& larger = decisions[i];
        if (!may_share(work.row.buckets, lesser, larger)) {
            continue;
        }
        const Result<std::optional<bool>> merged = merges(work, lesser.m, *lesser.bucket, *larger.bucket);
        if (!merged) {
            return tl::unexpected<Error>(merged.error());
        }
        if (!*merged) {
            return false;
        }
        if (**merged) {
            lesser.bucket = larger.bucket;
        }
    }
    if (std::ranges::any_of(decisions, [](const Decision& one) { return one.bucket.has_value(); })) {
        const operators::Problem& problem = work.tuned.problem;
        const bool demands = problem != operators::without_demands(*work.tuned.op, problem);
        work.tuned.row = made_row(
            work.tuned, result_.conditions,
            with_decisions(
                work.tuned.before != nullptr ? work.tuned.before->buckets : std::span<const tables::Bucket>(),
                decisions, demands ? Demand::deterministic : Demand::none,
                [&](const tables::Bucket& bucket) { return work.is_deterministic(bucket); }));
        if (work.tuned.before != nullptr) {
            work.tuned.kept_because = gives_way_to(result_.conditions, *work.tuned.before);
        }
    }
    return true;
}

Result<bool> Tuning::tune(Work& work) {
    for (const auto step : {&Tuning::screen, &Tuning::replay_finalists, &Tuning::decide}) {
        if (step == &Tuning::replay_finalists && info_.simulated) {
            continue;  // a model says the same every time
        }
        const Result<bool> done = (this->*step)(work);
        if (!done || !*done) {
            return done;
        }
    }
    for (const auto& [m, entries] : work.entries) {
        for (const Entry& entry : entries) {
            work.tuned.tried.push_back(entry.record);
        }
    }
    return true;
}

Result<TuneResult> Tuning::run(const std::vector<TuneSubject>& subjects) {
    result_.conditions = conditions_of(service_, info_, options_);
    Result<std::unique_ptr<RecordFile>> file =
        RecordFile::open(options_.all_candidates, options_.resume ? GoOn::yes : GoOn::no, result_.conditions);
    if (!file) {
        return fail(file);
    }
    file_ = *std::move(file);
    std::vector<Work> works;
    for (const TuneSubject& subject : subjects) {
        Result<Work> work = plan(subject);
        if (!work) {
            return fail(work);
        }
        works.push_back(*std::move(work));
    }
    if (const Result<void> compiled = compile(works); !compiled) {
        return tl::unexpected<Error>(compiled.error());
    }
    for (Work& work : works) {
        const Result<bool> done = stopped() ? Result<bool>(false) : tune(work);
        if (!done) {
            return tl::unexpected<Error>(done.error());
        }
        if (!*done) {
            result_.interrupted = true;
            break;
        }
        result_.problems.push_back(std::move(work.tuned));
    }
    return std::move(result_);
}

}  // namespace

Result<TuneResult> tune(service::Service& service, const std::vector<TuneSubject>& subjects,
                        const TuneOptions& options) {
    const Result<std::shared_ptr<device::Device>> device = service.device(options.ordinal);
    if (!device) {
        return tl::unexpected<Error>(device.error());
    }
    return Tuning(service, options, (*device)->info()).run(subjects);
}

}  // namespace kiln::tune
