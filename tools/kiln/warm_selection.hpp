// Which specialisations `kiln warm` and `kiln bundle create` work on, and with how many compiles at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/service.hpp"

namespace kiln::cli {

struct Selection {
    std::vector<operators::Specialisation> wanted;
    // Left out:
    std::size_t switched_off = 0;      // a service declines their problems
    std::size_t without_compiler = 0;  // for processors that are none of this machine's business
    std::vector<std::string> remarks;  // a line for a person on each kind
};

// Specialisations that any of the filters selects, each once; without those that KILN_DISABLE switches off.
// Where the filters ask for no target, also without those of a vendor that nothing here compiles for and of
// which the cache holds nothing; unless that would leave none at all. not_found, with what was asked for,
// when the filters select nothing.
[[nodiscard]] Result<Selection> select_to_warm(service::Service& service,
                                               const std::vector<service::WarmFilter>& filters,
                                               const std::string& asked);

// What --target says; where it says nothing KILN_TARGET asks, if somebody set it; else empty.
[[nodiscard]] std::string asked_target(const std::string& target, const service::Settings& settings);

// What --jobs says; 0, as many as there are cores, where it says nothing.
[[nodiscard]] Result<unsigned> parse_jobs(const std::string& text);

}  // namespace kiln::cli
