// What a tune keeps of everything that it tried: a file of JSON lines that `kiln report` reads and a killed
// tune goes on from.
//
// Every line is an object that stands alone, so files may be put together with cat. Members of each:
//   "schema": 1, "record": "candidate", "final" or "choice", "operator", "problem" (complete), "target", "m",
//   "kind": "measured" or "model", "device": {"name", "target", "compute_units", "simulated"}, "driver",
//   "compiler", "date": "2026-11-30", "settings": {"seed", "error_bound",
//   "min_improvement", "warmup", "iters", "processes", "model": the revision of the cost model, 0 where
//   there is none}
// "candidate": "bucket": {"max_m", "template", "constants"}, "present", "code": digits that are others when
//   its kernels are compiled from other sources, or otherwise, "status", then as far as it came: "message",
//   "error", "bound", "us", and "samples_us" or "cost"
// "final": a finalist replayed longer: "bucket", "us", "finals_us", a median for each process; this "us" is
//   what decides
// "choice": "winner", "runner_up" and "present", each {"bucket", "us"} or null; "stays", "why"
// A "us" is always of the whole launch, end to end, never a sum of stages that were timed alone; where the
// kind is "model", nothing was timed. A reader ignores members that it does not know.
//
// Of records of one subject under the same conditions the last one holds: of candidates with one bucket, of
// those that are "present", of choices.
//
// Version history of the schema: 1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/tables/table.hpp"
#include "runtime/tune/cost_model.hpp"

namespace kiln::tune {

inline constexpr int kRecordSchema = 1;

enum class Status {
    ok,
    failed,   // does not compile, load or launch, or does not keep to its budget
    wrong,    // its result is off the reference: never timed
    hung,     // ended at the limit of time
    crashed,  // its process ended
};
[[nodiscard]] std::string_view to_text(Status status);  // "ok"

// What was tuned.
struct Subject {
    std::string operator_name;
    tables::Problem problem;  // complete
    std::string target;       // that a row for it names
    std::int64_t m = 0;

    friend bool operator==(const Subject&, const Subject&) = default;
};

// Where and how. Whatever differs in any member but the date can not be compared.
struct Conditions {
    std::string kind;  // "measured", "model"
    std::string device, device_target;
    std::int64_t compute_units = 0;
    bool simulated = false;
    std::string driver, compiler;
    std::uint64_t seed = 0;
    double error_bound = 0;      // as a part of the operator's own
    double min_improvement = 0;  // percent
    std::int64_t warmup = 0, iters = 0, processes = 0;
    std::int64_t model = 0;  // kCostModelRevision; 0: what was measured
    std::string date;

    // Whether results of both may stand in one file; names the first member that differs, empty: none.
    [[nodiscard]] std::string difference(const Conditions& other) const;
};

// How far one candidate came.
struct Finding {
    Status status = Status::failed;
    std::string message = {};  // where it is not ok
    std::optional<double> error = {}, bound = {};
    std::optional<double> us = {};
    std::vector<double> samples_us = {};  // measured: of each iteration
    std::optional<Cost> cost = {};        // model
};

struct CandidateRecord {
    Subject subject;
    Conditions conditions;
    tables::Bucket bucket;
    bool present = false;
    std::string code;  // of what its kernels are compiled from; empty where that can not be said
    Finding finding;
    std::vector<double> finals_us;  // of a finalist, once it was replayed longer: finding.us is their median
};

struct Ranked {
    tables::Bucket bucket;
    double us = 0;

    friend bool operator==(const Ranked&, const Ranked&) = default;
};

struct ChoiceRecord {
    Subject subject;
    Conditions conditions;
    std::optional<Ranked> winner, runner_up, present;
    bool stays = false;  // the present bucket
    std::string why;     // a sentence

    // Whatever the dates.
    [[nodiscard]] bool says_same(const ChoiceRecord& other) const;
};

struct Records {
    std::vector<CandidateRecord> candidates;  // that hold, in the order of the file
    std::vector<ChoiceRecord> choices;
};

// Each a line with its end.
[[nodiscard]] std::string candidate_line(const CandidateRecord& record);
// Of a candidate that has finals_us.
[[nodiscard]] std::string final_line(const CandidateRecord& record);
[[nodiscard]] std::string choice_line(const ChoiceRecord& record);

// bad_input names the file, the line and what is not as it should be. A last line without its end that begins
// as a record does was being written when its writer was killed, and is passed over.
[[nodiscard]] Result<Records> parse_records(std::string_view text, const std::string& name);
// The same from a file.
[[nodiscard]] Result<Records> read_records(const std::filesystem::path& path);

}  // namespace kiln::tune
