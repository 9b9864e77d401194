#include "runtime/sim/hip/rules.hpp"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/log.hpp"

namespace kiln::sim::hip {
namespace {

// Null texts leave what there is.
template <class T>
Result<void> read(T& rule, const char* text, std::string_view name, Result<T> (*parse)(std::string_view)) {
    if (text == nullptr) {
        return {};
    }
    const Result<T> parsed = parse(text);
    if (!parsed) {
        return fail(parsed.error().code, parsed.error().stage,
                    fmt::format("{}: {}", name, parsed.error().message));
    }
    rule = *parsed;
    return {};
}

}  // namespace

const char* variable(const char* name) {
    const char* const text = std::getenv(name);
    return text != nullptr && *text != '\0' ? text : nullptr;
}

Rules environment_rules() {
    Rules rules;
    const auto warn = [](const Result<void>& result) {
        if (!result) {
            log::warning("{}; it counts for nothing", result.error().message);
        }
    };
    warn(read(rules.order, variable("KILN_SIM_ORDER"), "KILN_SIM_ORDER", parse_order));
    warn(read(rules.scopes, variable("KILN_SIM_SCOPES"), "KILN_SIM_SCOPES", parse_scopes));
    warn(read(rules.checks, variable("KILN_SIM_CHECK"), "KILN_SIM_CHECK", parse_checks));
    return rules;
}

Result<Rules> changed(Rules rules, const kiln_sim_rules& said) {
    return read(rules.order, said.order, "order", parse_order)
        .and_then([&] { return read(rules.scopes, said.scopes, "scopes", parse_scopes); })
        .and_then([&] { return read(rules.checks, said.checks, "checks", parse_checks); })
        .map([&] { return rules; });
}

}  // namespace kiln::sim::hip
