// Files and folders of shape tables.

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/tables/layers.hpp"
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
    folder.write("tables/.copy.json", "an editor's");
    fs::create_symlink("user@machine.1234:1", folder.path() + "/tables/.#a.json");
    const auto places = named_places("::" + file + ":" + folder.path() + "/tables:");
    CHECK(places ==
          std::vector<LayerPlace>{{LayerKind::named, file}, {LayerKind::named, folder.path() + "/tables"}});
    const auto [layers, faults] = read_layers(places);
    CHECK(faults.empty());
    REQUIRE(layers.size() == 2);
    CHECK(layers[0].place == file);
    REQUIRE(layers[0].texts.size() == 1);
    CHECK(layers[0].texts[0].name == file);
    CHECK(layers[0].texts[0].text == "1");
    REQUIRE(layers[1].texts.size() == 2);
    CHECK(layers[1].texts[0].name == a);
    CHECK(layers[1].texts[1].name == b);
    CHECK(layers[1].texts[1].text == "b");
    CHECK(named_places("").empty());
    // What is named is read, whatever its name.
    const auto hidden = read_layers(named_places(folder.path() + "/tables/.copy.json"));
    CHECK(hidden.faults.empty());
    CHECK(hidden.layers.at(0).texts.at(0).text == "an editor's");
}

TEST_CASE("LayersOfTheUserAndTheSystemNeedNotBeThere") {
    const TemporaryFolder folder;
    const std::string file = folder.write("user/kiln/shapes/a.json", "a");
    const auto [layers, faults] = read_layers({{LayerKind::named, folder.path() + "/none.json"},
                                               {LayerKind::user, folder.path() + "/user/kiln/shapes"},
                                               {LayerKind::system, folder.path() + "/system/kiln/shapes"}});
    REQUIRE(layers.size() == 1);
    CHECK(layers.front().kind == LayerKind::user);
    CHECK(layers.front().texts.front().name == file);
    REQUIRE(faults.size() == 1);
    CHECK(faults.front().text() ==
          folder.path() +
              "/none.json:1:1: the document: expected a shape table or a folder of them, found nothing");
}

TEST_CASE("LayersEveryFileThatCanNotBeReadIsAFaultBesideTheOthers") {
    const TemporaryFolder folder;
    folder.write("a.json", "a");
    fs::create_symlink("nowhere", folder.path() + "/dangling.json");
    REQUIRE(::mkfifo((folder.path() + "/pipe.json").c_str(), 0600) == 0);
    const std::string big = folder.write("big.json", "");
    fs::resize_file(big, Loader::kMaxBytes + 1);
    folder.write("whole.json", "");
    const auto [layers, faults] = read_layers({{LayerKind::user, folder.path()}});
    REQUIRE(layers.size() == 1);
    REQUIRE(layers.front().texts.size() == 2);
    CHECK(layers.front().texts[0].name == folder.path() + "/a.json");
    CHECK(layers.front().texts[1].text.empty());
    REQUIRE(faults.size() == 3);
    CHECK(faults[0].text() == big + ":1:1: the document: expected at most 4194304 bytes, found 4194305");
    CHECK(faults[1].source == folder.path() + "/dangling.json");
    CHECK(faults[1].expected == "a file that can be read");
    CHECK(faults[2].source == folder.path() + "/pipe.json");
}

TEST_CASE("LayersOfAFolderWithoutPermissionAreAFault") {
    const TemporaryFolder folder;
    folder.write("a.json", "a");
    fs::permissions(folder.path(), fs::perms::none);
    // Root reads everything, so the look is another user's.
    const bool root = ::geteuid() == 0;
    REQUIRE((!root || ::seteuid(65534) == 0));
    const auto [layers, faults] = read_layers({{LayerKind::user, folder.path()}});
    REQUIRE((!root || ::seteuid(0) == 0));
    fs::permissions(folder.path(), fs::perms::owner_all);
    REQUIRE(faults.size() == 1);
    CHECK(faults.front().source == folder.path());
    CHECK(faults.front().found.find("Permission denied") != std::string::npos);
}
