// What the tests of the public form share: full rows written for them, and the public ones in full form.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "runtime/tuned_config/csv.hpp"
#include "runtime/tuned_config/form.hpp"

namespace kiln::tuned_config {

// Cells that a test sets, over those of a sound row for token 16.
using Cells = std::vector<std::pair<std::string, std::string>>;

inline std::string header() {
    return csv_record(std::vector<std::string>(kColumns.begin(), kColumns.end()));
}

inline std::string row_text(const Cells& cells = {}) {
    std::vector<std::string> record = {"gfx950",
                                       "256",
                                       "16",
                                       "4096",
                                       "512",
                                       "512",
                                       "10",
                                       "ActivationType.Silu",
                                       "torch.bfloat16",
                                       "torch.float4_e2m1fn_x2",
                                       "torch.float4_e2m1fn_x2",
                                       "QuantType.per_1x32",
                                       "1",
                                       "0",
                                       "16",
                                       "0",
                                       "92.1512",
                                       "flydsl_mxmoe_g1_a4w4_16x256x256_f16in_nt",
                                       "1.1%",
                                       "0.0",
                                       "flydsl_mxmoe_g2_a4w4_16x256x256_atomic",
                                       "1.1%",
                                       "92.1512",
                                       "0",
                                       "0",
                                       "0",
                                       "31.5",
                                       "2750.25"};
    for (const auto& [column, cell] : cells) {
        const auto place = std::ranges::find(kColumns, column);
        REQUIRE(place != kColumns.end());
        record[static_cast<std::size_t>(place - kColumns.begin())] = cell;
    }
    return csv_record(record);
}

// A row with tiles of 32, as the public form names them.
inline Cells tiles_of_32(const std::string& token, const std::string& second = "atomic_nt") {
    return {{"token", token},
            {"block_m", "32"},
            {"kernelName1", "flydsl_mxmoe_g1_a4w4_32x256x256_nt"},
            {"kernelName2", "flydsl_mxmoe_g2_a4w4_32x256x256" + (second.empty() ? "" : "_" + second)}};
}

// The 66 public rows, which have a part of the columns, with those of the key that they leave out.
inline std::string public_rows() {
    const auto text = read_text_file(std::string(KILN_TEST_DATA) + "/mxmoe_tuned_rows.json", Stage::table);
    REQUIRE(text);
    std::string csv = header();
    for (const auto& row : nlohmann::json::parse(*text)) {
        Cells cells = {{"tflops", ""}, {"bw", ""}};
        for (const auto& [column, cell] : row.items()) {
            if (column != "file") {
                cells.emplace_back(column, cell.get<std::string>());
            }
        }
        csv += row_text(cells);
    }
    return csv;
}

// The faults of one text, as a person sees them.
inline std::vector<std::string> faults_of(const std::string& text) {
    std::vector<std::string> lines;
    for (const auto& fault : read_form("t.csv", text).faults) {
        lines.push_back(fault.text());
    }
    return lines;
}

}  // namespace kiln::tuned_config
