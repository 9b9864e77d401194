// router/one_launch on the bare machine, whatever is left open about time: every order of work-groups and
// waves, stores visible at the earliest and at the latest. And what becomes of it without its release, and
// without its acquire.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/compiler.hpp"
#include "runtime/embedded/embedded.hpp"
#include "runtime/operators/router_reference.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/sim/machine.hpp"
#include "value_of.hpp"

using namespace kiln;
using kernels_test::value_of;
using operators::RouterArrays;
using sim::RunOrder;
using sim::Scopes;

namespace {

// Work-groups on every die, more than one in each group of the election, and several waves in each.
constexpr std::int64_t kM = 4, kHidden = 1024, kExperts = 100, kTopK = 6;
const operators::Bucket kBucket{kM, "router/one_launch", {{"rows", 2}, {"waves", 2}}};

// Of a text that a template reaches, a line to leave out wherever it stands.
struct Fault {
    std::string_view line;
    std::string_view file;  // in this file alone; empty: in all
};
constexpr std::string_view kKernel = "router/one_launch.gfx950.hip";

operators::Specialisation specialise(const Fault& fault) {
    const auto lookup = [&](std::string_view path) -> Result<std::optional<std::string>> {
        const embedded::EmbeddedFile* file = embedded::find(embedded::kernel_files(), path);
        if (file == nullptr) {
            return std::optional<std::string>{};
        }
        std::string text(file->text);
        if (!fault.line.empty() && (fault.file.empty() || fault.file == path)) {
            for (std::size_t at = text.find(fault.line); at != std::string::npos;
                 at = text.find(fault.line)) {
                text.erase(at, fault.line.size());
            }
        }
        return text;
    };
    const auto problem = value_of(operators::complete(
        operators::router(), {{"hidden", kHidden}, {"experts", kExperts}, {"top_k", kTopK}}));
    return value_of(operators::specialise(operators::router(), problem, kBucket,
                                          *tables::parse_target("gfx950"), lookup));
}

// The kernel, and the arrays of two launches on a machine of its own.
class Machine {
  public:
    explicit Machine(const Fault& fault)
        : arrays_(operators::make_router_case(kM, kHidden, kExperts, kTopK, 1, 17)),
          reference_(operators::router_reference(arrays_)) {
        const operators::Specialisation wanted = specialise(fault);
        const auto compiler = value_of(compile::Compiler::create({}));
        const compile::CompileResult built = value_of(compiler->compile(wanted.request));
        program_ = value_of(sim::Program::load(built.code_object, built.listing));
        memory_.admit(program_->image().data(), program_->image().size());
        const operators::KernelLaunch& launch = wanted.kernels.front();
        shape_ = launch.shape_for(kM);
        kernel_ = program_->find(launch.symbol);
        REQUIRE(kernel_ != nullptr);
        need_ = wanted.source_template->workspace(wanted.problem, wanted.bucket, kM);

        const auto results = static_cast<std::size_t>(kM * arrays_.columns());
        ids_ = static_cast<std::int32_t*>(allocate(results * sizeof(std::int32_t)));
        weights_ = static_cast<float*>(allocate(results * sizeof(float)));
        counters_ = allocate(static_cast<std::size_t>(need_.zeroed));
        scratch_ = allocate(static_cast<std::size_t>(need_.scratch));
        arguments_ = {load(arrays_.x),
                      load(arrays_.gate),
                      load(arrays_.shared_gate),
                      ids_,
                      weights_,
                      counters_,
                      scratch_,
                      arrays_.scale,
                      static_cast<std::int32_t>(kM),
                      static_cast<std::int32_t>(arrays_.ldx)};
    }

    // What a launch that must break a rule is told.
    std::string race(RunOrder order) {
        std::memset(counters_, 0, static_cast<std::size_t>(need_.zeroed));
        sim::MachineConfig config;
        config.order = order;
        config.checks = sim::Checks::all();
        const auto counts =
            sim::run({kernel_, shape_.grid, shape_.block, 0, explicit_arguments()}, memory_, config);
        return counts ? "no error" : counts.error().message;
    }

    // Whether two launches, one after the other, do what they should.
    bool is_right(RunOrder order, Scopes scopes, sim::Checks checks = {}) {
        std::memset(counters_, 0, static_cast<std::size_t>(need_.zeroed));
        // Logits of another launch: what a stale read finds.
        std::memset(scratch_, 0x41, static_cast<std::size_t>(need_.scratch));
        bool right = true;
        for (int i = 0; i < 2; ++i) {
            const auto results = static_cast<std::size_t>(kM * arrays_.columns());
            std::fill_n(ids_, results, -1);
            std::fill_n(weights_, results, -1.0F);
            sim::MachineConfig config;
            config.order = order;
            config.scopes = scopes;
            config.checks = checks;
            const auto counts =
                sim::run({kernel_, shape_.grid, shape_.block, 0, explicit_arguments()}, memory_, config);
            REQUIRE_MESSAGE(counts, counts.error().message);
            const auto compared = operators::compare_router({ids_, results}, {weights_, results}, reference_,
                                                            kM, arrays_.columns());
            const auto* first = static_cast<const std::byte*>(counters_);
            right = right && compared.passed() &&
                    std::all_of(first, first + need_.zeroed, [](std::byte b) { return b == std::byte{0}; });
        }
        return right;
    }

  private:
    // Without the padding behind the last one.
    ByteView explicit_arguments() const {
        const operators::KernelArgument& last = operators::router_kernargs().arguments.back();
        return std::as_bytes(std::span(&arguments_, 1)).first(last.offset + last.size);
    }
    void* allocate(std::size_t bytes) { return value_of(memory_.allocate(bytes)); }
    template <class T>
    T* load(const std::vector<T>& values) {
        auto* const memory = static_cast<T*>(allocate(values.size() * sizeof(T)));
        std::copy(values.begin(), values.end(), memory);
        return memory;
    }

    const RouterArrays arrays_;
    const operators::RouterResults reference_;
    sim::Memory memory_{std::size_t{1} << 28};
    std::shared_ptr<const sim::Program> program_;
    const sim::Kernel* kernel_ = nullptr;
    device::LaunchShape shape_;
    operators::WorkspaceNeed need_;
    operators::RouterKernargs arguments_{};
    std::int32_t* ids_ = nullptr;
    float* weights_ = nullptr;
    void* counters_ = nullptr;
    void* scratch_ = nullptr;
};

const std::vector<RunOrder> kOrders = {
    {RunOrder::ascending},  {RunOrder::descending},    {RunOrder::shuffle, 1},    {RunOrder::shuffle, 2},
    {RunOrder::shuffle, 3}, {RunOrder::interleave, 1}, {RunOrder::interleave, 2}, {RunOrder::interleave, 3},
};

// Of kOrders, those in which it goes wrong.
std::size_t wrong_orders(Machine& machine, Scopes scopes) {
    return static_cast<std::size_t>(
        std::ranges::count_if(kOrders, [&](RunOrder order) { return !machine.is_right(order, scopes); }));
}

}  // namespace

TEST_CASE("router: chooses the same under every order, stores visible at the earliest and at the latest") {
    Machine machine({});
    for (const RunOrder order : kOrders) {
        CAPTURE(sim::to_text(order));
        CHECK(machine.is_right(order, Scopes::early, sim::Checks::all()));
        CHECK(machine.is_right(order, Scopes::late, sim::Checks::all()));
    }
}

TEST_CASE("router: a race shows under every order where any one of its releases or acquires is left out") {
    constexpr std::string_view kElection = "device/gfx950/election.h";
    for (const Fault& fault : {Fault{" release_to_device();\n", kKernel},
                               {" acquire_from_device();\n", kKernel},
                               {" release_to_device();\n", kElection},
                               {" acquire_from_device();\n", kElection}}) {
        CAPTURE(fault.line);
        CAPTURE(fault.file);
        Machine machine(fault);
        for (const RunOrder order : kOrders) {
            CAPTURE(sim::to_text(order));
            const std::string message = machine.race(order);
            CAPTURE(message);
            CHECK(message.find("a race: ") != message.npos);
            CHECK(message.find("'global_load_dword") != message.npos);
            CHECK(message.find("touched by 'global_store_short") != message.npos);
        }
    }
}

TEST_CASE("router: without its release it computes something wrong, under late scopes only") {
    // That of each work-group; the last of a group of the election still releases what its own die holds.
    Machine machine({" release_to_device();\n", kKernel});
    CHECK(wrong_orders(machine, Scopes::early) == 0);
    CHECK(wrong_orders(machine, Scopes::late) == kOrders.size());
}

TEST_CASE("router: without its acquire it computes something wrong, under late scopes only") {
    // That of the last work-group, and that between the counters, which comes shortly before.
    Machine machine({" acquire_from_device();\n", ""});
    CHECK(wrong_orders(machine, Scopes::early) == 0);
    CHECK(wrong_orders(machine, Scopes::late) == kOrders.size());
}
