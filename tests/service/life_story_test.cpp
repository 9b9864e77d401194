// The cache's life under the service, with the real compiler: what is counted is what happened.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::test::open;
using kiln::test::overrides_in;
using kiln::test::Scratch;
using kiln::test::small_specialisation;
using kiln::test::small_table;

namespace {

struct Story {
    Scratch scratch;
    Overrides overrides = overrides_in(scratch);

    Story() { overrides.shapes_path = scratch.write("table.json", small_table()).string(); }

    // Obtains the table's specialisation in a service of its own.
    kiln::Result<ArtifactPtr> obtain(Statistics& statistics) const {
        const std::unique_ptr<Service> service = open(overrides);
        kiln::Result<ArtifactPtr> artifact = service->obtain(small_specialisation(*service));
        statistics = service->statistics();
        return artifact;
    }
    ArtifactPtr obtain_well(Statistics& statistics) const {
        kiln::Result<ArtifactPtr> artifact = obtain(statistics);
        REQUIRE_MESSAGE(artifact, artifact.error().message);
        return *artifact;
    }
    [[nodiscard]] std::size_t num_entries() const {
        return open(overrides)->builder().store()->list()->size();
    }
};

#define CHECK_COUNTS(statistics, hits, misses, compiled) \
    CHECK((statistics).cache_hits == (hits));            \
    CHECK((statistics).cache_misses == (misses));        \
    CHECK((statistics).compiles == (compiled))

}  // namespace

TEST_CASE_FIXTURE(Story, "life story: miss, hit, wipe, rebuild, reopen") {
    Statistics statistics;
    const ArtifactPtr first = obtain_well(statistics);
    CHECK_COUNTS(statistics, 0u, 1u, 1u);
    CHECK(statistics.compile_seconds > 0);
    CHECK(first->source == ArtifactSource::compiled);

    const ArtifactPtr second = obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
    CHECK(second->source == ArtifactSource::cache);
    CHECK(second->code_object == first->code_object);
    CHECK(second->listing.get() == first->listing.get());
    CHECK(second->metadata.get() == first->metadata.get());
    CHECK(second->key_digest == first->key_digest);

    std::filesystem::remove_all(scratch.cache());
    const ArtifactPtr rebuilt = obtain_well(statistics);
    CHECK_COUNTS(statistics, 0u, 1u, 1u);
    CHECK(rebuilt->code_object == first->code_object);

    obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
    CHECK(num_entries() == 1);
}

TEST_CASE_FIXTURE(Story, "life story: a damaged entry is rebuilt") {
    Statistics statistics;
    const ArtifactPtr first = obtain_well(statistics);
    const std::filesystem::path entry = open(overrides)->builder().store()->list()->front().path;
    std::string bytes = Scratch::read(entry);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
    std::filesystem::permissions(entry, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::ofstream(entry, std::ios::binary) << bytes;

    const ArtifactPtr rebuilt = obtain_well(statistics);
    CHECK_COUNTS(statistics, 0u, 1u, 1u);
    CHECK(statistics.cache_damaged == 1);
    CHECK(rebuilt->code_object == first->code_object);
    obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
}

TEST_CASE_FIXTURE(Story, "life story: threads share one compile") {
    const std::unique_ptr<Service> service = open(overrides);
    const auto specialisation = small_specialisation(*service);
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] { failed += !service->obtain(specialisation); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(failed == 0);
    const Statistics statistics = service->statistics();
    CHECK_COUNTS(statistics, 8 - 1 - statistics.memory_hits, 1u, 1u);
}

TEST_CASE_FIXTURE(Story,
                  "life story: an edited header is another key, and undoing the edit finds the old one") {
    Statistics statistics;
    obtain_well(statistics);
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    // The same texts from another place are the same request.
    obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);

    const auto service = open(overrides);
    const std::string header = small_specialisation(*service).request.headers.front().name;
    REQUIRE(header != "constants.h");
    const std::filesystem::path path = scratch.kernels() / header;
    const std::string before = Scratch::read(path);
    scratch.write("kernels/" + header, before + "// edited\n");
    obtain_well(statistics);
    CHECK_COUNTS(statistics, 0u, 1u, 1u);
    scratch.write("kernels/" + header, before);
    obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
    CHECK(num_entries() == 2);
}

TEST_CASE_FIXTURE(Story,
                  "life story: a broken template is an error with its file and line, and nothing is stored") {
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    const std::string name = "linear/small_m.gfx950.hip";
    const std::string text = Scratch::read(scratch.kernels() / name);
    const auto line = std::count(text.begin(), text.end(), '\n') + 1;
    scratch.write("kernels/" + name, text + "this is no C++;\n");

    Statistics statistics;
    const auto artifact = obtain(statistics);
    REQUIRE(!artifact);
    CHECK(artifact.error().code == kiln::ErrorCode::compile_failed);
    CHECK(artifact.error().stage == kiln::Stage::compile);
    const std::string place = name + ":" + std::to_string(line);
    CHECK_MESSAGE(artifact.error().message.find(place) != std::string::npos, artifact.error().message);
    CHECK(artifact.error().message.find("/tmp/comgr") == std::string::npos);
    CHECK(statistics.compile_errors == 1);
    CHECK(num_entries() == 0);
}

TEST_CASE_FIXTURE(Story, "life story: KILN_JIT=off turns a miss into a named error, and leaves hits alone") {
    Statistics statistics;
    overrides.jit = "off";
    const auto artifact = obtain(statistics);
    REQUIRE(!artifact);
    CHECK(artifact.error().code == kiln::ErrorCode::environment);
    CHECK(artifact.error().message.find("kiln_linear_n16_k128_m16") != std::string::npos);
    CHECK(artifact.error().message.find("KILN_JIT=off") != std::string::npos);
    CHECK_COUNTS(statistics, 0u, 1u, 0u);

    overrides.jit = "on";
    obtain_well(statistics);
    overrides.jit = "off";
    obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
}

TEST_CASE_FIXTURE(Story, "life story: without a compiler, what the cache holds is served") {
    Statistics statistics;
    const std::string worker = (scratch.folder() / "no-worker").string();
    overrides.worker = worker;
    const auto missing = obtain(statistics);
    REQUIRE(!missing);
    CHECK(missing.error().code == kiln::ErrorCode::environment);
    CHECK_MESSAGE(missing.error().message.find(worker) != std::string::npos, missing.error().message);

    overrides.worker.reset();
    const ArtifactPtr compiled = obtain_well(statistics);
    overrides.worker = worker;
    const ArtifactPtr served = obtain_well(statistics);
    CHECK_COUNTS(statistics, 1u, 0u, 0u);
    CHECK(served->code_object == compiled->code_object);
}
