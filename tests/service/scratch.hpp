// A folder of a test's own, gone afterwards, and services that live in it.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/embedded/embedded.hpp"
#include "runtime/service/service.hpp"

namespace kiln::test {

class Scratch {
  public:
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "kiln-service-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        folder_ = name;
    }
    ~Scratch() { std::filesystem::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] std::filesystem::path cache() const { return folder_ / "cache"; }
    [[nodiscard]] std::filesystem::path kernels() const { return folder_ / "kernels"; }

    std::filesystem::path write(const std::string& name, std::string_view text) const {
        const std::filesystem::path path = folder_ / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

    // The shipped templates as files that a test may edit: for KILN_KERNEL_PATH.
    void copy_kernels() const {
        for (const embedded::EmbeddedFile& file : embedded::kernel_files()) {
            write("kernels/" + std::string(file.path), file.text);
        }
    }

    [[nodiscard]] static std::string read(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    std::filesystem::path folder_;
};

// A table of one small problem with one bucket, quick to compile.
inline std::string small_table(std::string_view target = "gfx950") {
    return R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 128}, "target": ")" +
           std::string(target) +
           R"(", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": 16, "template": "linear/small_m",
              "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]}]})";
}

// The overrides of a service that sees nothing of the machine's own cache and tables.
inline service::Overrides overrides_in(const Scratch& scratch) {
    service::Overrides overrides;
    overrides.cache_dir = scratch.cache().string();
    overrides.log = "off";
    return overrides;
}

inline std::unique_ptr<service::Service> open(const service::Overrides& overrides,
                                              service::Parts parts = {}) {
    auto settings = service::read_settings(overrides, service::process_environment());
    REQUIRE_MESSAGE(settings, settings.error().message);
    auto opened = service::Service::open(*std::move(settings), std::move(parts));
    REQUIRE_MESSAGE(opened, opened.error().message);
    return *std::move(opened);
}

// The problem of small_table().
inline operators::Problem small_problem() {
    return *operators::complete(operators::linear(), {{"n", std::int64_t{16}}, {"k", std::int64_t{128}}});
}

// The one specialisation of small_table().
inline operators::Specialisation small_specialisation(service::Service& service) {
    const auto row = service.select(operators::linear(), small_problem(), *tables::parse_target("gfx950"));
    REQUIRE_MESSAGE(row, row.error().error.message);
    auto pipeline = service.pipeline(**row, (*row)->buckets.front());
    REQUIRE_MESSAGE(pipeline, pipeline.error().message);
    REQUIRE(pipeline->stages.size() == 1);
    return std::move(pipeline->stages.front().specialisation);
}

}  // namespace kiln::test
