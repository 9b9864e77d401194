#include "tools/kiln/warm_selection.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "runtime/compile/target_family.hpp"
#include "runtime/service/shards.hpp"

namespace kiln::cli {
namespace {

// Without a compiler for them, why; nothing where there is one, or where the cache holds any of them.
std::optional<std::string> why_foreign(service::Service& service,
                                       const std::vector<const operators::Specialisation*>& of_a_family) {
    const auto key = service.builder().key(*of_a_family.front());
    if (key || key.error().code != ErrorCode::environment ||
        std::ranges::any_of(of_a_family, [&](const auto* one) {
            const auto found = service.builder().find(*one);
            return !found || found->has_value();
        })) {
        return std::nullopt;
    }
    return key.error().message;
}

void leave_out_foreign(Selection& selection, service::Service& service) {
    std::map<compile::Family, std::vector<const operators::Specialisation*>> families;
    for (const auto& one : selection.wanted) {
        families[compile::family_of(one.target.processor)].push_back(&one);
    }
    std::set<compile::Family> foreign;
    std::vector<std::string> remarks;
    std::size_t left_out = 0;
    for (const auto& [family, members] : families) {
        if (const auto why = why_foreign(service, members)) {
            const auto target = members.front()->target.text();
            foreign.insert(family);
            left_out += members.size();
            remarks.push_back(fmt::format("{} specialisations are left out, which --target {} asks for: {}",
                                          members.size(), target, *why));
        }
    }
    if (foreign.empty() || foreign.size() == families.size()) {
        return;
    }
    std::erase_if(selection.wanted, [&](const auto& one) {
        return foreign.contains(compile::family_of(one.target.processor));
    });
    selection.without_compiler = left_out;
    std::ranges::move(remarks, std::back_inserter(selection.remarks));
}

std::uint64_t cost_of(const std::vector<operators::Specialisation>& specialisations) {
    std::uint64_t cost = 0;
    for (const auto& one : specialisations) {
        cost += service::estimated_compile_cost(one);
    }
    return cost;
}

// What a filter was made of, for a message that says it selects nothing.
std::string asked_for(const Words& words, std::size_t filter, const std::string& target) {
    std::vector<std::string> asked = words.tables;
    if (!words.problems.empty()) {
        asked.emplace_back(words.problems[filter].op->name());
        asked.insert(asked.end(), words.problems[filter].fields.begin(), words.problems[filter].fields.end());
    }
    return to_text(asked, target);
}

void keep_shard(Selection& selection, const Shard& shard) {
    const auto shards = service::assign_shards(selection.wanted, shard.count);
    const auto cost_of_all = cost_of(selection.wanted);
    std::vector<operators::Specialisation> kept;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        if (shards[i] == shard.index) {
            kept.push_back(std::move(selection.wanted[i]));
        }
    }
    selection.wanted = std::move(kept);
    selection.share = cost_of_all == 0
                          ? 0
                          : static_cast<double>(cost_of(selection.wanted)) / static_cast<double>(cost_of_all);
    selection.shard = shard;
}

}  // namespace

Result<Selection> select_to_warm(service::Service& service, const std::vector<service::WarmFilter>& filters,
                                 const Words& words, const std::string& target,
                                 const std::optional<Shard>& shard) {
    Selection selection;
    auto& wanted = selection.wanted;
    std::set<std::string> seen;
    std::set<std::string> switched_off;
    for (std::size_t i = 0; i < filters.size(); ++i) {
        std::vector<Error> errors;
        std::set<std::string> off;
        auto matching = service.matching(filters[i], errors, &off);
        if (!errors.empty()) {
            return tl::unexpected(errors.front());
        }
        if (matching.empty() && off.empty()) {
            return tl::unexpected(nothing_selected(service, {filters[i]}, asked_for(words, i, target)));
        }
        for (auto& specialisation : matching) {
            if (seen.insert(specialisation.request_document).second) {
                wanted.push_back(std::move(specialisation));
            }
        }
        switched_off.merge(off);
    }
    std::erase_if(switched_off, [&](const std::string& request) { return seen.contains(request); });
    selection.switched_off = switched_off.size();
    if (selection.switched_off > 0) {
        selection.remarks.push_back(fmt::format(
            "{} specialisations are left out: KILN_DISABLE switches them off", selection.switched_off));
    }
    if (std::ranges::none_of(filters, [](const auto& filter) { return filter.target.has_value(); })) {
        leave_out_foreign(selection, service);
    }
    selection.selected = wanted.size();
    if (shard) {
        keep_shard(selection, *shard);
    }
    return selection;
}

Json describe_shard(const Selection& selection) {
    if (!selection.shard) {
        return {};
    }
    return {{"index", selection.shard->index},
            {"count", selection.shard->count},
            {"selected", selection.selected},
            {"share", selection.share}};
}

void print_remarks(const Selection& selection, const CommonOptions& common) {
    for (const auto& remark : selection.remarks) {
        print_diagnostic(remark);
    }
    if (selection.shard && !common.json) {
        print("shard {}/{}: {} of {} specialisations, {:.1f}% of the estimated compile time\n",
              selection.shard->index, selection.shard->count, selection.wanted.size(), selection.selected,
              selection.share * 100);
    }
}

std::string asked_target(const std::string& target, const service::Settings& settings) {
    if (!target.empty()) {
        return target;
    }
    const auto setting = std::ranges::find(settings.listed, "KILN_TARGET", &service::Setting::variable);
    return setting->origin == service::Origin::preset ? std::string() : setting->value;
}

Result<unsigned> parse_jobs(const std::string& text) {
    if (text.empty()) {
        return 0u;
    }
    const auto jobs = parse_number("--jobs", text, 1);
    if (!jobs) {
        return tl::unexpected(jobs.error());
    }
    return static_cast<unsigned>(std::min<std::int64_t>(*jobs, std::numeric_limits<std::uint16_t>::max()));
}

Result<std::optional<Shard>> parse_shard(const std::string& text) {
    if (text.empty()) {
        return std::optional<Shard>();
    }
    constexpr std::int64_t kMost = 10'000;
    const auto slash = text.find('/');
    const auto index = parse_number("--shard", text.substr(0, slash), 0);
    const auto count =
        slash == std::string::npos ? index : parse_number("--shard", text.substr(slash + 1), 1);
    if (slash == std::string::npos || !index || !count || *index >= *count || *count > kMost) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    fmt::format("--shard: expected I/N with N from 1 to {} and I from 0 to N - 1, found "
                                "\"{}\"",
                                kMost, text));
    }
    return Shard{static_cast<std::uint32_t>(*index), static_cast<std::uint32_t>(*count)};
}

}  // namespace kiln::cli
