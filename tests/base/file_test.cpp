#include "base/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <string>

namespace fs = std::filesystem;
using kiln::ErrorCode;
using kiln::Stage;

namespace {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (fs::temp_directory_path() / "kiln-base-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    ~TemporaryFolder() { fs::remove_all(path_); }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

std::size_t num_files(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("PublishedFileReadsBackWhole") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "entry";
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3'000'000}}) {
        std::string text(size, 'x');
        REQUIRE(kiln::publish_file(path, kiln::as_bytes(text), Stage::cache));
        CHECK(kiln::read_text_file(path, Stage::cache) == text);
        CHECK(num_files(folder.path()) == 1);  // no temporary file is left beside it
    }
}

TEST_CASE("PublishedFileIsPrivate") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "entry";
    REQUIRE(kiln::publish_file(path, kiln::as_bytes("x"), Stage::cache));
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("FailedPublicationLeavesNothingBehind") {
    const TemporaryFolder folder;
    const auto path = folder.path() / "taken";
    fs::create_directories(path / "inside");  // rename() onto a folder that is not empty fails
    const auto result = kiln::publish_file(path, kiln::as_bytes("x"), Stage::cache);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::io);
    CHECK(result.error().message.find(path.string()) != std::string::npos);
    CHECK(num_files(folder.path()) == 1);
    CHECK(fs::is_directory(path / "inside"));
}

TEST_CASE("MissingFileIsNotFound") {
    const TemporaryFolder folder;
    const auto missing = kiln::read_file(folder.path() / "none", Stage::table);
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    CHECK(missing.error().stage == Stage::table);

    const auto nowhere = kiln::publish_file(folder.path() / "no" / "folder", {}, Stage::cache);
    REQUIRE(!nowhere);
    CHECK(nowhere.error().code == ErrorCode::not_found);
}

TEST_CASE("OnlyRegularFilesAreRead") {
    const TemporaryFolder folder;
    const auto pipe = folder.path() / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const fs::path& path : {folder.path(), pipe, fs::path("/dev/zero")}) {
        const auto result = kiln::read_file(path, Stage::cache);
        REQUIRE(!result);
        CHECK(result.error().code == ErrorCode::io);
        CHECK(result.error().message.find("regular file") != std::string::npos);
    }
}

TEST_CASE("UniqueFdClosesOnceAndMoves") {
    int raw = -1;
    {
        kiln::UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        REQUIRE(first.valid());
        raw = first.get();
        kiln::UniqueFd second(std::move(first));
        CHECK_FALSE(first.valid());
        CHECK(second.get() == raw);
    }
    CHECK(::fcntl(raw, F_GETFD) == -1);
}
