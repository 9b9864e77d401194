#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "runtime/device/hip/sim_abi.h"
#include "tests/lookalike/support.hpp"

using namespace kiln::test;
using kiln::Bytes;

namespace {

template <class T>
void append(Bytes& bytes, const T& value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
}

// A bundle as clang's offload bundler writes it: a host entry that is empty, and images for targets.
Bytes bundle(const std::vector<std::pair<std::string, const Bytes*>>& images) {
    const std::string magic = "__CLANG_OFFLOAD_BUNDLE__";
    const std::string host = "host-x86_64-unknown-linux-gnu-";
    std::size_t header = magic.size() + 8 + 24 + host.size();
    for (const auto& [name, image] : images) {
        header += 24 + name.size();
    }
    constexpr std::size_t kAlign = 4096;
    std::size_t offset = (header + kAlign - 1) / kAlign * kAlign;
    Bytes bytes;
    const auto put = [&](std::size_t at, std::size_t size, const std::string& name) {
        append(bytes, std::uint64_t{at});
        append(bytes, std::uint64_t{size});
        append(bytes, std::uint64_t{name.size()});
        for (const char c : name) {
            append(bytes, c);
        }
    };
    for (const char c : magic) {
        append(bytes, c);
    }
    append(bytes, std::uint64_t{images.size() + 1});
    put(offset, 0, host);
    for (const auto& [name, image] : images) {
        put(offset, image->size(), name);
        offset = (offset + image->size() + kAlign - 1) / kAlign * kAlign;
    }
    for (const auto& [name, image] : images) {
        bytes.resize((bytes.size() + kAlign - 1) / kAlign * kAlign);
        bytes.insert(bytes.end(), image->begin(), image->end());
    }
    return bytes;
}

int load(const Bytes& image) {
    hipModule_t module = nullptr;
    const int error = hipModuleLoadData(&module, image.data());
    if (error == kSuccess) {
        CHECK(hipModuleUnload(module) == kSuccess);
    }
    return error;
}

}  // namespace

TEST_CASE("OnlyWhatTheDeviceRunsIsLoaded") {
    CHECK(load(code_object("gfx950")) == kSuccess);
    CHECK(load(code_object("gfx950:sramecc+:xnack-")) == kSuccess);
    CHECK(load(code_object("gfx950:xnack+")) == kNoBinaryForGpu);
    CHECK(std::string(kiln_sim_last_message()).find("xnack+") != std::string::npos);
    CHECK(load(code_object("gfx942")) == kNoBinaryForGpu);
    const auto cubin = kiln::read_file(KILN_CUBIN, kiln::Stage::load);
    REQUIRE(cubin);
    CHECK(load(*cubin) == kNoBinaryForGpu);
    CHECK(std::string(kiln_sim_last_message()).find("sm_90a") != std::string::npos);
    const std::string garbage = "this is not a code object, whatever its length may be";
    hipModule_t module = nullptr;
    CHECK(hipModuleLoadData(&module, garbage.data()) == kInvalidImage);
    CHECK(hipModuleLoadData(&module, "\x7f") == kInvalidImage);
    CHECK(hipModuleLoadData(&module, nullptr) == kInvalidValue);
    CHECK(hipModuleLoad(&module, "/nonexistent/file.co") == kFileNotFound);
    CHECK(hipModuleUnload(module) == kNotFound);
    hipGetLastError();
}

// From a file, whose size is known; behind a bare pointer the driver too believes the headers.
TEST_CASE("DamagedFilesAreRefusedOrHarmless") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string file = (std::filesystem::temp_directory_path() / "kiln-damaged-XXXXXX").string();
    const int fd = mkstemp(file.data());
    REQUIRE(fd >= 0);
    close(fd);
    const auto load_file = [&](const Bytes& bytes) {
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        hipModule_t module = nullptr;
        const int error = hipModuleLoad(&module, file.c_str());
        if (error == kSuccess) {
            CHECK(hipModuleUnload(module) == kSuccess);
        }
        return error;
    };
    CHECK(load_file(code_object()) == kSuccess);
    for (int round = 0; round < 40; ++round) {
        Bytes damaged = code_object();
        if (round % 2 == 0) {
            damaged.resize(random() % damaged.size());
            CHECK(load_file(damaged) == kInvalidImage);
        } else {  // in the headers that say where everything is
            damaged[random() % 512] ^= static_cast<std::byte>(1 + random() % 255);
            const int error = load_file(damaged);
            CHECK((error == kSuccess || error == kInvalidImage || error == kNoBinaryForGpu || error == 303));
        }
    }
    std::filesystem::remove(file);
    hipGetLastError();
}

TEST_CASE("OffloadBundlesAreOpened") {
    const Bytes& plain = code_object("gfx950");
    const Bytes& other = code_object("gfx942");
    CHECK(load(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", &other},
                       {"hipv4-amdgcn-amd-amdhsa--gfx950", &plain}})) == kSuccess);
    CHECK(load(bundle({{"hip-amdgcn-amd-amdhsa--gfx950:xnack-", &plain}})) == kSuccess);
    CHECK(load(bundle({{"hipv4-amdgcn-amd-amdhsa--gfx942", &other}})) == kNoBinaryForGpu);
    CHECK(load(bundle({})) == kNoBinaryForGpu);
    hipGetLastError();
}

TEST_CASE("FunctionsAreFoundByName") {
    const Module module;
    hipFunction_t function = nullptr;
    CHECK(hipModuleGetFunction(&function, module.handle, "affine") == kSuccess);
    CHECK(hipModuleGetFunction(&function, module.handle, "affine.kd") == kNotFound);
    CHECK(hipModuleGetFunction(&function, nullptr, "affine") == kInvalidHandle);
    int value = -1;
    CHECK(hipFuncGetAttribute(&value, 0, module("affine")) == kSuccess);  // threads per block
    CHECK(value == 1024);
    CHECK(hipFuncGetAttribute(&value, 4, module("affine")) == kSuccess);  // registers
    CHECK(value > 0);
    CHECK(value < 64);
    int blocks = 0;
    CHECK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, module("affine"), 256, 0) == kSuccess);
    CHECK(blocks == 8);  // 32 waves of 4
    CHECK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, module("affine"), 64, 81920) ==
          kSuccess);
    CHECK(blocks == 2);  // halves of the LDS
    hipGetLastError();
}

TEST_CASE("BothWaysToPassArguments") {
    const Module module;
    const Array<double> out(64);
    char tag = 'A';
    double* pointer = out.data;
    short step = 3;
    void* pointers[] = {&tag, &pointer, &step};
    REQUIRE(hipModuleLaunchKernel(module("mixed"), 1, 1, 1, 64, 1, 1, 0, nullptr, pointers, nullptr) ==
            kSuccess);
    CHECK(out.read()[63] == 65 + 1.5);

    struct {
        char tag = 'B';
        double* pointer = nullptr;
        short step = -4;
    } packed;
    packed.pointer = out.data;
    std::size_t bytes = sizeof packed;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    REQUIRE(hipModuleLaunchKernel(module("mixed"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) ==
            kSuccess);
    CHECK(out.read()[63] == 66 - 2.0);

    bytes = 16;  // the last argument is not there
    CHECK(hipModuleLaunchKernel(module("mixed"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) ==
          kInvalidValue);
    CHECK(std::string(kiln_sim_last_message()).find("mixed takes 18 bytes") != std::string::npos);
    CHECK(hipModuleLaunchKernel(module("mixed"), 1, 1, 1, 64, 1, 1, 0, nullptr, pointers, extra) ==
          kInvalidValue);
    CHECK(hipModuleLaunchKernel(module("mixed"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) ==
          kInvalidValue);
    hipGetLastError();
}

TEST_CASE("ShapesThatCanNotBeAreRefused") {
    const Module module;
    const auto shaped = [&](unsigned grid, unsigned block, unsigned lds) {
        int* x = nullptr;
        int zero = 0;
        void* pointers[] = {&x, &zero, &zero, &zero};
        return hipModuleLaunchKernel(module("affine"), grid, 1, 1, block, 1, 1, lds, nullptr, pointers,
                                     nullptr);
    };
    CHECK(shaped(0, 64, 0) == kInvalidConfiguration);
    CHECK(shaped(1, 0, 0) == kInvalidConfiguration);
    CHECK(shaped(1, 1025, 0) == kInvalidConfiguration);
    CHECK(shaped(1U << 31, 64, 0) == kInvalidConfiguration);
    CHECK(shaped(1, 64, 160 * 1024 + 1) == 2);  // hipErrorOutOfMemory
    CHECK(shaped(2, 64, 0) == kSuccess);
    CHECK(hipDeviceSynchronize() == kSuccess);
    hipGetLastError();
}

TEST_CASE("KernelsRunInTheOrderOfTheirStreams") {
    const Module module;
    const Stream first, second;
    const Event event;
    const Array<int> x(100);
    {
        Gate gate(first);
        CHECK(launch(module("affine"), 100, first, x.data, 2, 1, 100) == kSuccess);  // 1
        CHECK(launch(module("affine"), 100, first, x.data, 3, 2, 100) == kSuccess);  // 5
        CHECK(hipEventRecord(event, first) == kSuccess);
        CHECK(hipStreamWaitEvent(second, event, 0) == kSuccess);
        CHECK(launch(module("affine"), 100, second, x.data, 10, 0, 100) == kSuccess);  // 50
    }
    CHECK(hipStreamSynchronize(second) == kSuccess);
    CHECK(x.read() == std::vector<int>(100, 50));
}

TEST_CASE("AReplayEqualsTheEagerRun") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    constexpr int kCount = 777;
    std::vector<float> a(kCount), b(kCount);
    for (int i = 0; i < kCount; ++i) {
        a[i] = static_cast<float>(random()) / 7;
        b[i] = -static_cast<float>(random()) / 3;
    }
    const Module module;
    const Stream stream, side;
    const Event fork, join;
    const Array<float> da(kCount), db(kCount), eager(kCount), replayed(kCount);
    REQUIRE(hipMemcpy(da.data, a.data(), kCount * 4, hipMemcpyHostToDevice) == kSuccess);
    REQUIRE(hipMemcpy(db.data, b.data(), kCount * 4, hipMemcpyHostToDevice) == kSuccess);
    REQUIRE(launch(module("vector_add"), kCount, stream, da.data, db.data, eager.data, kCount) == kSuccess);
    REQUIRE(launch(module("vector_add"), kCount, stream, eager.data, db.data, eager.data, kCount) ==
            kSuccess);
    REQUIRE(hipStreamSynchronize(stream) == kSuccess);

    const auto graph = record(stream, [&] {
        CHECK(launch(module("vector_add"), kCount, stream, da.data, db.data, replayed.data, kCount) ==
              kSuccess);
        CHECK(hipEventRecord(fork, stream) == kSuccess);
        CHECK(hipStreamWaitEvent(side, fork, 0) == kSuccess);
        CHECK(launch(module("vector_add"), kCount, side, replayed.data, db.data, replayed.data, kCount) ==
              kSuccess);
        CHECK(hipEventRecord(join, side) == kSuccess);
        CHECK(hipStreamWaitEvent(stream, join, 0) == kSuccess);
    });
    CHECK(replayed.read()[0] == 0);
    for (int round = 0; round < 2; ++round) {
        CHECK(hipMemset(replayed.data, 0, kCount * 4) == kSuccess);
        CHECK(hipGraphLaunch(graph, stream) == kSuccess);
        CHECK(hipStreamSynchronize(stream) == kSuccess);
        CHECK(replayed.read() == eager.read());
    }
    CHECK(hipGraphExecDestroy(graph) == kSuccess);
}

TEST_CASE("AFaultStaysOnItsDevice") {
    const Module module;
    const Array<int> x(64);
    int* nowhere = x.data + (1 << 20);
    {
        const Stream stream;
        CHECK(launch(module("affine"), 64, stream, nowhere, 1, 0, 64) == kSuccess);  // asynchronous
        const int fault = hipStreamSynchronize(stream);
        CHECK((fault == kIllegalAddress || fault == kLaunchFailure));
        CHECK(std::string(kiln_sim_last_fault(0)).find("affine") != std::string::npos);
        CHECK(hipGetLastError() == fault);
        CHECK(hipStreamSynchronize(stream) == fault);
        CHECK(hipDeviceSynchronize() == fault);
        CHECK(launch(module("affine"), 64, stream, x.data, 1, 0, 64) == fault);
        void* pointer = nullptr;
        CHECK(hipMalloc(&pointer, 64) == fault);
        hipModule_t other = nullptr;
        CHECK(hipModuleLoadData(&other, code_object().data()) == fault);
    }
    REQUIRE(hipSetDevice(1) == kSuccess);
    CHECK(hipDeviceSynchronize() == kSuccess);  // the other device has none
    CHECK(std::string(kiln_sim_last_fault(1)).empty());
    REQUIRE(hipSetDevice(0) == kSuccess);
    CHECK(hipDeviceReset() == kSuccess);
    CHECK(std::string(kiln_sim_last_fault(0)).empty());
    CHECK(launch(module("affine"), 64, nullptr, x.data, 1, 4, 64) == kSuccess);
    CHECK(x.read()[5] == 4);
    hipGetLastError();
}

TEST_CASE("MemoryOfAnotherDeviceIsOutOfReach") {
    const Module module;
    REQUIRE(hipSetDevice(1) == kSuccess);
    {
        const Array<int> foreign(64);
        const Module other;
        // A function belongs to the device that loaded it.
        CHECK(launch(module("affine"), 64, nullptr, foreign.data, 1, 1, 64) == kInvalidHandle);
        CHECK(launch(other("affine"), 64, nullptr, foreign.data, 1, 1, 64) == kSuccess);
        CHECK(foreign.read()[0] == 1);
        REQUIRE(hipSetDevice(0) == kSuccess);
        CHECK(launch(module("affine"), 64, nullptr, foreign.data, 1, 1, 64) == kSuccess);
        CHECK(hipDeviceSynchronize() != kSuccess);
        CHECK(hipDeviceReset() == kSuccess);
        CHECK(foreign.read()[0] == 1);
    }
    hipGetLastError();
}

TEST_CASE("PinnedMemoryIsInReachOfEveryDevice") {
    int* pinned = nullptr;
    REQUIRE(hipHostMalloc(reinterpret_cast<void**>(&pinned), 64 * sizeof(int), 0) == kSuccess);
    std::memset(pinned, 0, 64 * sizeof(int));
    for (const int device : {1, 0}) {
        REQUIRE(hipSetDevice(device) == kSuccess);
        const Module module;
        CHECK(launch(module("affine"), 64, nullptr, pinned, 1, 5, 64) == kSuccess);
        CHECK(hipDeviceSynchronize() == kSuccess);
    }
    CHECK(pinned[63] == 10);
    CHECK(hipHostFree(pinned) == kSuccess);
}

TEST_CASE("TheExtendedLaunchCountsItemsAndRecordsEvents") {
    const Module module;
    const Event start, stop;
    const Array<int> x(128);
    int* pointer = x.data;
    int one = 1, two = 2, count = 128;
    void* pointers[] = {&pointer, &one, &two, &count};
    CHECK(hipExtModuleLaunchKernel(module("affine"), 128, 1, 1, 64, 1, 1, 0, nullptr, pointers, nullptr,
                                   start, stop, 0) == kSuccess);
    CHECK(hipEventSynchronize(stop) == kSuccess);
    float milliseconds = -1;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop) == kSuccess);
    CHECK(milliseconds > 0);
    CHECK(x.read() == std::vector<int>(128, 2));
    CHECK(hipExtModuleLaunchKernel(module("affine"), 100, 1, 1, 64, 1, 1, 0, nullptr, pointers, nullptr,
                                   nullptr, nullptr, 0) == kInvalidConfiguration);
    hipGetLastError();
}

TEST_CASE("RulesOfALaunchAreWhatWasSaidLast") {
    const Module module;
    const auto run = [&](const char* order, const char* scopes) {
        const kiln_sim_rules rules = {sizeof rules, order, scopes, nullptr};
        REQUIRE(kiln_sim_set_rules(0, &rules) == kSuccess);
        const Array<int> counter(1), plain(1), place(20), seen(20);
        REQUIRE(launch(module("places"), 20 * 64, nullptr, counter.data, plain.data, place.data, seen.data) ==
                kSuccess);
        REQUIRE(hipDeviceSynchronize() == kSuccess);
        CHECK(plain.read()[0] == 1);
        return std::pair(place.read(), seen.read());
    };
    std::vector<int> up(20), ones(20, 1), own_die(20, 0);
    for (int n = 0; n < 20; ++n) {
        up[static_cast<std::size_t>(n)] = n;
        own_die[static_cast<std::size_t>(n)] = n % 8 == 0;
    }
    CHECK(run("ascending", "early") == std::pair(up, ones));
    CHECK(run("ascending", "late") == std::pair(up, own_die));
    const std::vector<int> down(up.rbegin(), up.rend());
    CHECK(run("descending", nullptr).first == down);
    CHECK(run("shuffle:9", nullptr).first != up);
    CHECK(run(nullptr, "early").first == run("shuffle:9", nullptr).first);

    const kiln_sim_rules wrong = {sizeof wrong, nullptr, "sometimes", nullptr};
    CHECK(kiln_sim_set_rules(0, &wrong) == kInvalidValue);
    CHECK(std::string(kiln_sim_last_message()) == "scopes: expected early or late, found \"sometimes\"");
    const kiln_sim_rules short_one = {8, nullptr, nullptr, nullptr};
    CHECK(kiln_sim_set_rules(0, &short_one) == kInvalidValue);
    CHECK(kiln_sim_set_rules(99, nullptr) == kInvalidDevice);
    hipGetLastError();
    // Back to what the environment says.
    CHECK(kiln_sim_set_rules(0, nullptr) == kSuccess);
}

TEST_CASE("PlacesOfProgramsOfOtherVersionsAreRead") {
    struct Later {
        kiln_sim_places known{};
        const char* member = nullptr;
    } later;
    kiln_sim_places older{};
    older.struct_bytes = offsetof(kiln_sim_places, cache_path);
    older.cache_path = "not part of what it says";
    later.known.struct_bytes = sizeof later;
    for (const auto* places : {&older, &later.known}) {
        CHECK(kiln_sim_push_places(places) == kSuccess);
        CHECK(load(code_object()) == kSuccess);
        CHECK(kiln_sim_pop_places() == kSuccess);
    }
    later.member = "what this simulator has never heard of";
    CHECK(kiln_sim_push_places(&later.known) == kInvalidValue);
    CHECK(kiln_sim_push_places(nullptr) == kInvalidValue);
    CHECK(kiln_sim_pop_places() == kInvalidValue);
    hipGetLastError();
}

TEST_CASE("WorkIsCounted") {
    const Module module;
    const Array<int> x(256);
    kiln_sim_counts counts{};
    counts.struct_bytes = sizeof counts;
    REQUIRE(kiln_sim_take_counts(0, &counts) == kSuccess);
    CHECK(kiln_sim_next_launch_counts(0, &counts) == kNotFound);
    CHECK(launch(module("affine"), 256, nullptr, x.data, 1, 1, 256) == kSuccess);
    CHECK(hipDeviceSynchronize() == kSuccess);
    REQUIRE(kiln_sim_next_launch_counts(0, &counts) == kSuccess);
    CHECK(counts.work_groups == 4);
    CHECK(counts.global_lines_read == 8);
    CHECK(kiln_sim_next_launch_counts(0, &counts) == kNotFound);
    REQUIRE(kiln_sim_take_counts(0, &counts) == kSuccess);
    CHECK(counts.work_groups == 4);
    CHECK(counts.waves == 4);
    CHECK(counts.global_bytes_read == 1024);
    CHECK(counts.global_bytes_written == 1024);
    CHECK(counts.global_line_requests == 16);
    CHECK(counts.global_lines_read == 8);
    CHECK(counts.global_lines_written == 8);
    CHECK(counts.instructions ==
          counts.valu + counts.mfma + counts.salu + counts.smem + counts.vmem + counts.lds);
    REQUIRE(kiln_sim_take_counts(0, &counts) == kSuccess);
    CHECK(counts.instructions == 0);
    counts.struct_bytes = 8;
    CHECK(kiln_sim_take_counts(0, &counts) == kInvalidValue);
}
