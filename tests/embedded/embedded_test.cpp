#include "runtime/embedded/embedded.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;
using kiln::embedded::EmbeddedFile;

// The files that should be there, with what they say, as the source tree has them now.
void check_equals_folder(std::span<const EmbeddedFile> files, const fs::path& folder,
                         const std::set<std::string>& extensions) {
    std::size_t found = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        if (!item.is_regular_file() || !extensions.contains(item.path().extension().string())) {
            continue;
        }
        ++found;
        const std::string path = item.path().lexically_relative(folder).generic_string();
        CAPTURE(path);
        const EmbeddedFile* file = kiln::embedded::find(files, path);
        REQUIRE(file != nullptr);
        std::ifstream stream(item.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        CHECK(text.size() == file->text.size());
        CHECK((text == file->text));
    }
    CHECK(found == files.size());
}

}  // namespace

TEST_CASE("TemplatesAndTheirHeadersAreCarriedByteForByte") {
    check_equals_folder(kiln::embedded::kernel_files(), fs::path(KILN_SOURCE_ROOT) / "kernel_src",
                        {".cu", ".hip", ".h"});
    CHECK(kiln::embedded::find(kiln::embedded::kernel_files(), "linear/small_m.gfx950.hip") != nullptr);
}

TEST_CASE("TablesAndTheirSchemaAreCarriedByteForByte") {
    check_equals_folder(kiln::embedded::shape_files(), fs::path(KILN_SOURCE_ROOT) / "shapes", {".json"});
    CHECK(kiln::embedded::find(kiln::embedded::shape_files(), "schema/shape_table.schema.json") != nullptr);
}

TEST_CASE("FilesAscendByPathAndUnknownPathsAreNotFound") {
    for (const auto files : {kiln::embedded::kernel_files(), kiln::embedded::shape_files()}) {
        CHECK(std::ranges::is_sorted(files, {}, &EmbeddedFile::path));
        CHECK(kiln::embedded::find(files, "") == nullptr);
        CHECK(kiln::embedded::find(files, "no/such.hip") == nullptr);
        CHECK(kiln::embedded::find(files, "zzz") == nullptr);
    }
    CHECK(kiln::embedded::find({}, "a") == nullptr);
}
