// Tables of `fused_moe` in which some buckets are small_m's and some mxmoe's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace kiln::test {

inline std::string small_m_bucket(std::int64_t max_m) {
    return fmt::format(
        R"({{"max_m": {}, "template": "fused_moe/small_m",
  "constants": {{"columns": 16, "gate_up_waves": 2, "row_tiles": 1, "down_waves": 8}}}})",
        max_m);
}

// `g2`: 0 atomic, 1 combined, 2 fused.
inline std::string mxmoe_bucket(std::int64_t max_m, std::int64_t block_m, std::int64_t f16in,
                                std::int64_t g1_nt, std::int64_t g2, std::int64_t g2_nt) {
    return fmt::format(
        R"({{"max_m": {}, "template": "fused_moe/mxmoe",
  "constants": {{"block_m": {}, "f16in": {}, "g1_nt": {}, "g2": {}, "g2_nt": {}}}}})",
        max_m, block_m, f16in, g1_nt, g2, g2_nt);
}

struct MoeShape {
    std::int64_t hidden, intermediate, experts, slots;
};

// `buckets`: texts with commas between.
inline std::string moe_row(const MoeShape& shape, std::string_view buckets) {
    return fmt::format(
        R"({{"operator": "fused_moe", "target": "gfx950", "provenance": {{"kind": "untuned"}},
 "problem": {{"hidden": {}, "intermediate": {}, "experts": {}, "slots": {}}},
 "buckets": [{}]}})",
        shape.hidden, shape.intermediate, shape.experts, shape.slots, buckets);
}

// `rows`: texts with commas between.
inline std::string moe_table(std::string_view rows) {
    return fmt::format(R"({{"schema": 1, "rows": [{}]}})", rows);
}

}  // namespace kiln::test
