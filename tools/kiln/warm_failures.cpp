#include "tools/kiln/warm_failures.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

// The message of an error without the specialisation that it begins with, so that equal reasons compare
// equal.
std::string reason_of(const service::WarmItem& item) {
    const auto& request = item.specialisation.request;
    const auto label =
        fmt::format("{} ({} for {})", item.specialisation.kernel_name, request.name, request.target);
    const auto& message = item.error->message;
    if (!message.starts_with(label)) {
        return message;
    }
    const auto rest = message.find_first_not_of(" :", label.size());
    return rest == std::string::npos ? message : message.substr(rest);
}

}  // namespace

std::string to_text(const operators::Specialisation& specialisation) {
    return fmt::format("{} {} max_m={} {}", specialisation.op->name(),
                       operators::format_problem(*specialisation.op, specialisation.problem),
                       specialisation.bucket.max_m, specialisation.target.text());
}

ExitCode print_failures(const service::WarmSummary& summary) {
    auto exit_code = ExitCode::ok;
    std::vector<std::pair<std::string, std::vector<const service::WarmItem*>>> by_reason;
    for (const auto& item : summary.items) {
        if (!item.error) {
            continue;
        }
        exit_code = std::max(exit_code, exit_code_of(*item.error));
        const auto reason = reason_of(item);
        const auto known = std::ranges::find(by_reason, reason, &decltype(by_reason)::value_type::first);
        auto& items = known != by_reason.end()
                          ? known->second
                          : by_reason.emplace_back(reason, std::vector<const service::WarmItem*>()).second;
        items.push_back(&item);
    }
    for (const auto& [reason, items] : by_reason) {
        const auto others = items.size() > 1 ? fmt::format(", and {} more", items.size() - 1) : std::string();
        print_diagnostic(fmt::format("{}{}: {}", to_text(items.front()->specialisation), others, reason));
    }
    return exit_code;
}

}  // namespace kiln::cli
