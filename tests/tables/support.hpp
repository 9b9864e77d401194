// What the tests of tables share: the published schema, and a check of rows that stands in for the operators
// room.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::tables {

inline std::string shipped_text(const std::string& name) {
    auto text = read_text_file(std::string(KILN_TEST_SHAPES) + "/" + name, Stage::table);
    REQUIRE(text);
    return *text;
}

// Knows one operator, "linear": n is asked for, k is 64 where it is left out, tiles_n is the only constant
// and must divide n.
inline std::vector<RowFault> check_linear(Row& row) {
    std::vector<RowFault> faults;
    if (row.operator_name != "linear") {
        return {{"/operator", "linear", "\"" + row.operator_name + "\""}};
    }
    if (!row.problem.contains("n")) {
        return {{"/problem/n", "the field n", "none"}};
    }
    row.problem.emplace("k", std::int64_t{64});
    const auto n = std::get<std::int64_t>(row.problem.at("n"));
    for (std::size_t i = 0; i < row.buckets.size(); ++i) {
        for (const auto& [name, value] : row.buckets[i].constants) {
            const auto pointer = fmt::format("/buckets/{}/constants/{}", i, name);
            if (name != "tiles_n") {
                faults.push_back({pointer, "tiles_n", "\"" + name + "\"", RowFault::At::name});
            } else if (value < 1 || n % value != 0) {
                faults.push_back({pointer, fmt::format("a divisor of {}", n), fmt::format("{}", value)});
            }
        }
    }
    return faults;
}

inline std::unique_ptr<Loader> make_loader(RowCheck check = check_linear) {
    auto loader = Loader::create(shipped_text("schema/shape_table.schema.json"), std::move(check));
    REQUIRE_MESSAGE(loader, loader.error().message);
    return std::move(*loader);
}

// A whole table around the text of rows: the first row starts at 1:24.
inline std::string table_of(const std::string& rows) {
    return R"({"schema": 1, "rows": [)" + rows + "]}";
}

inline std::string row_text(const std::string& problem, const std::string& target,
                            const std::string& buckets) {
    return fmt::format(R"({{"operator": "linear", "problem": {}, "target": "{}", "buckets": {}, )"
                       R"("provenance": {{"kind": "untuned"}}}})",
                       problem, target, buckets);
}

inline const std::string kBuckets =
    R"([{"max_m": 8, "template": "linear/small_m", "constants": {"tiles_n": 2}}])";

// A layer that a user names.
inline Layer named(std::vector<TableText> texts) {
    return {LayerKind::named, "place", std::move(texts)};
}

inline LoadedTable load_one(const std::string& text, RowCheck check = check_linear) {
    return make_loader(std::move(check))->load({named({{"t.json", text}})});
}

// The faults of one text, as a person sees them.
inline std::vector<std::string> faults_of(const std::string& text) {
    std::vector<std::string> lines;
    for (const auto& fault : load_one(text).faults) {
        lines.push_back(fault.text());
    }
    return lines;
}

using Lines = std::vector<std::string>;

}  // namespace kiln::tables

// So that a failed comparison shows both.
namespace doctest {
template <>
struct StringMaker<kiln::tables::Lines> {
    static String convert(const kiln::tables::Lines& lines) {
        std::string text;
        for (const auto& line : lines) {
            text += "\n    " + line;
        }
        return text.c_str();
    }
};
template <>
struct StringMaker<kiln::tables::Position> {
    static String convert(const kiln::tables::Position& position) {
        return fmt::format("{}:{}", position.line, position.column).c_str();
    }
};
}  // namespace doctest
