// Files and folders of shape tables.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/tables/support.hpp"

using namespace kiln::tables;
namespace fs = std::filesystem;

namespace {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (fs::temp_directory_path() / "kiln-tables-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { fs::remove_all(path_); }

    std::string write(const std::string& name, const std::string& text) const {
        fs::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name) << text;
        return path_ / name;
    }
    std::string path() const { return path_; }

  private:
    fs::path path_;
};

}  // namespace

TEST_CASE("LayersAreFilesAndFoldersInTheOrderOfTheList") {
    const TemporaryFolder folder;
    const auto file = folder.write("one.json", "1");
    const auto b = folder.write("tables/b.json", "b");
    const auto a = folder.write("tables/a.json", "a");
    folder.write("tables/notes.txt", "not a table");
    folder.write("tables/schema/shape_table.schema.json", "not a table either");
    folder.write("tables/empty.json/x", "a folder of that name");
    const auto layers = read_layers("::" + file + ":" + folder.path() + "/tables:");
    REQUIRE(layers);
    REQUIRE(layers->size() == 2);
    REQUIRE((*layers)[0].size() == 1);
    CHECK((*layers)[0][0].name == file);
    CHECK((*layers)[0][0].text == "1");
    REQUIRE((*layers)[1].size() == 2);
    CHECK((*layers)[1][0].name == a);
    CHECK((*layers)[1][1].name == b);
    CHECK((*layers)[1][1].text == "b");
    CHECK(read_layers("")->empty());
}

TEST_CASE("LayersThatCanNotBeReadAreErrors") {
    const TemporaryFolder folder;
    const auto missing = read_layers(folder.path() + "/none.json");
    REQUIRE(!missing);
    CHECK(missing.error().code == kiln::ErrorCode::not_found);
    CHECK(missing.error().message ==
          "shape table " + folder.path() + "/none.json: expected a file or a folder, found nothing");
    fs::create_symlink("nowhere", folder.path() + "/dangling.json");
    CHECK(!read_layers(folder.path()));
}
