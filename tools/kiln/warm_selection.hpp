// Which specialisations `kiln warm` and `kiln bundle create` work on, and with how many compiles at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/service.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {

// What --shard names: part `index` of `count`, from 0.
struct Shard {
    std::uint32_t index = 0;
    std::uint32_t count = 1;
};

struct Selection {
    std::vector<operators::Specialisation> wanted;  // of the shard, where there is one
    std::size_t selected = 0;                       // of all shards together
    std::optional<Shard> shard;
    double share = 1;  // of the estimated compile time of all shards that is this one's
    // Left out:
    std::size_t switched_off = 0;      // a service declines their problems
    std::size_t without_compiler = 0;  // for processors that are none of this machine's business
    std::vector<std::string> remarks;  // a line for a person on each kind
};

// Specialisations that any of the filters, make_filters(words, target), selects, each once; without those
// that KILN_DISABLE switches off. Where the filters ask for no target, also without those of a vendor that
// nothing here compiles for and of which the cache holds nothing; unless that would leave none at all.
// not_found, with what was asked for, when one of the filters selects nothing. Of all that, a shard is its
// part: it may be none.
[[nodiscard]] Result<Selection> select_to_warm(service::Service& service,
                                               const std::vector<service::WarmFilter>& filters,
                                               const Words& words, const std::string& target,
                                               const std::optional<Shard>& shard);

// {"index", "count", "selected", "share"}; null without a shard.
[[nodiscard]] Json describe_shard(const Selection& selection);
// The remarks on stderr; then, but for --json, the shard: "shard 1/4: 203 of 810 specialisations, 25.1% of
// the estimated compile time".
void print_remarks(const Selection& selection, const CommonOptions& common);

// What --target says; where it says nothing KILN_TARGET asks, if somebody set it; else empty.
[[nodiscard]] std::string asked_target(const std::string& target, const service::Settings& settings);

// What --jobs says; 0, as many as there are cores, where it says nothing.
[[nodiscard]] Result<unsigned> parse_jobs(const std::string& text);

// What --shard says: "1/4"; nothing where it was left out.
[[nodiscard]] Result<std::optional<Shard>> parse_shard(const std::string& text);
inline constexpr const char* kShardHelp =
    "only part I of N, counted from 0: \"0/4\" to \"3/4\" are the whole, evenly by estimated compile time";

}  // namespace kiln::cli
