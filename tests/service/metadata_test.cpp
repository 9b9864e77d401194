// What is held against a code object before it is loaded, and what its entry says of it, by the kind of code
// object. The kernels are made up: what real ones say is the compile room's to test.

#include "runtime/service/metadata.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "scratch.hpp"

using namespace kiln;
using compile::CodeObject;
using compile::KernelInfo;

namespace {

struct Metadata {
    test::Scratch scratch;
    operators::Specialisation specialisation;

    Metadata() {
        auto overrides = test::overrides_in(scratch);
        overrides.shapes_path = scratch.write("table.json", test::small_table()).string();
        specialisation = test::small_specialisation(*test::open(overrides));
    }

    // With the arguments that the plan packs; a cubin's have neither names nor kinds.
    [[nodiscard]] CodeObject object_for(const std::string& target) const {
        const bool cubin = target.starts_with("sm_");
        KernelInfo kernel;
        kernel.name = specialisation.kernel_name;
        kernel.kernarg_bytes = specialisation.source_template->kernargs().bytes;
        kernel.vgprs = 40;
        kernel.lds_bytes = 1024;
        kernel.scratch_bytes = 16;
        kernel.max_threads = 256;
        kernel.cluster = cubin ? 2 : 1;
        for (const auto& argument : specialisation.source_template->kernargs().arguments) {
            kernel.arguments.push_back({.name = cubin ? "" : std::string(argument.name),
                                        .value_kind = cubin ? "" : "by_value",
                                        .offset = argument.offset,
                                        .size = argument.size});
        }
        CodeObject object;
        object.target = target;
        object.kernels.push_back(std::move(kernel));
        return object;
    }

    void check_refused(const CodeObject& object, std::string_view part) const {
        const auto checked = service::check_kernel_abi(specialisation, object);
        REQUIRE(!checked);
        CHECK(checked.error().code == ErrorCode::load_failed);
        CHECK_MESSAGE(checked.error().message.find(part) != std::string::npos, checked.error().message);
    }
};

}  // namespace

TEST_CASE_FIXTURE(Metadata,
                  "kernel ABI: a cubin, which has no argument names, is held to offsets and sizes") {
    for (const std::string target : {"gfx950", "sm_90a"}) {
        CAPTURE(target);
        const CodeObject good = object_for(target);
        REQUIRE(service::check_kernel_abi(specialisation, good));
        REQUIRE(good.kernels[0].arguments.size() >= 3);

        CodeObject moved = good;
        moved.kernels[0].arguments[1].offset += 4;
        check_refused(moved, "argument 1: expected ");
        CodeObject resized = good;
        resized.kernels[0].arguments[2].size += 1;
        check_refused(resized, "argument 2: expected ");
        CodeObject shorter = good;
        shorter.kernels[0].arguments.pop_back();
        check_refused(shorter, "arguments, found ");
        CodeObject narrow = good;
        narrow.kernels[0].max_threads = 32;
        check_refused(narrow, "work-items in a work-group, found 32");
        CodeObject renamed = good;
        renamed.kernels[0].name += "x";
        check_refused(renamed, "no kernel of that name");
    }
    CodeObject nameless = object_for("gfx950");
    nameless.kernels[0].arguments[0].name.clear();
    check_refused(nameless, "found no name at 0");
}

TEST_CASE_FIXTURE(Metadata,
                  "metadata: a cubin's is in CUDA's words, and says nothing that it does not know") {
    const auto cubin =
        nlohmann::json::parse(service::describe_artifact(specialisation, object_for("sm_90a"), 0.25));
    CHECK(cubin["registers"] == 40);
    CHECK(cubin["shared_bytes"] == 1024);
    CHECK(cubin["stack_bytes"] == 16);
    CHECK(cubin["cluster"] == 2);
    CHECK(cubin["max_threads"] == 256);
    CHECK(cubin["compile_seconds"] == 0.25);
    CHECK(cubin["arguments"][0] == nlohmann::json{{"offset", 0}, {"size", 8}});
    for (const char* member : {"vgprs", "agprs", "sgprs", "vgpr_spills", "lds_bytes", "scratch_bytes"}) {
        CHECK_MESSAGE(!cubin.contains(member), member);
    }
    const auto gfx =
        nlohmann::json::parse(service::describe_artifact(specialisation, object_for("gfx950"), 0.25));
    CHECK(gfx["vgprs"] == 40);
    CHECK(gfx["lds_bytes"] == 1024);
    CHECK(!gfx["arguments"][0]["name"].get<std::string>().empty());
    CHECK(!gfx.contains("registers"));
}

TEST_CASE_FIXTURE(Metadata, "metadata and kernel ABI: each of several kernels is described and checked") {
    const CodeObject one = object_for("gfx950");
    CodeObject both = one;
    both.kernels.push_back(one.kernels[0]);
    both.kernels[0].name = operators::kernel_symbol(specialisation.kernel_name, "first");
    both.kernels[1].name = operators::kernel_symbol(specialisation.kernel_name, "second");
    both.kernels[1].vgprs = 99;
    specialisation.kernels = {{both.kernels[0].name, {{}, {256, 1, 1}, 0}, {.fixed = 1}},
                              {both.kernels[1].name, {{}, {64, 1, 1}, 0}, {.fixed = 1}}};
    REQUIRE(service::check_kernel_abi(specialisation, both));

    const auto said = nlohmann::json::parse(service::describe_artifact(specialisation, both, 0.25));
    CHECK(said["kernel"] == specialisation.kernel_name);
    REQUIRE(said["kernels"].size() == 2);
    CHECK(said["kernels"][0]["kernel"] == both.kernels[0].name);
    CHECK(said["kernels"][0]["vgprs"] == 40);
    CHECK(said["kernels"][1]["vgprs"] == 99);
    CHECK(!said.contains("vgprs"));

    CodeObject moved = both;
    moved.kernels[1].arguments[1].offset += 4;
    check_refused(moved, "_second");
    both.kernels.pop_back();
    check_refused(both, "_second");
}
