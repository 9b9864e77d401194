#include "table.hpp"

#include <stdlib.h>

#include <string>
#include <system_error>

#include "gpu.hpp"

namespace engine {

namespace fs = std::filesystem;

namespace {

fs::path make_folder() {
    std::string pattern = (fs::temp_directory_path() / "kiln-example-engine-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
        throw Error(pattern + ": expected to make a folder there");
    }
    return pattern;
}

}  // namespace

Table::Table(const fs::path& file) : folder_(make_folder()) {
    try {
        replace(file);
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
        throw;
    }
}

Table::~Table() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void Table::replace(const fs::path& file) const {
    std::error_code error;
    const fs::path unfinished = folder_ / ".decode.json";
    fs::copy_file(file, unfinished, fs::copy_options::overwrite_existing, error);
    if (!error) {
        fs::rename(unfinished, path(), error);
    }
    if (error) {
        throw Error(file.string() + ": " + error.message());
    }
}

}  // namespace engine
