// The gfx950 machine: runs a loaded code object's kernels, instruction by instruction, and reports every
// broken rule.
//
// A library of its own: it knows nothing of HIP. The look-alike (runtime/sim/hip/) gives it streams and
// modules. Device addresses are host addresses, so a copy is a memcpy and mapped host memory needs no
// translation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/sim/memory.hpp"
#include "runtime/sim/numeric/matrix.hpp"
#include "runtime/sim/order.hpp"

namespace kiln::sim {

// Of one work-group, which is also what a compute unit has.
inline constexpr std::uint32_t kMaxLdsBytes = 160 * 1024;

struct Kernel;  // decoded; see program.hpp

// A code object decoded for execution. Immutable and thread safe once loaded; its segments are copied to
// memory of its own, at which the kernel's own addresses point.
class Program {
  public:
    // The listing must have been made from exactly this code object's .text (its digest is compared).
    // load_failed names what does not fit. An instruction that the simulator does not know fails only when it
    // is executed.
    [[nodiscard]] static Result<std::shared_ptr<const Program>> load(ByteView code_object,
                                                                     std::string_view listing);
    virtual ~Program() = default;
    // Null when there is none of that name.
    [[nodiscard]] virtual const Kernel* find(std::string_view name) const = 0;
    // The image that a device must be allowed to touch while the module lives: scalar loads of constants go
    // there.
    [[nodiscard]] virtual ByteView image() const = 0;
};

struct Dispatch {
    const Kernel* kernel = nullptr;
    device::Dim3 grid;   // work-groups
    device::Dim3 block;  // work-items of one
    std::uint32_t dynamic_lds_bytes = 0;
    ByteView kernargs;  // explicit arguments; the hidden ones that the metadata lists are filled in by run()
};

struct MachineConfig {
    unsigned threads = 0;  // host threads that share the work-groups; 0 means one per core of this process
    // What the hardware leaves open about time. Other than {any, early}: on one host thread.
    RunOrder order = {};
    Scopes scopes = Scopes::early;
    // What the hardware leaves open about matrix sums; what a kernel computes must hold under both.
    numeric::Order matrix_order = numeric::Order::ascending;
    // Of these only `races` is for a launch to say: the rest was said when its Memory was made.
    Checks checks = {};
    // Ends the run, as a failure, soon after it becomes true; null means never.
    const std::atomic<bool>* stop = nullptr;
};

// Runs the whole grid and returns when it is done. As many work-groups as the machine holds (256 compute
// units; registers, waves and LDS bound a unit) come to be in flight together where work-groups wait for each
// other, in the order in which they start. So a wait for any of them ends; a kernel whose work-groups in
// flight wait for one that has no room never does, here as on a GPU. Errors are device_failed; the message
// names the kernel, the instruction with its offset, the work-group, wave and lane, and the rule that was
// broken: an unknown instruction, an access outside every allocation or misaligned, a register or LDS byte
// read that nothing wrote. A dispatch that does not fit is launch_failed.
//
// `bad_address`, where it is given, becomes whether the error is an access outside every allocation.
[[nodiscard]] Result<device::ExecutionCounts> run(const Dispatch& dispatch, const Memory& memory,
                                                  const MachineConfig& config = {},
                                                  bool* bad_address = nullptr);

}  // namespace kiln::sim
