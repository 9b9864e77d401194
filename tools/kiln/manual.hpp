// What a command's help says besides its options, and its manual page with it: both are made of the same
// words, so neither can lack what the other has.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace kiln::cli {

struct Manual {
    std::string text;  // paragraphs, an empty line between two; may be empty
    struct Example {
        std::string command;  // "kiln ls --json"
        std::string what;
    };
    std::vector<Example> examples;
    struct Exit {
        int code;
        std::string meaning;
    };
    std::vector<Exit> exits;  // ascending
};

// The manuals of all commands. Commands outlive it.
class Manuals {
  public:
    // Makes it what the command's help ends with.
    void describe(CLI::App& command, Manual manual);
    [[nodiscard]] const Manual& of(const CLI::App& command) const;

  private:
    std::map<const CLI::App*, Manual> manuals_;
};

// "kiln bundle create", with `separator` between its words.
[[nodiscard]] std::string full_name(const CLI::App& command, std::string_view separator = " ");

// The commands of a program, or of a command, that are for a person, in the order of its help.
[[nodiscard]] std::vector<const CLI::App*> commands_of(const CLI::App& app);

// A paragraph in lines of at most `width`, no break at the end.
[[nodiscard]] std::string wrapped(std::string_view paragraph, std::size_t width = 100);

}  // namespace kiln::cli
