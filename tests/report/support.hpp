// What the tests of reports share: records and rows written for them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/report/report.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::report {

inline tune::Conditions conditions(const std::string& kind = "model") {
    tune::Conditions made;
    made.kind = kind;
    made.device = kind == "model" ? "a simulator" : "a GPU";
    made.device_target = "gfx950";
    made.compute_units = 256;
    made.simulated = kind == "model";
    made.driver = "driver 1.2";
    made.compiler = "a compiler 0123456789ab, its other half cdef";
    return made;
}

inline tables::Problem experts(std::int64_t hidden = 4096) {
    return {{"hidden", hidden},
            {"intermediate", std::int64_t{512}},
            {"experts", std::int64_t{512}},
            {"slots", std::int64_t{10}},
            {"weights", std::string("mxfp4")}};
}

inline tables::Bucket small(std::int64_t max_m, std::int64_t columns = 4) {
    return {max_m, "fused_moe/small_m", {{"columns", columns}, {"same", 7}}};
}
inline tables::Bucket sorted(std::int64_t max_m, std::int64_t block_m = 32) {
    return {max_m, "fused_moe/mxmoe", {{"block_m", block_m}}};
}

inline tune::CandidateRecord candidate(const tables::Bucket& bucket, std::int64_t m, double us,
                                       const std::string& kind = "model") {
    tune::CandidateRecord record;
    record.subject = {"fused_moe", experts(), "gfx950", m};
    record.conditions = conditions(kind);
    record.bucket = bucket;
    record.finding.status = tune::Status::ok;
    record.finding.us = us;
    return record;
}

// Of a model: three quarters of the time wait for memory, the rest starts two kernels.
inline tune::CandidateRecord modelled(const tables::Bucket& bucket, std::int64_t m, double us) {
    auto record = candidate(bucket, m, us);
    tune::KernelCost first{
        .symbol = "first", .us = us / 2, .memory_us = us * 3 / 8, .launch_us = us / 8, .bound_by = "memory"};
    auto second = first;
    second.symbol = "second";
    record.finding.cost = tune::Cost{us, {first, second}};
    return record;
}

inline tune::CandidateRecord failing(const tables::Bucket& bucket, std::int64_t m, tune::Status status,
                                     const std::string& message) {
    auto record = candidate(bucket, m, 1);
    record.finding = {};
    record.finding.status = status;
    record.finding.message = message;
    return record;
}

inline tune::ChoiceRecord choice(std::int64_t m, const tables::Bucket& winner,
                                 const tables::Bucket& runner_up, const std::string& why,
                                 const std::string& kind = "model") {
    tune::ChoiceRecord record;
    record.subject = {"fused_moe", experts(), "gfx950", m};
    record.conditions = conditions(kind);
    record.winner = {winner, 0};
    record.runner_up = {runner_up, 0};
    record.why = why;
    return record;
}

inline tables::Row row(const std::string& kind, const std::string& document,
                       std::vector<tables::Bucket> buckets) {
    tables::Row made;
    made.operator_name = "fused_moe";
    made.problem = experts();
    made.target = *tables::parse_target("gfx950");
    made.buckets = std::move(buckets);
    made.provenance = {kind, "", document};
    made.origin = {"t.json", 3};
    return made;
}

// Two templates that cross between M = 16 and 32, as a model has them, and the same measured.
inline Report crossing() {
    tune::Records records;
    records.candidates = {modelled(small(16), 16, 40), modelled(sorted(16), 16, 60),
                          modelled(small(32), 32, 130.4), modelled(sorted(32), 32, 99.5),
                          candidate(small(16), 16, 50, "measured")};
    return make_report(records, {});
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace kiln::report
