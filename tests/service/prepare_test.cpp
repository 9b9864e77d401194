// From a problem to a plan, on a device whose driver is a double: what is served, what declines, what
// disables.
#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/service/device_double.hpp"
#include "tests/service/launch_linear.hpp"
#include "tests/service/scratch.hpp"

using namespace kiln::service;
using kiln::operators::linear;
using kiln::test::DeviceDouble;
using kiln::test::open;
using kiln::test::overrides_in;
using kiln::test::Scratch;
using kiln::test::small_problem;
using kiln::test::small_table;

namespace {

enum class Refuses {
    target,       // it has never heard of
    to_start,     // no worker, no scratch folder, no process to be had
    instruction,  // that the template needs
    source,       // but builds the template's probe
};

class CompilerDouble final : public kiln::compile::Compiler {
  public:
    explicit CompilerDouble(Refuses refuses) : refuses_(refuses) {}

    kiln::Result<kiln::compile::CompilerIdentity> identity(std::string_view) override {
        return kiln::compile::CompilerIdentity{R"({"components": []})"};
    }
    kiln::Result<kiln::compile::CompileResult> compile(
        const kiln::compile::CompileRequest& request) override {
        if (throws) {
            throw std::runtime_error("out of something");
        }
        if (refuses_ == Refuses::to_start) {
            return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::compile, "no worker");
        }
        if (refuses_ == Refuses::target) {
            return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::compile,
                              "can not build for " + request.target);
        }
        if (refuses_ == Refuses::source && request.name == "probe.hip") {
            return kiln::compile::CompileResult{};
        }
        return kiln::fail(kiln::ErrorCode::compile_failed, kiln::Stage::compile,
                          request.name + ":1: unknown builtin");
    }
    kiln::Result<void> probe(const std::string& target) override {
        if (refuses_ == Refuses::to_start) {
            return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::compile, "no worker");
        }
        return kiln::fail(kiln::ErrorCode::compile_failed, kiln::Stage::compile,
                          "can not build for " + target);
    }
    kiln::Result<std::string> disassemble(kiln::ByteView) override { return std::string(); }
    std::vector<Finding> findings() const override { return {}; }

    static inline bool throws = false;

  private:
    const Refuses refuses_;
};

struct Prepared {
    Scratch scratch;
    Overrides overrides = overrides_in(scratch);
    std::shared_ptr<DeviceDouble> device = std::make_shared<DeviceDouble>();
    Parts parts;

    Prepared() {
        set_table(small_table());
        parts.open_devices = [this] {
            return kiln::Result<std::vector<std::shared_ptr<kiln::device::Device>>>({device});
        };
    }
    void set_table(const std::string& text) {
        overrides.shapes_path = scratch.write("table.json", text).string();
    }
    void set_compiler(Refuses refuses) {
        parts.make_compiler = [refuses]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
            return std::make_unique<CompilerDouble>(refuses);
        };
    }

    kiln::operators::Refusal refusal(Service& service, const Problem& problem = small_problem()) {
        const auto plan = service.prepare(0, linear(), problem);
        REQUIRE(!plan);
        return plan.error();
    }
    // The decline that both supports() and prepare() give, for the same reason.
    int decline(const Problem& problem = small_problem()) {
        const std::unique_ptr<Service> service = open(overrides, parts);
        const kiln::operators::Refusal prepared = refusal(*service, problem);
        const auto supported = service->supports(0, linear(), problem);
        REQUIRE(!supported);
        CHECK(supported.error().decline == prepared.decline);
        last_message = prepared.error.message;
        return prepared.decline;
    }
    std::string last_message;
};

bool mentions(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_FIXTURE(Prepared, "prepare: loads every bucket once, and the cache serves the second service") {
    std::unique_ptr<Service> service = open(overrides, parts);
    auto plan = service->prepare(0, linear(), small_problem());
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    CHECK((*plan)->max_m() == 16);
    REQUIRE((*plan)->buckets().size() == 1);
    CHECK((*plan)->buckets()[0].kernel_name == "kiln_linear_n16_k128_m16");
    CHECK((*plan)->buckets()[0].loaded()->source() == ArtifactSource::compiled);
    CHECK((*plan)->buckets()[0].template_id == "linear/small_m");
    CHECK(service->statistics().loads == 1);
    CHECK(device->loads == 1);

    service = open(overrides, parts);
    plan = service->prepare(0, linear(), small_problem());
    REQUIRE(plan);
    CHECK((*plan)->buckets()[0].loaded()->source() == ArtifactSource::cache);
    CHECK(service->statistics().compiles == 0);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a plan outlives its service") {
    std::unique_ptr<Service> service = open(overrides, parts);
    const auto plan = service->prepare(0, linear(), small_problem());
    REQUIRE(plan);
    service.reset();
    alignas(16) char memory[64] = {};
    const kiln_linear_args args{memory, 128, memory, reinterpret_cast<float*>(memory), memory};
    CHECK(kiln::test::launch_linear(**plan, nullptr, 3, args) == KILN_OK);
    CHECK(device->launches == 1);
}

TEST_CASE_FIXTURE(Prepared, "prepare: plans share what is loaded, until a reset of the device took it") {
    const std::unique_ptr<Service> service = open(overrides, parts);
    const auto first = service->prepare(0, linear(), small_problem());
    const auto second = service->prepare(0, linear(), small_problem());
    REQUIRE(first);
    REQUIRE(second);
    const auto module_of = [](const auto& plan) {
        return (*plan)->buckets()[0].loaded()->modules.front().get();
    };
    CHECK(module_of(first) == module_of(second));
    CHECK(device->loads == 1);

    ++*device->resets;
    const auto third = service->prepare(0, linear(), small_problem());
    REQUIRE_MESSAGE(third, third.error().error.message);
    CHECK(module_of(third) != module_of(first));
    CHECK(device->loads == 2);
    const auto fourth = service->prepare(0, linear(), small_problem());
    REQUIRE(fourth);
    CHECK(module_of(fourth) == module_of(third));
    CHECK(service->statistics().disabled == 0);
}

TEST_CASE_FIXTURE(Prepared, "prepare: supports() neither compiles nor loads") {
    overrides.worker = "/nowhere";
    const std::unique_ptr<Service> service = open(overrides, parts);
    CHECK(service->supports(0, linear(), small_problem()));
    CHECK(service->supports(linear(), small_problem()));
    CHECK(device->loads == 0);
    CHECK(service->statistics().cache_misses == 0);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a shape that no table has declines") {
    Problem problem = small_problem();
    problem["n"] = std::int64_t{48};
    CHECK(decline(problem) == KILN_DECLINE_SHAPE);
    CHECK(mentions(last_message, "n=48"));
}

TEST_CASE_FIXTURE(Prepared, "prepare: a guard of the operator declines before the tables are asked") {
    Problem problem = small_problem();
    problem["bias"] = std::int64_t{1};
    CHECK(decline(problem) == KILN_DECLINE_BIAS);
}

TEST_CASE_FIXTURE(Prepared, "prepare: another processor declines by name") {
    device = std::make_shared<DeviceDouble>("gfx942:sramecc+:xnack-");
    CHECK(decline() == KILN_DECLINE_PROCESSOR);
    CHECK_MESSAGE(mentions(last_message, "gfx942"), last_message);
}

TEST_CASE_FIXTURE(Prepared,
                  "prepare: a row for other compute units than the device's declines by their number") {
    auto table = small_table();
    table.insert(table.find("\"provenance\""), "\"cu_num\": 64, ");
    set_table(table);
    CHECK(decline() == KILN_DECLINE_TARGET_FEATURE);
    CHECK_MESSAGE(mentions(last_message, "with 256 compute units"), last_message);
    device = std::make_shared<DeviceDouble>("gfx950:sramecc+:xnack-", 0, 64);
    CHECK(open(overrides, parts)->supports(0, linear(), small_problem()));
}

TEST_CASE_FIXTURE(Prepared, "prepare: a pinned feature that the device has otherwise declines by name") {
    set_table(small_table("gfx950:xnack+"));
    CHECK(decline() == KILN_DECLINE_TARGET_FEATURE);
    CHECK_MESSAGE(mentions(last_message, "xnack"), last_message);
    device = std::make_shared<DeviceDouble>("gfx950:sramecc+:xnack+");
    CHECK(open(overrides, parts)->supports(0, linear(), small_problem()));
}

TEST_CASE_FIXTURE(Prepared, "prepare: what KILN_DISABLE names declines") {
    for (const char* name : {"linear", "linear/small_m", "router,linear"}) {
        overrides.disable = name;
        CHECK(decline() == KILN_DECLINE_SWITCHED_OFF);
    }
    overrides.disable = "router,linear/large_m";
    CHECK(open(overrides, parts)->supports(0, linear(), small_problem()));
}

TEST_CASE_FIXTURE(Prepared, "prepare: a compiler that can not build for the target declines") {
    set_compiler(Refuses::target);
    auto refused = refusal(*open(overrides, parts));
    CHECK(refused.decline == KILN_DECLINE_COMPILER);
    CHECK(mentions(refused.error.message, "can not build for gfx950"));

    set_compiler(Refuses::instruction);
    refused = refusal(*open(overrides, parts));
    CHECK(refused.decline == KILN_DECLINE_COMPILER);
    CHECK(mentions(refused.error.message, "probe.hip:1: unknown builtin"));
}

TEST_CASE_FIXTURE(Prepared, "prepare: a compiler that can not be started is an error, and no decline") {
    set_compiler(Refuses::to_start);
    const std::unique_ptr<Service> service = open(overrides, parts);
    const auto refused = refusal(*service);
    CHECK(refused.decline == 0);
    CHECK(refused.error.code == kiln::ErrorCode::environment);
    CHECK(service->supports(0, linear(), small_problem()));
}

TEST_CASE_FIXTURE(Prepared, "prepare: what a compiler throws is an internal error, again at every attempt") {
    set_compiler(Refuses::source);
    const std::unique_ptr<Service> service = open(overrides, parts);
    CompilerDouble::throws = true;
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto refused = refusal(*service);
        CHECK(refused.error.code == kiln::ErrorCode::internal);
        CHECK(mentions(refused.error.message, "out of something"));
    }
    CompilerDouble::throws = false;
    CHECK(refusal(*service).error.code == kiln::ErrorCode::compile_failed);
    CHECK(service->statistics().memory_hits == 0);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a compiler that is installed later is found") {
    const auto installed = std::make_shared<bool>(false);
    parts.make_compiler = [installed]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
        if (!*installed) {
            return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::compile, "no compiler");
        }
        return kiln::compile::Compiler::create({});
    };
    const std::unique_ptr<Service> service = open(overrides, parts);
    CHECK(refusal(*service).error.code == kiln::ErrorCode::environment);
    *installed = true;
    CHECK(service->prepare(0, linear(), small_problem()));
}

TEST_CASE_FIXTURE(Prepared, "prepare: what is kept is served with one search for a compiler, not one each") {
    REQUIRE(open(overrides, parts)->prepare(0, linear(), small_problem()));
    const auto searches = std::make_shared<int>(0);
    parts.make_compiler = [searches]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
        ++*searches;
        return kiln::fail(kiln::ErrorCode::environment, kiln::Stage::compile, "no compiler");
    };
    const std::unique_ptr<Service> service = open(overrides, parts);
    for (int again = 0; again < 3; ++again) {
        CHECK(service->prepare(0, linear(), small_problem()));
        CHECK(service->builder().obtain(kiln::test::small_specialisation(*service)));
    }
    CHECK(*searches == 1);
    CHECK(service->statistics().other_compiler_hits == 6);
    // What is missing is worth a search each time.
    std::filesystem::remove(service->builder().store()->list()->front().path);
    for (int again = 0; again < 2; ++again) {
        CHECK(!service->builder().obtain(kiln::test::small_specialisation(*service)));
    }
    CHECK(*searches == 3);
}

TEST_CASE_FIXTURE(Prepared, "prepare: an entry that can not be read is compiled again") {
    REQUIRE(open(overrides, parts)->prepare(0, linear(), small_problem()));
    const std::filesystem::path entry = open(overrides, parts)->builder().store()->list()->front().path;
    std::filesystem::remove(entry);
    std::filesystem::create_directory(entry);  // reading it is EISDIR, whoever asks
    const std::unique_ptr<Service> service = open(overrides, parts);
    const auto plan = service->prepare(0, linear(), small_problem());
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    CHECK((*plan)->buckets()[0].loaded()->source() == ArtifactSource::compiled);
    CHECK(service->statistics().compiles == 1);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a failed build is an error once, and declines from then on") {
    set_compiler(Refuses::source);
    const std::unique_ptr<Service> service = open(overrides, parts);
    auto refused = refusal(*service);
    CHECK(refused.decline == 0);
    CHECK(refused.error.code == kiln::ErrorCode::compile_failed);
    CHECK(refused.status() == -KILN_ERROR_COMPILE_FAILED);
    CHECK(refusal(*service).decline == KILN_DECLINE_DISABLED);
    CHECK(service->supports(0, linear(), small_problem()).error().decline == KILN_DECLINE_DISABLED);
    CHECK(service->statistics().compile_errors == 1);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a load that an earlier fault of the device stops disables nothing") {
    const std::unique_ptr<Service> service = open(overrides, parts);
    device->load_error = {kiln::ErrorCode::device_failed, kiln::Stage::load, "a fault of before"};
    CHECK(refusal(*service).error.code == kiln::ErrorCode::device_failed);
    CHECK(service->supports(0, linear(), small_problem()));
    device->load_error.reset();
    CHECK(service->prepare(0, linear(), small_problem()));
    // What the driver says of the code object itself does.
    device->load_error = {kiln::ErrorCode::load_failed, kiln::Stage::load, "no kernel image"};
    CHECK(refusal(*service).error.code == kiln::ErrorCode::load_failed);
    CHECK(refusal(*service).decline == KILN_DECLINE_DISABLED);
}

TEST_CASE_FIXTURE(Prepared, "prepare: a miss without a compiler may be tried again") {
    overrides.worker = "/nowhere";
    const std::unique_ptr<Service> service = open(overrides, parts);
    CHECK(refusal(*service).error.code == kiln::ErrorCode::environment);
    CHECK(refusal(*service).error.code == kiln::ErrorCode::environment);
}

TEST_CASE_FIXTURE(Prepared,
                  "prepare: a template whose arguments are not those that a plan packs is refused by name") {
    scratch.copy_kernels();
    overrides.kernel_path = scratch.kernels().string();
    scratch.write(
        "kernels/linear/small_m.gfx950.hip",
        "#include \"constants.h\"\n"
        "extern \"C\" __global__ void __launch_bounds__(64) KILN_KERNEL_NAME(const void* x, const void* w, "
        "void* out, const float* w_scale, int m, int ldx) { *(int*)out = m + ldx; }\n");
    const std::unique_ptr<Service> service = open(overrides, parts);
    const auto refused = refusal(*service);
    CHECK(refused.error.code == kiln::ErrorCode::load_failed);
    CHECK_MESSAGE(mentions(refused.error.message,
                           "argument 2: expected w_scale at 16, 8 bytes; found out at 16, 8 bytes"),
                  refused.error.message);
    CHECK(device->loads == 0);
    CHECK(service->builder().store()->list()->empty());
    CHECK(refusal(*service).decline == KILN_DECLINE_DISABLED);
}

TEST_CASE_FIXTURE(Prepared, "prepare: an ordinal that the driver does not have is an error") {
    const std::unique_ptr<Service> service = open(overrides, parts);
    const auto plan = service->prepare(3, linear(), small_problem());
    REQUIRE(!plan);
    CHECK(plan.error().decline == 0);
    CHECK(plan.error().error.code == kiln::ErrorCode::not_found);
}

TEST_CASE_FIXTURE(Prepared,
                  "prepare: a table with a fault keeps the service from opening, and the place is named") {
    std::string text = small_table();
    text.replace(text.find("\"waves\": 1"), 10, "\"waves\": 7");
    set_table(text);
    auto settings = read_settings(overrides, process_environment());
    REQUIRE(settings);
    const auto service = Service::open(*std::move(settings), parts);
    REQUIRE(!service);
    CHECK(service.error().stage == kiln::Stage::table);
    CHECK(mentions(service.error().message, "table.json:2:"));
    CHECK(mentions(service.error().message, "/rows/0/buckets/0/constants/waves"));
}
