// --help and the manual pages: each stands alone, and both say the same.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "run_kiln.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;

namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
    std::istringstream stream(text);
    Words words;
    for (std::string word; stream >> word;) {
        words.push_back(word);
    }
    return words;
}

std::string help_of(Words command) {
    command.emplace_back("--help");
    const auto help = run_kiln(command, {});
    CHECK(help.exit_code == 0);
    CHECK(help.err.empty());
    return help.out;
}

// The commands that a help lists, by the first word of each line of that part.
Words commands_in(const std::string& help) {
    Words commands;
    const auto begin = help.find("\nSubcommands:\n");
    if (begin == std::string::npos) {
        return commands;
    }
    std::istringstream lines(help.substr(begin + sizeof("\nSubcommands:\n") - 1));
    for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
        if (line[2] != ' ') {
            commands.push_back(words_of(line).front());
        }
    }
    return commands;
}

// The program (no words), its commands and theirs, each with its help.
std::map<Words, std::string> all_helps() {
    std::map<Words, std::string> helps;
    std::vector<Words> open = {{}};
    while (!open.empty()) {
        const auto command = open.back();
        open.pop_back();
        helps[command] = help_of(command);
        for (const auto& part : commands_in(helps[command])) {
            open.push_back(command);
            open.back().push_back(part);
        }
    }
    return helps;
}

// "--target" and the like, as far as `text` names them.
std::set<std::string> options_in(const std::string& text) {
    std::set<std::string> options;
    for (auto at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
        const auto end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
        const bool is_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == ',' || text[at - 1] == '\n' ||
                             text[at - 1] == 'B';
        if (const auto option = text.substr(at, end - at); is_word && option.size() > 2) {
            options.insert(option);
        }
    }
    return options;
}

// The text that a page shows, without its requests and fonts.
std::string shown(std::string page) {
    for (const auto& [roff, text] : std::vector<std::pair<std::string, std::string>>{
             {"\\-", "-"}, {"\\fB", ""}, {"\\fI", ""}, {"\\fR", ""}, {"\\&", ""}, {"\\e", "\\"}}) {
        for (auto at = page.find(roff); at != std::string::npos; at = page.find(roff, at + text.size())) {
            page.replace(at, roff.size(), text);
        }
    }
    return page;
}

std::string one_line(std::string text) {
    std::string result;
    for (const auto& word : words_of(text)) {
        result += (result.empty() ? "" : " ") + word;
    }
    return result;
}

std::string file_name(const Words& command) {
    std::string name = "kiln";
    for (const auto& word : command) {
        name += "-" + word;
    }
    return name + ".1";
}

std::map<std::string, std::string> pages_in(const fs::path& folder) {
    std::map<std::string, std::string> pages;
    for (const auto& file : fs::directory_iterator(folder)) {
        pages[file.path().filename().string()] = contents(file.path());
    }
    return pages;
}

}  // namespace

TEST_CASE("EveryHelpStandsAlone") {
    const auto helps = all_helps();
    CHECK(helps.size() >= 20);
    for (const Words& command :
         std::vector<Words>{{"warm"}, {"clear"}, {"bundle", "create"}, {"import-csv"}}) {
        CHECK(helps.contains(command));
    }
    const auto begin = [](const std::string& help, const std::string& part) {
        return help.substr(std::min(help.find(part), help.size()));
    };
    for (const auto& [command, help] : helps) {
        INFO(file_name(command));
        CHECK(contains(help, "Usage: "));
        CHECK(contains(help, "--help"));
        CHECK(contains(help, "--json"));
        CHECK(contains(help, "--cache-dir"));
        CHECK(contains(help, "\nExit codes: 0 "));
        CHECK(contains(one_line(help), "; 2 bad usage"));
        CHECK(contains(help, "\nExamples:\n  "));
        // An example uses what the help itself explains.
        const auto examples = begin(help, "\nExamples:\n");
        std::istringstream lines(examples.substr(0, examples.find("\nExit codes:")));
        std::size_t num_examples = 0;
        for (std::string line; std::getline(lines, line);) {
            if (!line.starts_with("  ") || line.starts_with("   ")) {
                continue;
            }
            ++num_examples;
            CHECK(contains(line, "kiln "));
            for (const auto& option : options_in(line)) {
                // The program's examples are of its commands.
                const auto parts = words_of(line.substr(line.find("kiln ")));
                const auto& where =
                    command.size() < 2 && helps.contains({parts[1], parts.size() > 2 ? parts[2] : ""})
                        ? helps.at({parts[1], parts[2]})
                    : command.empty() ? helps.at({parts[1]})
                                      : help;
                CHECK_MESSAGE(options_in(where).contains(option), line);
            }
        }
        CHECK(num_examples >= 1);
    }
}

TEST_CASE("EveryCommandHasAPageThatSaysWhatItsHelpSays") {
    const TemporaryFolder folder;
    REQUIRE(run_kiln({"man-pages", (folder.path() / "man1").string()}, {}).exit_code == 0);
    const auto pages = pages_in(folder.path() / "man1");
    const auto helps = all_helps();
    CHECK(pages.size() == helps.size());
    for (const auto& [command, help] : helps) {
        const auto name = file_name(command);
        REQUIRE_MESSAGE(pages.contains(name), name);
        const auto page = shown(pages.at(name));
        INFO(name);
        for (const char* section :
             {"NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"}) {
            CHECK_MESSAGE(contains(page, std::string(".SH ") + section + "\n"), section);
        }
        for (const auto& option : options_in(help.substr(0, help.find("\nExamples:\n")))) {
            CHECK_MESSAGE(contains(page, option), option);
        }
        // The exit codes, word for word.
        const auto exits = help.substr(help.find("\nExit codes: ") + 13);
        const auto flat = one_line(page);
        for (std::size_t at = 0; at != std::string::npos;) {
            const auto end = exits.find(';', at);
            auto meaning = one_line(exits.substr(at, end - at));
            meaning = meaning.substr(0, meaning.find(" Of every command"));
            CHECK_MESSAGE(contains(flat, meaning), meaning);
            at = end == std::string::npos ? end : end + 1;
        }
    }
    const auto doctor = run_kiln({"doctor", "--json"}, {{"KILN_DEVICE", "sim"}});
    const auto settings = doctor.json()["settings"];
    for (const auto& setting : settings) {
        CHECK(contains(pages.at("kiln.1"), setting["variable"].get<std::string>()));
    }
}

TEST_CASE("PagesAreTheSameWhereverAndWheneverTheyAreMade") {
    const TemporaryFolder folder;
    const auto one = folder.path() / "one" / "man1";
    const auto other = folder.path() / "other";
    REQUIRE(run_kiln({"man-pages", one.string()}, {}).exit_code == 0);
    REQUIRE(run_kiln({"man-pages", other.string()}, {{"KILN_LOG", "debug"},
                                                     {"KILN_TARGET", "gfx942"},
                                                     {"KILN_CACHE_DIR", folder.path().string()},
                                                     {"HOME", folder.path().string()},
                                                     {"TZ", "Asia/Kathmandu"},
                                                     {"COLUMNS", "40"}})
                .exit_code == 0);
    CHECK(pages_in(one) == pages_in(other));
    for (const auto& [name, page] : pages_in(one)) {
        CHECK_MESSAGE(!contains(page, folder.path().string()), name);
    }
}
