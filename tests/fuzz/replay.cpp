// Runs every file of a corpus through a fuzz target, without a fuzzer: "replay FOLDER". A file whose name
// begins with "valid-" must be taken by the parser, so that a change of the format does not leave the corpus
// behind unnoticed. A broken promise aborts.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/fuzz/target.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (std::filesystem::directory_iterator it(argv[1], error), end; !error && it != end;
         it.increment(error)) {
        files.push_back(it->path());
    }
    if (error || files.empty()) {
        std::fprintf(stderr, "%s: expected a folder with inputs in it\n", argv[1]);
        return 2;
    }
    std::ranges::sort(files);
    int failures = 0;
    for (const auto& file : files) {
        const auto name = file.filename().string();
        std::fprintf(stderr, "%s\n", name.c_str());  // the last one before an abort is the culprit
        const auto bytes = kiln::read_file(file, kiln::Stage::configure);
        if (!bytes) {
            std::fprintf(stderr, "  %s\n", bytes.error().message.c_str());
            ++failures;
        } else if (!kiln::fuzz::run(*bytes) && name.starts_with("valid-")) {
            std::fprintf(stderr, "  expected to be taken, found refused\n");
            ++failures;
        }
    }
    std::fprintf(stderr, "%zu inputs, %d failures\n", files.size(), failures);
    return failures == 0 ? 0 : 1;
}
