// The file that a tune keeps all its results in, while it writes it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "runtime/tune/record.hpp"

namespace kiln::tune {

enum class GoOn { yes, no };

// Used by one thread. Locked while it is open: a second tune on the same file is refused.
class RecordFile {
  public:
    // A new file; with GoOn::yes one that may hold the results of an earlier tune under the same conditions,
    // of which a last line that was not finished is cut off. An empty path keeps nothing. bad_input: a file
    // that is not empty without GoOn, one that holds something else, or results under other conditions.
    [[nodiscard]] static Result<std::unique_ptr<RecordFile>> open(const std::filesystem::path& path,
                                                                  GoOn go_on, const Conditions& conditions);

    // What an earlier tune left.
    [[nodiscard]] const Records& found() const { return found_; }

    // The whole line at once, so that whoever is killed leaves it or a part that is cut off later.
    [[nodiscard]] Result<void> append(const std::string& line);

  private:
    std::filesystem::path path_;
    UniqueFd file_;
    Records found_;
};

}  // namespace kiln::tune
