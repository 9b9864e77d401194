// At build time: reads the shipped tables through every judge and writes their rows down as C++ constants. A
// fault, or a warning, is printed and ends the build.
//
//     kiln-shipped-rows OUTPUT

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/operator.hpp"
#include "runtime/operators/row_review.hpp"
#include "runtime/shipped/archive.hpp"
#include "runtime/shipped/shipped.hpp"

namespace kiln::shipped {
namespace {

std::string literal(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20 || byte >= 0x7F) {
            result += fmt::format("\\{:03o}", byte);
        } else {
            result += c;
        }
    }
    return result + "\"sv";
}

std::string source_of(const Writer& written) {
    std::string source =
        "// Generated from shapes/ by runtime/shipped/generate.cpp.\n"
        "#include \"runtime/shipped/data.hpp\"\n\n"
        "namespace kiln::shipped {\nnamespace {\n\n"
        "using namespace std::string_view_literals;\n\n"
        "constexpr std::int64_t kNumbers[] = {\n";
    for (std::size_t i = 0; i < written.numbers().size(); ++i) {
        source += fmt::format("{},{}", written.numbers()[i], i % 24 == 23 ? "\n" : "");
    }
    source += "};\n\nconstexpr std::string_view kTexts[] = {\n";
    for (const std::string& text : written.texts()) {
        source += literal(text) + ",\n";
    }
    return source +
           "};\n\n}  // namespace\n\n"
           "std::span<const std::int64_t> row_numbers() { return kNumbers; }\n"
           "std::span<const std::string_view> row_texts() { return kTexts; }\n\n"
           "}  // namespace kiln::shipped\n";
}

std::vector<tables::RowFault> judge_row(tables::Row& row) {
    const std::vector<tables::Bucket> given = row.buckets;
    std::vector<tables::RowFault> faults = operators::check_row(row);
    return faults.empty() ? operators::review_row(row, given) : faults;
}

Result<tables::RowLayer> judged_rows() {
    Result<std::string_view> schema = shipped::schema();
    if (!schema) {
        return fail(schema);
    }
    auto loader = tables::Loader::create(*schema, judge_row);
    if (!loader) {
        return fail(loader);
    }
    tables::Layer layer = texts();
    layer.kind = tables::LayerKind::named;  // which is held to the schema
    tables::LoadedTable loaded = (*loader)->load({layer});
    loaded.faults.insert(loaded.faults.end(), loaded.warnings.begin(), loaded.warnings.end());
    if (!loaded.faults.empty()) {
        return tl::unexpected<Error>(tables::to_error(loaded.faults));
    }
    tables::RowLayer rows = loaded.table.layers().front();
    rows.kind = tables::LayerKind::shipped;
    for (tables::Row& row : rows.rows) {
        row.layer = tables::LayerKind::shipped;
    }
    return rows;
}

Result<void> generate(const std::string& output) {
    Result<tables::RowLayer> rows = judged_rows();
    if (!rows) {
        return fail(rows);
    }
    Writer writer;
    transfer(writer, *rows);
    std::ofstream file(output, std::ios::binary);
    if (!(file << source_of(writer)).flush()) {
        return fail(ErrorCode::io, Stage::table,
                    fmt::format("{}: expected to write the file, found no way to", output));
    }
    return {};
}

}  // namespace
}  // namespace kiln::shipped

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: kiln-shipped-rows OUTPUT\n", stderr);
        return 2;
    }
    if (const auto generated = kiln::shipped::generate(argv[1]); !generated) {
        std::fprintf(stderr, "%s\n", generated.error().message.c_str());
        return 1;
    }
    return 0;
}
