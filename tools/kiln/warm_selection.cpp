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
#include "tools/kiln/words.hpp"

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

}  // namespace

Result<Selection> select_to_warm(service::Service& service, const std::vector<service::WarmFilter>& filters,
                                 const std::string& asked) {
    Selection selection;
    auto& selected = selection.wanted;
    std::set<std::string> seen;
    std::set<std::string> switched_off;
    for (const auto& filter : filters) {
        std::vector<Error> errors;
        for (auto& specialisation : service.matching(filter, errors, &switched_off)) {
            if (seen.insert(specialisation.request_document).second) {
                selected.push_back(std::move(specialisation));
            }
        }
        if (!errors.empty()) {
            return tl::unexpected(errors.front());
        }
    }
    if (selected.empty() && switched_off.empty()) {
        return tl::unexpected(nothing_selected(service, filters, asked));
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
    return selection;
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

}  // namespace kiln::cli
