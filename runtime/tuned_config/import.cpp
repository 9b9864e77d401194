#include "runtime/tuned_config/import.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/tuned_config/kernel_names.hpp"

namespace kiln::tuned_config {
namespace {

using Json = nlohmann::json;

std::string describe(const FormRow& row) {
    return fmt::format("token {} of model_dim={} inter_dim={} expert={} topk={}", row.token, row.model_dim,
                       row.inter_dim, row.expert, row.topk);
}

// What a column must say for fused_moe with mxfp4 weights and activations.
std::optional<std::string> why_another_problem(const FormRow& row) {
    const auto refuse = [](std::string_view column, std::string_view expected, const auto& found) {
        return fmt::format("{}: fused_moe/mxmoe is for {}, found {}", column, expected, found);
    };
    constexpr std::string_view kFp4 = "torch.float4_e2m1fn_x2";
    const std::pair<std::string_view, std::pair<const std::string*, std::string_view>> words[] = {
        {"act_type", {&row.act_type, "ActivationType.Silu"}},
        {"dtype", {&row.dtype, "torch.bfloat16"}},
        {"q_dtype_a", {&row.q_dtype_a, kFp4}},
        {"q_dtype_w", {&row.q_dtype_w, kFp4}},
        {"q_type", {&row.q_type, "QuantType.per_1x32"}}};
    for (const auto& [column, value] : words) {
        if (*value.first != value.second) {
            return refuse(column, value.second, *value.first);
        }
    }
    if (!row.use_g1u1) {
        return refuse("use_g1u1", "gate and up together (1)", 0);
    }
    if (row.doweight_stage1) {
        return refuse("doweight_stage1", "weights applied behind the second product (0)", 1);
    }
    if (row.ksplit > 1) {
        return refuse("ksplit", "k in one part (0 or 1)", row.ksplit);
    }
    if (row.run_1stage) {
        return refuse("run_1stage", "two stages (0)", 1);
    }
    if (row.token > kMaxToken || (row.token & (row.token - 1)) != 0) {
        return fmt::format("token: who looks up asks for powers of two up to {}, found {}", kMaxToken,
                           row.token);
    }
    return std::nullopt;
}

tables::Row empty_row(const FormRow& row) {
    tables::Row made;
    made.operator_name = "fused_moe";
    made.problem = {{"hidden", row.model_dim},
                    {"intermediate", row.inter_dim},
                    {"experts", row.expert},
                    {"slots", row.topk},
                    {"weights", std::string("mxfp4")}};
    made.target = row.target;
    made.cu_num = row.cu_num;
    return made;
}

// The bucket, or why there is none.
tl::expected<tables::Bucket, std::string> bucket_of(const FormRow& row, const tables::RowCheck& check) {
    if (auto why = why_another_problem(row)) {
        return tl::unexpected(*std::move(why));
    }
    auto constants = constants_of({row.kernel1, row.kernel2});
    if (!constants) {
        return tl::unexpected(std::move(constants.error()));
    }
    if (constants->find("block_m")->second != row.block_m) {
        return tl::unexpected(fmt::format("block_m: the kernels' tiles have {} rows, found {}",
                                          constants->find("block_m")->second, row.block_m));
    }
    tables::Bucket bucket;
    bucket.max_m = row.token;
    bucket.template_id = kTemplate;
    bucket.constants = *std::move(constants);
    auto alone = empty_row(row);
    alone.buckets = {bucket};
    for (const auto& fault : check(alone)) {
        if (fault.severity == tables::RowFault::Severity::fault) {
            return tl::unexpected(
                fmt::format("{}: expected {}, found {}", fault.pointer, fault.expected, fault.found));
        }
    }
    return bucket;
}

Json provenance_of(const FormRow& row) {
    Json object = {
        {"max_m", row.token}, {"line", row.line}, {"timing", to_text(row.timing)}, {"cells", row.cells}};
    const std::pair<const char*, std::optional<double>> numbers[] = {
        {"us", row.us}, {"us1", row.us1}, {"us2", row.us2}, {"err1", row.err1}, {"err2", row.err2}};
    for (const auto& [name, value] : numbers) {
        if (value) {
            object[name] = *value;
        }
    }
    return object;
}

// The rows of the file that are one row of a table, by token.
struct Group {
    tables::Row row;
    std::vector<std::pair<tables::Bucket, Json>> buckets;
};

tables::Row finish(Group group, const Form& form, std::string_view file) {
    std::ranges::sort(group.buckets, {}, [](const auto& one) { return one.first.max_m; });
    Json rows = Json::array();
    for (auto& [bucket, said] : group.buckets) {
        group.row.buckets.push_back(std::move(bucket));
        rows.push_back(std::move(said));
    }
    const Json provenance = {{"kind", "imported"},
                             {"file", std::filesystem::path(file).filename().string()},
                             {"columns", form.columns},
                             {"rows", std::move(rows)}};
    group.row.provenance = {"imported", {}, provenance.dump()};
    return std::move(group.row);
}

// A bucket reaches down to the next power of two below its token and no further, as a lookup does.
std::vector<Gap> gaps_of(const tables::Row& row, std::size_t index) {
    std::vector<Gap> gaps;
    std::int64_t before = 0;
    for (const auto& bucket : row.buckets) {
        const auto from = bucket.max_m / 2;
        if (from > before) {
            gaps.push_back({index, before + 1, from});
        }
        before = bucket.max_m;
    }
    return gaps;
}

}  // namespace

Import import_csv(std::string_view file, std::string_view text, const tables::RowCheck& check) {
    Import made;
    made.form = read_form(file, text);
    const auto rows = std::exchange(made.form.rows, {});
    if (!made.form.faults.empty()) {
        return made;
    }
    std::vector<Group> groups;
    std::map<std::string, std::size_t> known;
    for (const auto& row : rows) {
        auto bucket = bucket_of(row, check);
        if (!bucket) {
            made.leftovers.push_back({row.line, describe(row), std::move(bucket.error())});
            continue;
        }
        const auto [place, is_new] = known.emplace(row.group(), groups.size());
        if (is_new) {
            groups.push_back({empty_row(row), {}});
        }
        groups[place->second].buckets.emplace_back(*std::move(bucket), provenance_of(row));
        ++made.num_imported;
        ++made.timings[row.timing];
    }
    for (auto& group : groups) {
        made.rows.push_back(finish(std::move(group), made.form, file));
        std::ranges::move(gaps_of(made.rows.back(), made.rows.size() - 1), std::back_inserter(made.gaps));
    }
    return made;
}

std::vector<Gap> fill_gaps(tables::Row& row, std::vector<Gap> gaps, const tables::Row& present,
                           const std::function<bool(const tables::Bucket&)>& is_deterministic) {
    std::vector<tables::Bucket> filled;
    std::vector<Gap> left;
    // Those of `present` that reach into (after, to]; `to` where it is open.
    const auto fill = [&](std::int64_t after, std::optional<std::int64_t> to) {
        std::int64_t done = after;
        std::int64_t last = 0;  // where the one that was taken last ends in `present`
        for (auto bucket : present.buckets) {
            // Behind a bucket its like for problems that demand more ends where it does.
            if (bucket.max_m != last && (bucket.max_m <= done || (to && done >= *to))) {
                continue;
            }
            last = bucket.max_m;
            bucket.max_m = to ? std::min(bucket.max_m, *to) : bucket.max_m;
            done = bucket.max_m;
            filled.push_back(std::move(bucket));
        }
        return done;
    };
    for (auto& gap : gaps) {
        const auto done = fill(gap.from - 1, gap.to);
        if (done < gap.to) {
            gap.from = done + 1;
            left.push_back(gap);
        }
    }
    fill(row.buckets.back().max_m, std::nullopt);
    for (const auto& bucket : row.buckets) {
        const auto meets = std::ranges::find_if(present.buckets, [&](const tables::Bucket& one) {
            return one.max_m >= bucket.max_m && is_deterministic(one);
        });
        if (!is_deterministic(bucket) && meets != present.buckets.end()) {
            filled.push_back(*meets);
            filled.back().max_m = bucket.max_m;
        }
    }
    if (!filled.empty()) {
        std::ranges::move(filled, std::back_inserter(row.buckets));
        std::ranges::stable_sort(row.buckets, {}, &tables::Bucket::max_m);  // the file's before its like
        auto provenance = Json::parse(row.provenance.document);
        provenance["note"] = row.provenance.note = fmt::format(
            "What the file has no row for is from {} ({}).", present.origin.file, present.provenance.kind);
        row.provenance.document = provenance.dump();
    }
    return left;
}

}  // namespace kiln::tuned_config
