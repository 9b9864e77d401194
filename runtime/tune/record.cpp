#include "runtime/tune/record.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "runtime/tune/record_json.hpp"

namespace kiln::tune {

namespace {

constexpr std::array<std::string_view, 5> kStatusNames{"ok", "failed", "wrong", "hung", "crashed"};

Json head_of(std::string_view record, const Subject& subject, const Conditions& conditions) {
    return {{"schema", kRecordSchema},
            {"record", record},
            {"operator", subject.operator_name},
            {"problem", to_json(subject.problem)},
            {"target", subject.target},
            {"m", subject.m},
            {"kind", conditions.kind},
            {"device",
             {{"name", conditions.device},
              {"target", conditions.device_target},
              {"compute_units", conditions.compute_units},
              {"simulated", conditions.simulated}}},
            {"driver", conditions.driver},
            {"compiler", conditions.compiler},
            {"date", conditions.date},
            {"settings",
             {{"seed", conditions.seed},
              {"error_bound", conditions.error_bound},
              {"min_improvement", conditions.min_improvement},
              {"warmup", conditions.warmup},
              {"iters", conditions.iters},
              {"processes", conditions.processes},
              {"model", conditions.model}}}};
}

Subject subject_of(const Json& line) {
    const auto m = line.at("m").get<std::int64_t>();
    if (m < 1) {
        throw std::invalid_argument(fmt::format("expected m of 1 or more, found {}", m));
    }
    return {line.at("operator").get<std::string>(), problem_from(line.at("problem")),
            line.at("target").get<std::string>(), m};
}

// Throws. A time below 0 would win over every other.
double check_time(double us) {
    if (!(us >= 0)) {
        throw std::invalid_argument(fmt::format("expected a time of 0 us or more, found {}", us));
    }
    return us;
}

Conditions conditions_of(const Json& line) {
    const Json& device = line.at("device");
    const Json& settings = line.at("settings");
    return {.kind = line.at("kind").get<std::string>(),
            .device = device.at("name").get<std::string>(),
            .device_target = device.at("target").get<std::string>(),
            .compute_units = device.at("compute_units").get<std::int64_t>(),
            .simulated = device.at("simulated").get<bool>(),
            .driver = line.at("driver").get<std::string>(),
            .compiler = line.at("compiler").get<std::string>(),
            .seed = settings.at("seed").get<std::uint64_t>(),
            .error_bound = settings.at("error_bound").get<double>(),
            .min_improvement = settings.at("min_improvement").get<double>(),
            .warmup = settings.at("warmup").get<std::int64_t>(),
            .iters = settings.at("iters").get<std::int64_t>(),
            .processes = settings.at("processes").get<std::int64_t>(),
            .model = settings.value("model", std::int64_t{0}),
            .date = line.at("date").get<std::string>()};
}

Json ranked_json(const std::optional<Ranked>& ranked) {
    return ranked ? Json{{"bucket", to_json(ranked->bucket)}, {"us", ranked->us}} : Json();
}

std::optional<Ranked> ranked_from(const Json& value) {
    return value.is_null() ? std::nullopt
                           : std::optional(Ranked{bucket_from(value.at("bucket")),
                                                  check_time(value.at("us").get<double>())});
}

// Whether two records, candidates or choices, say something of the same subject under the same conditions.
template <class Record>
bool is_of(const Record& one, const Record& other) {
    return one.subject == other.subject && one.conditions.difference(other.conditions).empty();
}

void add_final(const Json& line, Records& records) {
    const Subject subject = subject_of(line);
    const tables::Bucket bucket = bucket_from(line.at("bucket"));
    const Conditions conditions = conditions_of(line);
    // The last one: files may have been put together.
    const auto reversed = std::views::reverse(records.candidates);
    const auto candidate = std::ranges::find_if(reversed, [&](const CandidateRecord& one) {
        return one.subject == subject && one.bucket == bucket &&
               one.conditions.difference(conditions).empty();
    });
    if (candidate == reversed.end()) {
        throw std::invalid_argument("expected the candidate of a final before it");
    }
    candidate->finals_us.clear();
    for (const Json& us : line.at("finals_us")) {
        candidate->finals_us.push_back(check_time(us.get<double>()));
    }
    candidate->finding.us = check_time(line.at("us").get<double>());
}

// Throws what says why it can not be meant.
void add_line(const Json& line, Records& records) {
    if (line.at("schema") != kRecordSchema) {
        throw std::invalid_argument(
            fmt::format("expected schema {}, found {}", kRecordSchema, line.at("schema").dump()));
    }
    const auto record = line.at("record").get<std::string>();
    if (record == "candidate") {
        CandidateRecord candidate{subject_of(line),
                                  conditions_of(line),
                                  bucket_from(line.at("bucket")),
                                  line.at("present").get<bool>(),
                                  line.value("code", std::string()),
                                  finding_from(line),
                                  {}};
        if (candidate.finding.us) {
            check_time(*candidate.finding.us);
        }
        std::erase_if(records.candidates, [&](const CandidateRecord& earlier) {
            return is_of(earlier, candidate) && earlier.present == candidate.present &&
                   (candidate.present || earlier.bucket == candidate.bucket);
        });
        records.candidates.push_back(std::move(candidate));
    } else if (record == "final") {
        add_final(line, records);
    } else if (record == "choice") {
        ChoiceRecord choice{subject_of(line),
                            conditions_of(line),
                            ranked_from(line.at("winner")),
                            ranked_from(line.at("runner_up")),
                            ranked_from(line.at("present")),
                            line.at("stays").get<bool>(),
                            line.at("why").get<std::string>()};
        std::erase_if(records.choices, [&](const ChoiceRecord& earlier) { return is_of(earlier, choice); });
        records.choices.push_back(std::move(choice));
    } else {
        throw std::invalid_argument(
            fmt::format("expected the record candidate, final or choice, found {}", record));
    }
}

std::string line_of(const Json& object) {
    return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view to_text(Status status) {
    return kStatusNames[static_cast<std::size_t>(status)];
}

std::string Conditions::difference(const Conditions& other) const {
    const auto differs = [](std::string_view what, const auto& mine, const auto& theirs) {
        return mine == theirs ? std::string() : fmt::format("{} {} and {}", what, mine, theirs);
    };
    for (std::string said :
         {differs("kind", kind, other.kind), differs("device", device, other.device),
          differs("target", device_target, other.device_target),
          differs("compute units", compute_units, other.compute_units),
          differs("driver", driver, other.driver), differs("compiler", compiler, other.compiler),
          differs("seed", seed, other.seed), differs("error bound", error_bound, other.error_bound),
          differs("min improvement", min_improvement, other.min_improvement),
          differs("warmup", warmup, other.warmup), differs("iters", iters, other.iters),
          differs("processes", processes, other.processes), differs("cost model", model, other.model)}) {
        if (!said.empty()) {
            return said;
        }
    }
    return {};
}

bool ChoiceRecord::says_same(const ChoiceRecord& other) const {
    return is_of(*this, other) && winner == other.winner && runner_up == other.runner_up &&
           present == other.present && stays == other.stays && why == other.why;
}

std::string candidate_line(const CandidateRecord& record) {
    Json line = head_of("candidate", record.subject, record.conditions);
    line["bucket"] = to_json(record.bucket);
    line["present"] = record.present;
    line["code"] = record.code;
    add_finding(line, record.finding);
    return line_of(line);
}

std::string final_line(const CandidateRecord& record) {
    Json line = head_of("final", record.subject, record.conditions);
    line["bucket"] = to_json(record.bucket);
    line["us"] = record.finding.us.value_or(0);
    line["finals_us"] = record.finals_us;
    return line_of(line);
}

std::string choice_line(const ChoiceRecord& record) {
    Json line = head_of("choice", record.subject, record.conditions);
    line["winner"] = ranked_json(record.winner);
    line["runner_up"] = ranked_json(record.runner_up);
    line["present"] = ranked_json(record.present);
    line["stays"] = record.stays;
    line["why"] = record.why;
    return line_of(line);
}

namespace {

constexpr std::size_t kShownOfLine = 40;

// Whether text without the end of its line can be what is left of a record that was being written. A file of
// something else, which has no such end either, must not be taken for one: its line would be cut off.
bool is_cut_line(std::string_view text) {
    const auto begin = fmt::format(R"({{"schema":{},"record":")", kRecordSchema);
    return text.starts_with(begin) || std::string_view(begin).starts_with(text);
}

}  // namespace

Result<Records> parse_records(std::string_view text, const std::string& name) {
    Records records;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            if (!is_cut_line(text)) {
                return fail(
                    ErrorCode::bad_input, Stage::configure,
                    fmt::format("{}:{}: expected a record of kiln tune, or the beginning of one, found {}",
                                name, number, text.substr(0, kShownOfLine)));
            }
            break;
        }
        try {
            add_line(Json::parse(text.substr(0, end)), records);
        } catch (const std::exception& exception) {
            return fail(
                ErrorCode::bad_input, Stage::configure,
                fmt::format("{}:{}: expected a record of kiln tune: {}", name, number, exception.what()));
        }
        text.remove_prefix(end + 1);
    }
    return records;
}

Result<Records> read_records(const std::filesystem::path& path) {
    return read_text_file(path, Stage::configure).and_then([&](const std::string& text) {
        return parse_records(text, path.string());
    });
}

}  // namespace kiln::tune
