// The shape table of a running engine: a file of its own that an operator edits.
#pragma once

#include <filesystem>

namespace engine {

class Table {
  public:
    // A copy of `file` in a new temporary folder, which goes with the object.
    explicit Table(const std::filesystem::path& file);
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table();

    [[nodiscard]] std::filesystem::path path() const { return folder_ / "decode.json"; }
    // The edit: `file`'s text takes the table's place at once, so that nobody reads half of it.
    void replace(const std::filesystem::path& file) const;

  private:
    std::filesystem::path folder_;
};

}  // namespace engine
