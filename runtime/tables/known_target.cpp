#include "runtime/tables/known_target.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest.hpp"

namespace kiln::tables {
namespace {

// Of LLVM's AMDGPU back end, those that HIP runs on, and NVIDIA's from Volta. Of two equally
// near ones the first is named.
constexpr std::string_view kProcessors[] = {
    "gfx950",          "gfx942",          "gfx90a",        "gfx908",        "gfx906",       "gfx900",
    "gfx902",          "gfx904",          "gfx909",        "gfx90c",        "gfx803",       "gfx1010",
    "gfx1011",         "gfx1012",         "gfx1013",       "gfx1030",       "gfx1031",      "gfx1032",
    "gfx1033",         "gfx1034",         "gfx1035",       "gfx1036",       "gfx1100",      "gfx1101",
    "gfx1102",         "gfx1103",         "gfx1150",       "gfx1151",       "gfx1152",      "gfx1153",
    "gfx1200",         "gfx1201",         "gfx1250",       "gfx1251",       "gfx9-generic", "gfx9-4-generic",
    "gfx10-1-generic", "gfx10-3-generic", "gfx11-generic", "gfx12-generic", "sm_70",        "sm_72",
    "sm_75",           "sm_80",           "sm_86",         "sm_87",         "sm_89",        "sm_90",
    "sm_90a",          "sm_100",          "sm_100a",       "sm_103",        "sm_103a",      "sm_120",
    "sm_120a",         "sm_121",          "sm_121a",
};

constexpr std::string_view kAmdFeatures[] = {"sramecc", "xnack"};

}  // namespace

bool is_known_processor(std::string_view processor) {
    return std::ranges::find(kProcessors, processor) != std::end(kProcessors);
}

std::optional<TargetFault> judge_target(const Target& target, bool is_served) {
    if (!is_served && !is_known_processor(target.processor)) {
        return TargetFault{fmt::format("a processor that there is; the nearest is {}",
                                       nearest(target.processor, kProcessors)),
                           fmt::format("\"{}\"", target.processor)};
    }
    const bool amd = target.processor.starts_with("gfx");
    for (const auto& [feature, on] : target.features) {
        if (!amd) {
            return TargetFault{fmt::format("no feature pinned: {} has none", target.processor),
                               fmt::format("\"{}\"", feature)};
        }
        if (std::ranges::find(kAmdFeatures, feature) == std::end(kAmdFeatures)) {
            return TargetFault{
                fmt::format("a feature that {} has: {}", target.processor, fmt::join(kAmdFeatures, " or ")),
                fmt::format("\"{}\"", feature)};
        }
    }
    return std::nullopt;
}

Result<Target> parse_asked_target(std::string_view text) {
    auto target = parse_target(text);
    if (target) {
        if (const auto fault = judge_target(*target, true)) {
            return fail(
                ErrorCode::bad_input, Stage::table,
                fmt::format("target \"{}\": expected {}, found {}", text, fault->expected, fault->found));
        }
    }
    return target;
}

}  // namespace kiln::tables
