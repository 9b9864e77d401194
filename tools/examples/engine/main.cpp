// kiln-example-engine [OPTION...] [STEP...]: decodes, a step for each batch size that is named, and checks
// every step against the all-plain path.
//
// Exit codes: 0 all is right; 1 a step is not; 2 bad usage; 3 something could not be run.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "engine.hpp"
#include "random.hpp"
#include "table.hpp"

namespace engine {

namespace {

constexpr const char* kUsage =
    "usage: kiln-example-engine [--share FOLDER] [--table FILE] [--seed N] [STEP...]\n"
    "\n"
    "A STEP is a batch size from 1 to 32, or edit=FILE: FILE takes the shape table's place, and the engine\n"
    "reloads. Without any: 1 18 4 8 4 edit=decode_edited.json 8 4, in the folder's own file.\n"
    "\n"
    "  --share FOLDER  holds the engine's kernels and tables; share/kiln-example-engine beside its bin\n"
    "  --table FILE    the shape table to begin with; decode.json in that folder\n"
    "  --seed N        of weights and inputs; 1\n"
    "\n"
    "Exit codes: 0 all is right; 1 a step is not; 2 bad usage; 3 something could not be run.\n";

// One word of the command line: a batch size, or a table to take.
struct Action {
    std::int64_t m = 0;
    std::string table;
};

struct Arguments {
    std::filesystem::path share, table;
    unsigned seed = 1;
    std::vector<Action> actions;
};

template <class T>
std::optional<T> parse_number(std::string_view text, T least, T most) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

// Nothing where the words make no sense.
std::optional<Arguments> parse(const std::vector<std::string_view>& words) {
    Arguments arguments;
    for (std::size_t i = 0; i < words.size(); ++i) {
        constexpr std::string_view kEdit = "edit=";
        const bool option = words[i] == "--share" || words[i] == "--table" || words[i] == "--seed";
        if (option && i + 1 == words.size()) {
            return std::nullopt;
        }
        if (words[i] == "--share") {
            arguments.share = words[++i];
        } else if (words[i] == "--table") {
            arguments.table = words[++i];
        } else if (words[i] == "--seed") {
            const auto seed = parse_number<unsigned>(words[++i], 0, ~0U);
            if (!seed) {
                return std::nullopt;
            }
            arguments.seed = *seed;
        } else if (words[i].starts_with(kEdit)) {
            arguments.actions.push_back({0, std::string(words[i].substr(kEdit.size()))});
        } else if (const auto m = parse_number<std::int64_t>(words[i], 1, kMostTokens)) {
            arguments.actions.push_back({*m, {}});
        } else {
            return std::nullopt;
        }
    }
    return arguments;
}

// What the words left open.
void complete(Arguments& arguments) {
    if (arguments.share.empty()) {
        const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
        arguments.share = program.parent_path().parent_path() / "share" / "kiln-example-engine";
    }
    if (arguments.table.empty()) {
        arguments.table = arguments.share / "decode.json";
    }
    if (arguments.actions.empty()) {
        const std::string edited = arguments.share / "decode_edited.json";
        arguments.actions = {{1, {}}, {18, {}}, {4, {}}, {8, {}}, {4, {}}, {0, edited}, {8, {}}, {4, {}}};
    }
}

bool run_step(Engine& engine, const Checker& checker, Random& random, std::int64_t m) {
    const bool replayed = engine.has_graph(m);
    const std::vector<std::uint16_t> hidden = random.make_bf16(m * kHidden, 1);
    const std::vector<std::uint16_t> result = engine.step(hidden);
    const Deviation deviation = checker.compare(hidden, result);
    std::printf("step M=%lld %s: %s, hidden states off by %.2g, routing weights by %.2g, choice by %.2g\n",
                static_cast<long long>(m), replayed ? "replayed" : "captured",
                deviation.passed() ? "ok" : "WRONG", deviation.hidden, deviation.weights, deviation.choice);
    if (!replayed) {
        for (const auto& [name, by] : engine.served(m)) {
            std::printf("    %-15s %s\n", name.c_str(), by.c_str());
        }
    }
    return deviation.passed();
}

void run_edit(Engine& engine, const Table& table, const std::string& file) {
    table.replace(file);
    if (const std::string why = engine.reload(); why.empty()) {
        std::printf("edit %s: taken\n", file.c_str());
    } else {
        std::printf("edit %s: refused, going on as before: %s\n", file.c_str(), why.c_str());
    }
}

// Whether all steps are right.
bool run(const Arguments& arguments) {
    const Table table(arguments.table);
    Engine engine({.kernels = arguments.share, .table = table.path(), .seed = arguments.seed});
    const Checker checker(engine);
    std::printf("device: %s, %s; seed %u\n", engine.device().name, engine.device().target, arguments.seed);
    Random random(arguments.seed);
    bool passed = true;
    for (const Action& action : arguments.actions) {
        if (action.m == 0) {
            run_edit(engine, table, action.table);
        } else {
            passed = run_step(engine, checker, random, action.m) && passed;
        }
        std::fflush(stdout);
    }
    const kiln_statistics counted = engine.statistics();
    std::printf("kiln: %llu compiled, %llu from its cache, %llu of them from read-only folders and bundles\n",
                static_cast<unsigned long long>(counted.compiles),
                static_cast<unsigned long long>(counted.cache_hits),
                static_cast<unsigned long long>(counted.layer_hits));
    return passed;
}

}  // namespace

}  // namespace engine

int main(int argc, char** argv) {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
        std::fputs(engine::kUsage, stdout);
        return 0;
    }
    auto arguments = engine::parse(words);
    if (!arguments) {
        std::fputs(engine::kUsage, stderr);
        return 2;
    }
    try {
        engine::complete(*arguments);
        return engine::run(*arguments) ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kiln-example-engine: %s\n", error.what());
        return 3;
    }
}
