// Runs compiled buckets of fused_moe/small_m on the simulator, kernel by kernel; and what that has in common
// with fused_moe/mxmoe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device.hpp"
#include "runtime/device/device.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "shipped.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

// Over all outputs of a run, which may be fewer than the reference's.
double relative_l2(const std::vector<std::uint16_t>& out, const std::vector<std::uint16_t>& reference);
inline constexpr double kMoeBound = 5e-4;
// Of a token. One that has few outputs, or one large h in its heaviest slot, may lie above the bound of the
// whole by a single rounding: this says that it is no other token's, and has all of its slots.
inline constexpr double kMoeTokenBound = 2e-3;

// A bucket of fused_moe as if a row had asked for it.
operators::Specialisation specialise_fused_moe(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                               const tables::Constants& constants);
// As the operator knows it, with all its fields.
operators::Problem moe_problem(const operators::FusedMoeProblem& problem);
// The buckets of fused_moe/small_m that the operator's rule makes for a problem.
std::vector<operators::Specialisation> derived_fused_moe(const operators::FusedMoeProblem& problem);

// Device memory that goes with this.
class DeviceMemory {
  public:
    DeviceMemory(device::Device& device, std::size_t bytes);
    template <class T>
    DeviceMemory(device::Device& device, std::span<const T> contents)
        : DeviceMemory(device, contents.size_bytes()) {
        check(device_.copy_to_device(pointer_, std::as_bytes(contents), nullptr));
    }
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    [[nodiscard]] void* get() const { return pointer_; }
    template <class T>
    [[nodiscard]] std::vector<T> read(std::size_t count) const {
        std::vector<T> result(count);
        check(device_.copy_to_host(std::as_writable_bytes(std::span(result)), pointer_, nullptr));
        return result;
    }

  private:
    device::Device& device_;
    void* pointer_;
};

// What launches of the first m tokens of `arrays` read and write besides the experts' weights and a
// workspace. Arrays are exactly as long as m tokens need, so that the simulator sees who reads on.
class MoeLaunchArrays {
  public:
    MoeLaunchArrays(device::Device& device, const operators::FusedMoeArrays& arrays, std::int64_t m);

    struct Outputs {
        std::vector<std::uint16_t> out;  // bf16 bits, [m, hidden]
        bool margins_untouched = true;   // what lies before and behind `out`
        bool flagged = false;
    };
    [[nodiscard]] Outputs read() const;

    const DeviceMemory x, ids, weights;

  private:
    const std::size_t outputs_;
    const DeviceMemory out_;  // between margins

  public:
    void* const out;
    const DeviceMemory flag;
};

// Launches the kernels of a specialisation, one by one, and counts each.
void launch_counted(device::Device& device, device::Module& module,
                    const operators::Specialisation& specialisation, std::int64_t m, void* arguments,
                    std::size_t bytes, std::vector<device::ExecutionCounts>& counts);

// The weights of a case in device memory, for as long as this lives: of the experts that the case has. The
// rest of the arrays is never written.
class LoadedMoe {
  public:
    LoadedMoe(device::Device& device, const operators::FusedMoeArrays& arrays);
    ~LoadedMoe();
    LoadedMoe(const LoadedMoe&) = delete;
    LoadedMoe& operator=(const LoadedMoe&) = delete;

    struct Run : MoeLaunchArrays::Outputs {
        std::vector<device::ExecutionCounts> counts;  // of each kernel
    };
    // The first m tokens of `arrays`: the case's own, or one of the same experts. `scratch` is what each byte
    // of h begins with.
    [[nodiscard]] Run run(const Built& built, const operators::FusedMoeArrays& arrays, std::int64_t m,
                          std::uint8_t scratch = 0xff) const;

    // The experts' weights, as a caller names them.
    void put_into(kiln_fused_moe_args& args) const;

  private:
    device::Device& device_;
    std::vector<void*> owned_;
    void* w13_;
    void* w13_scale_;
    void* w2_;
    void* w2_scale_;
};

}  // namespace kiln::kernels_test
