#include "runtime/operators/specialisation.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "template_double.hpp"

using namespace kiln::operators;

namespace {

using Files = std::map<std::string, std::string>;

const Files kFiles{
    {"linear/small_m.gfx950.hip",
     "#include \"constants.h\"\n#include \"device/tile.h\"\n  #  include \"device/load.h\"\nbody\n"},
    {"device/tile.h", "#pragma once\n#include \"device/lane.h\"\n// #include \"device/nothing.h\"\n"},
    {"device/load.h", "#include \"device/lane.h\"\n#include \"device/tile.h\"\n"},
    {"device/lane.h", "lane\n"},
    {"device/unused.h", "unused\n"},
};

SourceLookup lookup_in(const Files& files) {
    return [&files](std::string_view path) -> kiln::Result<std::optional<std::string>> {
        const auto found = files.find(std::string(path));
        return found != files.end() ? std::optional(found->second) : std::nullopt;
    };
}

const Bucket kBucket{
    16, "linear/small_m", {{"tiles_n", 2}, {"waves", 16}, {"lane_rows", 16}, {"blocks_ahead", 2}}};

Problem problem() {
    return *complete(linear(), {{"n", std::int64_t{5120}}, {"k", std::int64_t{4096}}});
}

kiln::Result<Specialisation> make(const Files& files, const Bucket& bucket = kBucket,
                                  const char* target = "gfx950") {
    return specialise(linear(), problem(), bucket, *kiln::tables::parse_target(target), lookup_in(files));
}

std::string request_of(const Files& files) {
    return make(files)->request_document;
}

}  // namespace

TEST_CASE("the constants reach the template as a header that a person can read") {
    CHECK(constants_header(*find_kernel_template("linear/small_m", "gfx950"), problem(), kBucket) ==
          "// Generated: the constants of one specialisation of linear/small_m.\n"
          "#pragma once\n"
          "\n"
          "#define KILN_KERNEL_NAME kiln_linear_n5120_k4096_m16\n"
          "\n"
          "namespace kiln::constants {\n"
          "inline constexpr int kN = 5120;\n"
          "inline constexpr int kK = 4096;\n"
          "inline constexpr int kMaxM = 16;\n"
          "inline constexpr int kTilesN = 2;\n"
          "inline constexpr int kWaves = 16;\n"
          "inline constexpr int kLaneRows = 16;\n"
          "inline constexpr int kBlocksAhead = 2;\n"
          "}  // namespace kiln::constants\n");
}

TEST_CASE("constants.h names each of several kernels") {
    const kiln::operators::Bucket bucket{8, "linear/double", {}};
    CHECK(kiln::operators::constants_header(kiln::test::TemplateDouble(), {}, bucket) ==
          "// Generated: the constants of one specialisation of linear/double.\n"
          "#pragma once\n\n"
          "#define KILN_KERNEL_NAME_FIRST kiln_double_m8_first\n"
          "#define KILN_KERNEL_NAME_SECOND kiln_double_m8_second\n\n"
          "namespace kiln::constants {\n"
          "inline constexpr int kN = 16;\n"
          "}  // namespace kiln::constants\n");
}

TEST_CASE("a specialisation hands over every header that the template reaches, and no other") {
    const auto specialisation = make(kFiles);
    REQUIRE(specialisation);
    std::vector<std::string> names;
    for (const kiln::compile::Header& header : specialisation->request.headers) {
        names.push_back(header.name);
    }
    CHECK(names ==
          std::vector<std::string>{"device/lane.h", "device/load.h", "device/tile.h", "constants.h"});
    CHECK(specialisation->request.name == "linear/small_m.gfx950.hip");
    CHECK(specialisation->request.target == "gfx950");
    CHECK(specialisation->kernel_name == "kiln_linear_n5120_k4096_m16");
}

TEST_CASE("headers that include each other are each taken once") {
    Files files = kFiles;
    files["device/lane.h"] = "#pragma once\n#include \"device/tile.h\"\n";
    REQUIRE(make(files));
    CHECK(make(files)->request.headers.size() == 4);
}

TEST_CASE("an include that leads nowhere is named with its file and line") {
    Files files = kFiles;
    files.erase("device/lane.h");
    const auto specialisation = make(files);
    REQUIRE(!specialisation);
    CHECK(specialisation.error().code == kiln::ErrorCode::not_found);
    CHECK(specialisation.error().message ==
          "device/tile.h:2: \"device/lane.h\" is no file of the kernel sources");
}

TEST_CASE("an include that the key could not see is refused, in a header too") {
    for (const char* include : {"<vector>", "</abs/path.h>", "MACRO"}) {
        Files files = kFiles;
        files["device/lane.h"] = std::string("// lanes\n#include ") + include + "\n";
        const auto specialisation = make(files);
        REQUIRE(!specialisation);
        CHECK(specialisation.error().code == kiln::ErrorCode::bad_input);
        CHECK(
            specialisation.error().message ==
            std::string("device/lane.h:2: expected #include \"name\" of a file in the kernel sources, found "
                        "#include ") +
                include);
    }
}

TEST_CASE("a template without a source for the target is named") {
    const auto specialisation = make(kFiles, kBucket, "gfx942");
    REQUIRE(!specialisation);
    CHECK(specialisation.error().message.find("linear/small_m.gfx942.hip") != std::string::npos);
    CHECK(make(kFiles, kBucket, "gfx950:xnack-")->request.target == "gfx950:xnack-");
}

TEST_CASE("the request depends on every text that is compiled and on nothing else") {
    const std::string request = request_of(kFiles);
    for (const char* name : {"linear/small_m.gfx950.hip", "device/tile.h", "device/lane.h"}) {
        Files files = kFiles;
        files[name] += "// changed\n";
        CHECK(request_of(files) != request);
    }
    Files files = kFiles;
    files["device/unused.h"] += "// changed\n";
    CHECK(request_of(files) == request);

    Bucket bucket = kBucket;
    bucket.constants["waves"] = 8;
    CHECK(make(kFiles, bucket)->request_document != request);
    bucket = kBucket;
    bucket.max_m = 8;
    CHECK(make(kFiles, bucket)->request_document != request);
    CHECK(make(kFiles, kBucket, "gfx950:xnack-")->request_document != request);
}

TEST_CASE("the request names its parts") {
    const auto document = nlohmann::json::parse(request_of(kFiles));
    CHECK(document["schema"] == 1);
    CHECK(document["template"] == "linear/small_m");
    CHECK(document["target"] == "gfx950");
    CHECK(document["constants"]["kWaves"] == 16);
    CHECK(document["headers"].size() == 4);
    CHECK(document["kernargs"][5] == nlohmann::json{{"name", "ldx"}, {"offset", 36}, {"size", 4}});
    CHECK(document["options"].size() > 3);
}
