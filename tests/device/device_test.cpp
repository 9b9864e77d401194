// The device interface over a driver with the look-alike behind it: HIP's, and CUDA's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "runtime/compile/compiler.hpp"
#include "runtime/device/device.hpp"
#include "tests/device/under_test.hpp"

using namespace kiln;
using namespace kiln::device;
using kiln::test::current_device;
using kiln::test::driver_entry;
using kiln::test::error_text;
using kiln::test::kCuda;
using kiln::test::kNoneCurrent;
using kiln::test::last_error;

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void affine(int* x, int factor, int addend, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) x[i] = factor * x[i] + addend;
}
)";

Bytes compile_for(const std::string& target) {
    auto compiler = compile::Compiler::create({});
    REQUIRE_MESSAGE(compiler, (compiler ? "" : compiler.error().message));
    auto result = (*compiler)->compile({.name = "tests/affine.hip",
                                        .source = kSource,
                                        .headers = {},
                                        .target = target,
                                        .options = {"-O3", "-std=c++20", "-mcumode"}});
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    return std::move(result->code_object);
}

const Bytes& code_object() {
    static const Bytes bytes = compile_for("gfx950");
    return bytes;
}

const std::vector<std::shared_ptr<Device>>& devices() {
    static const auto opened = kiln::test::open_driver();
    return opened;
}

struct Arguments {
    int* x = nullptr;
    int factor = 1;
    int addend = 0;
    int n = 0;
};

int launch(Device& device, Function function, Stream stream, Arguments arguments) {
    const LaunchShape shape{.grid = {static_cast<std::uint32_t>(arguments.n + 63) / 64, 1, 1},
                            .block = {64, 1, 1}};
    return device.launch(function, shape, stream, &arguments, sizeof arguments);
}

// n integers on a device, and the module that works on them.
struct Fixture {
    explicit Fixture(Device& its_device, int size = 100) : device(its_device), n(size) {
        auto loaded = device.load(code_object());
        REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().message));
        module = *std::move(loaded);
        affine = module->function("affine").value();
        stream = device.create_stream().value();
        x = static_cast<int*>(device.allocate(static_cast<std::size_t>(n) * sizeof(int)).value());
        REQUIRE(device.fill(x, std::byte{0}, static_cast<std::size_t>(n) * sizeof(int), stream));
    }
    ~Fixture() {
        CHECK(device.destroy_stream(stream));
        device.free(x);
    }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;
    std::vector<int> read() {
        std::vector<int> values(static_cast<std::size_t>(n));
        REQUIRE(device.copy_to_host(std::as_writable_bytes(std::span(values)), x, stream));
        return values;
    }
    Device& device;
    int n;
    std::unique_ptr<Module> module;
    Function affine = nullptr;
    Stream stream = nullptr;
    int* x = nullptr;
};

}  // namespace

TEST_CASE("DevicesSayWhatTheyAre") {
    REQUIRE(devices().size() == 2);
    for (int i = 0; i < 2; ++i) {
        const auto& info = devices()[static_cast<std::size_t>(i)]->info();
        CHECK(info.ordinal == i);
        CHECK(info.name == (kCuda ? "double of an H200" : "kiln gfx950 simulator"));
        CHECK(info.target == kiln::test::kTarget);
        CHECK(info.num_compute_units == (kCuda ? 132 : 256));
        CHECK(info.memory_bytes == std::size_t{288} << 30);
        CHECK(info.simulated == !kCuda);
    }
}

TEST_CASE("AKernelIsLoadedAndLaunched") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    Device& device = *devices()[0];
    Fixture fixture(device);
    std::vector<int> values(100);
    for (int& value : values) {
        value = static_cast<int>(random() % 10'000);
    }
    REQUIRE(device.copy_to_device(fixture.x, std::as_bytes(std::span(values)), fixture.stream));
    CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x, 3, -7, 99}) == 0);
    const auto result = fixture.read();
    for (std::size_t i = 0; i < 99; ++i) {
        CHECK(result[i] == 3 * values[i] - 7);
    }
    CHECK(result[99] == values[99]);
}

TEST_CASE("AReplayEqualsTheEagerRun") {
    Device& device = *devices()[0];
    Fixture fixture(device);
    const auto work = [&] {
        CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x, 2, 1, 100}) == 0);
        CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x, 3, 0, 100}) == 0);
    };
    work();
    work();
    const auto eager = fixture.read();
    REQUIRE(device.fill(fixture.x, std::byte{0}, 400, fixture.stream));
    REQUIRE(device.begin_capture(fixture.stream));
    CHECK(device.is_capturing(fixture.stream).value());
    work();
    const auto graph = device.end_capture(fixture.stream);
    REQUIRE(graph);
    CHECK_FALSE(device.is_capturing(fixture.stream).value());
    CHECK(fixture.read() == std::vector<int>(100, 0));
    CHECK(device.replay(*graph, fixture.stream));
    CHECK(device.replay(*graph, fixture.stream));
    CHECK(fixture.read() == eager);
    CHECK(eager[0] == 21);
    CHECK(device.destroy_graph(*graph));
}

TEST_CASE("LoadingBreaksNoCapture") {
    Device& device = *devices()[0];
    Fixture fixture(device);
    REQUIRE(device.begin_capture(fixture.stream));
    {
        auto module = device.load(code_object());
        REQUIRE(module);
        CHECK((*module)->function("affine"));
        auto other = devices()[1]->load(code_object());
        REQUIRE(other);
    }
    CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x, 1, 4, 100}) == 0);
    const auto graph = device.end_capture(fixture.stream);
    REQUIRE(graph);
    CHECK(device.replay(*graph, fixture.stream));
    CHECK(fixture.read()[0] == 4);
    CHECK(device.destroy_graph(*graph));
    // The thread's own mode is as it was: what a capture forbids is still forbidden.
    REQUIRE(device.begin_capture(fixture.stream));
    CHECK_FALSE(device.allocate(64));
    CHECK_FALSE(device.end_capture(fixture.stream));
    CHECK(last_error() == 0);
}

TEST_CASE("TheCurrentDeviceIsLeftAlone") {
    Device& other = *devices()[1];
    CHECK(current_device() == kNoneCurrent);
    CHECK(other.current_ordinal() == 0);
    {
        Fixture fixture(other);
        CHECK(current_device() == kNoneCurrent);
        // Launching switches nothing: the stream of another device names the device.
        CHECK(launch(other, fixture.affine, fixture.stream, {fixture.x, 1, 9, 100}) == 0);
        CHECK(fixture.read()[99] == 9);
        const auto start = other.create_event();
        const auto stop = other.create_event();
        REQUIRE(start);
        REQUIRE(stop);
        CHECK(other.record(*start, fixture.stream));
        CHECK(other.record(*stop, fixture.stream));
        CHECK(other.synchronize(fixture.stream));
        CHECK(other.elapsed_milliseconds(*start, *stop).value() >= 0);
        CHECK(other.destroy_event(*start));
        CHECK(other.destroy_event(*stop));
        CHECK(other.take_counts().has_value() == !kCuda);
        CHECK(current_device() == kNoneCurrent);
    }
    CHECK(current_device() == kNoneCurrent);
    REQUIRE(other.make_current());
    CHECK(current_device() == 1);
    CHECK(other.current_ordinal() == 1);
    CHECK(devices()[0]->current_ordinal() == 1);
    CHECK(devices()[0]->allocate(std::size_t{1} << 50).error().code == ErrorCode::device_failed);
    CHECK(current_device() == 1);
    REQUIRE(devices()[0]->make_current());
    CHECK(current_device() == 0);
}

TEST_CASE("AThreadThatHasUsedNoDeviceLaunchesOnTheFirst") {
    Device& device = *devices()[0];
    Fixture fixture(device);
    std::thread([&] {
        CHECK(current_device() == kNoneCurrent);
        CHECK(device.current_ordinal() == 0);
        CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x, 1, 5, 100}) == 0);
        CHECK(current_device() == kNoneCurrent);
    }).join();
    CHECK(fixture.read()[99] == 5);
}

TEST_CASE("AKernelMayHaveAllOfTheDevicesSharedMemory") {
    Device& device = *devices()[0];
    Fixture fixture(device);
    Arguments arguments{fixture.x, 1, 1, 64};
    LaunchShape shape{.grid = {1, 1, 1}, .block = {64, 1, 1}, .dynamic_lds_bytes = 160 * 1024};
    CHECK(device.launch(fixture.affine, shape, fixture.stream, &arguments, sizeof arguments) == 0);
    CHECK(fixture.read()[63] == 1);
    shape.dynamic_lds_bytes = 228 * 1024;
    CHECK(device.launch(fixture.affine, shape, fixture.stream, &arguments, sizeof arguments) != 0);
    CHECK(last_error() == 0);
}

TEST_CASE("NoBytesAreNoMemory") {
    Device& device = *devices()[0];
    const auto nothing = device.allocate(0);
    REQUIRE(nothing);
    CHECK(*nothing == nullptr);
    CHECK(device.free(nullptr));
}

TEST_CASE("WrongCodeObjectsAreRefusedByNameAndLeaveNoError") {
    Device& device = *devices()[0];
    const auto foreign = device.load(compile_for("gfx942"));
    REQUIRE_FALSE(foreign);
    CHECK(foreign.error().code == ErrorCode::load_failed);
    CHECK(foreign.error().stage == Stage::load);
    CHECK(foreign.error().message.find(error_text(
              "hipErrorNoBinaryForGpu (209)", "CUDA_ERROR_NO_BINARY_FOR_GPU (209)")) != std::string::npos);
    CHECK((kCuda || foreign.error().message.find("gfx942") != std::string::npos));
    CHECK(last_error() == 0);

    CHECK_FALSE(device.load(as_bytes("short")));
    CHECK_FALSE(device.load(Bytes(100)));
    CHECK(last_error() == 0);

    const auto module = device.load(code_object());
    REQUIRE(module);
    const auto absent = (*module)->function("absent");
    REQUIRE_FALSE(absent);
    CHECK(absent.error().message.find(error_text("kernel absent on device 0: hipErrorNotFound (500)",
                                                 "kernel absent on device 0: CUDA_ERROR_NOT_FOUND (500)")) !=
          std::string::npos);
    CHECK(last_error() == 0);
}

TEST_CASE("ASimulatedDeviceKeepsItsListingsWhereItsServiceSays" * doctest::skip(kCuda)) {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "kiln-listings-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    const fs::path folder = name;
    const auto open = [&](const char* cache, const fs::path& worker, const std::string& path = {}) {
        auto result = open_devices({.driver = Driver::sim,
                                    .hip_library = {},
                                    .sim_library = KILN_TEST_LOOKALIKE,
                                    .sim_cache_folder = folder / cache,
                                    .sim_cache_path = path,
                                    .sim_worker = worker});
        REQUIRE(result);
        return result->front();
    };
    const auto num_kept = [&](const char* cache) {
        const auto files = fs::recursive_directory_iterator(folder / cache);
        return std::ranges::count_if(files,
                                     [](const auto& file) { return file.path().extension() == ".entry"; });
    };
    // What the environment says (KILN_CACHE_DIR, KILN_WORKER) holds the listing, and is not asked.
    REQUIRE(devices()[0]->load(code_object()));
    const auto one = open("one", {});
    CHECK(one->load(code_object()));
    CHECK(num_kept("one") == 1);
    const auto no_worker = open("two", "/nonexistent/kiln-compile");
    const auto refused = no_worker->load(code_object());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::device_failed);  // no fault of the code object's
    CHECK(refused.error().message.find("/nonexistent/kiln-compile") != std::string::npos);
    CHECK(num_kept("two") == 0);
    // A kept one needs no worker, and each device keeps to its own.
    CHECK(open("one", "/nonexistent/kiln-compile")->load(code_object()));
    CHECK_FALSE(no_worker->load(code_object()));
    CHECK(one->load(code_object()));
    // Nor does one in a read-only folder, behind others that are none.
    const auto layers = (folder / "none").string() + "::" + (folder / "one").string();
    CHECK(open("three", "/nonexistent/kiln-compile", layers)->load(code_object()));
    CHECK(num_kept("three") == 0);
    // The program's own loads go on as the environment says.
    CHECK(devices()[0]->load(code_object()));
    fs::remove_all(folder);
}

TEST_CASE("ARefusedLaunchLeavesNoError") {
    Device& device = *devices()[0];
    Fixture fixture(device);
    Arguments arguments{fixture.x, 1, 1, 100};
    const LaunchShape shape{.grid = {1, 1, 1}, .block = {2048, 1, 1}};
    const int error = device.launch(fixture.affine, shape, fixture.stream, &arguments, sizeof arguments);
    CHECK(error == (kCuda ? 1 : 9));
    CHECK(device.describe(error) ==
          error_text("hipErrorInvalidConfiguration (9): invalid configuration argument",
                     "CUDA_ERROR_INVALID_VALUE (1): as CUDA would say it"));
    CHECK_FALSE(device.is_earlier_failure(error));
    CHECK(last_error() == 0);
    CHECK(device.launch(fixture.affine, {{1, 1, 1}, {64, 1, 1}}, fixture.stream, &arguments, 8) == 1);
    CHECK(last_error() == 0);
}

TEST_CASE("AFaultIsAnEarlierFailureToWhatComesAfter") {
    Device& device = *devices()[1];
    Fixture fixture(device);
    CHECK(launch(device, fixture.affine, fixture.stream, {fixture.x + (1 << 20), 1, 1, 100}) == 0);
    const auto synchronized = device.synchronize(fixture.stream);
    REQUIRE_FALSE(synchronized);
    CHECK(synchronized.error().code == ErrorCode::device_failed);
    // The simulator knows the kernel.
    CHECK((kCuda || synchronized.error().message.find("affine") != std::string::npos));
    const int error = launch(device, fixture.affine, fixture.stream, {fixture.x, 1, 1, 100});
    CHECK(error != 0);
    CHECK(device.is_earlier_failure(error));
    CHECK((kCuda || device.describe(error).find("affine") != std::string::npos));
    CHECK(last_error() == 0);
    // Nor is it a code object's fault.
    const auto refused = device.load(code_object());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::device_failed);
    const auto function = fixture.module->function("affine");
    CHECK((function || function.error().code == ErrorCode::device_failed));
    CHECK(last_error() == 0);
    // The other device goes on.
    Fixture other(*devices()[0]);
    CHECK(launch(*devices()[0], other.affine, other.stream, {other.x, 1, 3, 100}) == 0);
    CHECK(other.read()[0] == 3);
    // For the tests that follow.
    REQUIRE(device.make_current());
    CHECK(driver_entry<int (*)()>(kCuda ? "faulty_reset_device" : "hipDeviceReset")() == 0);
    REQUIRE(devices()[0]->make_current());
}

TEST_CASE("ADeviceThatDoesNotCountSaysSo" * doctest::skip(!kCuda)) {
    CHECK(devices()[0]->take_counts().error().code == ErrorCode::not_found);
    CHECK(devices()[0]->set_rules({.order = "ascending"}).error().code == ErrorCode::not_found);
}

TEST_CASE("CountsAreOfTheDevice" * doctest::skip(kCuda)) {
    Fixture fixture(*devices()[0], 256);
    REQUIRE(devices()[0]->take_counts());
    REQUIRE(devices()[1]->take_counts());
    CHECK(launch(*devices()[0], fixture.affine, fixture.stream, {fixture.x, 1, 1, 256}) == 0);
    REQUIRE(devices()[0]->synchronize(fixture.stream));
    const auto counts = devices()[0]->take_counts();
    REQUIRE(counts);
    CHECK(counts->work_groups == 4);
    CHECK(counts->global_bytes_written == 1024);
    CHECK(devices()[1]->take_counts()->instructions == 0);
    CHECK(devices()[0]->take_counts()->instructions == 0);
}
