// kiln explain: which row, bucket, template and constants serve a problem at one M, and what it is kept
// under.

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct ExplainOptions {
    std::vector<std::string> words;
    std::string m;
    std::string target;
    std::string cu_num;
};

Json describe(const tables::Row& row) {
    Json object = {{"origin", row.origin.text()}, {"file", row.origin.file},
                   {"line", row.origin.line},     {"layer", tables::to_text(row.layer)},
                   {"target", row.target.text()}, {"provenance", Json::parse(row.provenance.document)}};
    if (row.cu_num) {
        object["cu_num"] = *row.cu_num;
    }
    return object;
}

Json describe(const tables::Budget& budget) {
    Json object = Json::object();
    if (budget.waves_per_simd) {
        object["waves_per_simd"] = *budget.waves_per_simd;
    }
    if (budget.lds_bytes) {
        object["lds_bytes"] = *budget.lds_bytes;
    }
    return object;
}

void print_budget(const tables::Budget& budget) {
    if (budget.waves_per_simd) {
        print("budget     waves_per_simd {}\n", *budget.waves_per_simd);
    }
    if (budget.lds_bytes) {
        print("budget     lds_bytes {}\n", *budget.lds_bytes);
    }
}

std::string row_text(const tables::Row& row) {
    return fmt::format("{} ({}), for {}", row.origin.text(), tables::to_text(row.layer), row.device_text());
}

void print_launch(const operators::Pipeline& pipeline, std::int64_t m) {
    const bool is_alone = pipeline.stages.size() == 1;
    for (const auto& [specialisation, offset] : pipeline.stages) {
        for (const auto& kernel : specialisation.kernels) {
            const auto shape = kernel.shape_for(m);
            print("launch     {}{} x {} x {} work-groups of {}, {} bytes of dynamic LDS\n",
                  !is_alone || specialisation.kernels.size() > 1 ? kernel.symbol + ": " : "", shape.grid.x,
                  shape.grid.y, shape.grid.z, shape.block.x * shape.block.y * shape.block.z,
                  shape.dynamic_lds_bytes);
        }
    }
    if (const auto need = pipeline.workspace(m); need.any()) {
        print("workspace  {} bytes of counters, {} of scratch\n", need.zeroed, need.scratch);
    }
}

Json describe_launch(const operators::Specialisation& specialisation, std::int64_t m) {
    Json kernels = Json::array();
    for (const auto& kernel : specialisation.kernels) {
        const auto shape = kernel.shape_for(m);
        kernels.push_back({{"symbol", kernel.symbol},
                           {"grid", {shape.grid.x, shape.grid.y, shape.grid.z}},
                           {"block", {shape.block.x, shape.block.y, shape.block.z}},
                           {"dynamic_lds_bytes", shape.dynamic_lds_bytes}});
    }
    return kernels;
}

Json describe(const service::Explanation::Kept& kept) {
    if (kept.key) {
        return {{"key", kept.key->digest().hex()}, {"cached", kept.cached}};
    }
    return {{"key_missing", kept.key_missing}};
}

// What a bucket comes to: its launches, and its stages with what each is kept under. One that has a single
// stage is kept under that one's key.
void describe_pipeline(const service::Explanation& explanation, std::int64_t m, Json& object) {
    const auto& pipeline = *explanation.pipeline;
    const auto need = pipeline.workspace(m);
    object["kernel"] = pipeline.kernel_name;
    object["workspace"] = {{"zeroed_bytes", need.zeroed}, {"scratch_bytes", need.scratch}};
    object["launches"] = Json::array();
    object["stages"] = Json::array();
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        const auto& specialisation = pipeline.stages[i].specialisation;
        auto launches = describe_launch(specialisation, m);
        object["launches"].insert(object["launches"].end(), launches.begin(), launches.end());
        Json stage = {{"template", specialisation.source_template->id()},
                      {"kernel", specialisation.kernel_name},
                      {"launches", std::move(launches)}};
        stage.update(describe(explanation.kept[i]));
        object["stages"].push_back(std::move(stage));
    }
    if (pipeline.stages.size() == 1) {
        object.update(describe(explanation.kept.front()));
    } else {
        object["cached"] = std::ranges::all_of(explanation.kept, &service::Explanation::Kept::cached);
    }
}

void print_key(const service::Explanation::Kept& kept) {
    if (kept.key) {
        print("key        {} ({})\n", kept.key->digest().hex(),
              kept.cached ? "in the cache" : "not in the cache");
    } else {
        print("key        unknown: {}\n", kept.key_missing);
    }
}

Json describe(const service::Explanation& explanation, std::int64_t m) {
    Json object = {{"served", !explanation.refusal.has_value()}};
    if (explanation.refusal) {
        object["declined"] = to_json(*explanation.refusal);
    }
    if (explanation.row != nullptr) {
        object["row"] = describe(*explanation.row);
        if (explanation.found->is_general()) {
            object["row"]["admits"] = tables::to_text(explanation.found->open);
        }
        object["shadowed"] = Json::array();
        for (const auto& [row, why] : explanation.shadowed) {
            auto shadowed = describe(*row);
            shadowed["why"] = tables::to_text(why);
            object["shadowed"].push_back(std::move(shadowed));
        }
    }
    object["passed_over"] = Json::array();
    for (const auto& [index, why] : explanation.passed_over) {
        object["passed_over"].push_back({{"index", index}, {"why", why}});
    }
    if (explanation.bucket != nullptr) {
        object["bucket"] = {{"index", explanation.bucket_index}, {"max_m", explanation.bucket->max_m}};
        if (explanation.bucket->max_pairs) {
            object["bucket"]["max_pairs"] = *explanation.bucket->max_pairs;
        }
        object["budget"] = describe(explanation.bucket->budget);
        object["template"] = explanation.bucket->template_id;
        object["constants"] = explanation.bucket->constants;
    }
    if (explanation.pipeline) {
        describe_pipeline(explanation, m, object);
    }
    return object;
}

void print_explanation(const service::Explanation& explanation, std::int64_t m) {
    if (explanation.refusal) {
        print("declined   {}: {}\n", operators::decline_text(explanation.refusal->decline),
              explanation.refusal->error.message);
    }
    if (explanation.row != nullptr) {
        const auto& row = *explanation.row;
        print("row        {}, {}{}\n", row_text(row), row.provenance.kind,
              row.provenance.note.empty() ? "" : ": " + row.provenance.note);
        if (const auto& found = *explanation.found; found.is_general()) {
            print("general    admits {}\n", tables::to_text(found.open));
        }
    }
    for (const auto& [row, why] : explanation.shadowed) {
        print("hides      {}, {}\n", row_text(*row), tables::to_text(why));
    }
    for (const auto& [index, why] : explanation.passed_over) {
        print("passes by  bucket {}, up to M = {}: {}\n", index, explanation.row->buckets[index].max_m, why);
    }
    if (explanation.bucket != nullptr) {
        const auto& bucket = *explanation.bucket;
        print("bucket     {}, up to M = {}{}\n", explanation.bucket_index, bucket.max_m,
              bucket.max_pairs ? fmt::format(" ({} pairs)", *bucket.max_pairs) : "");
        print_budget(bucket.budget);
        print("template   {}", explanation.bucket->template_id);
        for (const auto& [name, value] : explanation.bucket->constants) {
            print(" {}={}", name, value);
        }
        print("\n");
    }
    if (!explanation.pipeline) {
        return;
    }
    const auto& pipeline = *explanation.pipeline;
    print("kernel     {}\n", pipeline.kernel_name);
    print_launch(pipeline, m);
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
        if (pipeline.stages.size() > 1) {
            const auto& specialisation = pipeline.stages[i].specialisation;
            print("stage      {}, {}\n", specialisation.source_template->id(), specialisation.kernel_name);
        }
        print_key(explanation.kept[i]);
    }
}

ExitCode explain(const ExplainOptions& options, const CommonOptions& common) {
    const auto words = only_problem(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    const auto problem = operators::parse_problem(*words->op, words->fields);
    if (!problem) {
        return report(problem.error(), common);
    }
    const auto m = parse_number("--m", options.m, 1);
    if (!m) {
        return report(m.error(), common);
    }
    const auto cu_num = parse_cu_num(options.cu_num);
    if (!cu_num) {
        return report(cu_num.error(), common);
    }
    service::Overrides overrides;
    if (!options.target.empty()) {
        overrides.target = options.target;
    }
    auto opened = open_service(common, overrides);
    if (!opened) {
        return report(opened.error(), common);
    }
    auto& service = **opened;
    const tables::DeviceTraits device(service.settings().target, *cu_num);
    const auto explanation = service.explain(*words->op, *problem, *m, device);
    if (explanation.refusal && explanation.refusal->decline == 0) {
        return report(explanation.refusal->error, common);
    }
    if (common.json) {
        Json document = {{"operator", words->op->name()},
                         {"problem", to_json(*problem)},
                         {"m", *m},
                         {"target", device.target.text()}};
        if (device.cu_num) {
            document["cu_num"] = *device.cu_num;
        }
        document.update(describe(explanation, *m));
        print_json(document);
    } else {
        print("problem    {} {}, M = {}, on {}\n", words->op->name(),
              operators::format_problem(*words->op, *problem), *m, device.text());
        print_explanation(explanation, *m);
    }
    return ExitCode::ok;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("explain", "say which row and kernel serve a problem at one M, and why");
    auto options = std::make_shared<ExplainOptions>();
    command->add_option("problem", options->words, "OPERATOR key=value...")->required();
    command->add_option("--m", options->m, "tokens in the call, from 1 (0 launches nothing)")->required();
    command->add_option("--target", options->target, "gfx950, gfx950:xnack-, sm_90a (KILN_TARGET)");
    command->add_option("--cu-num", options->cu_num, kCuNumHelp);
    invocation.manuals.describe(
        *command,
        {.text = "A problem is OPERATOR key=value ..., where operators are linear, router, "
                 "moe_sort and fused_moe: linear n=4608 k=4096. Says which row of which table "
                 "serves it, which other rows it hides, the bucket for M, its template, constants "
                 "and kernels, and whether they are in the cache. Compiles nothing and touches no "
                 "device.",
         .examples =
             {{"kiln explain linear n=4608 k=4096 --m 8", "what a launch with 8 tokens would run on gfx950"},
              {"kiln explain --json router hidden=4096 experts=512 top_k=10 --m 1 --target gfx950:xnack-",
               "the same for a target, for a program"}},
         .exits = {{0, "it is served, or declined with a reason: that is an answer too"},
                   {2, "bad usage or bad input"},
                   {3, "the environment lacks something"},
                   {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return explain(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
