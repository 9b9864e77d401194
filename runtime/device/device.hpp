// One GPU, or one simulated GPU, behind a neutral interface: everything above it is the same for every
// vendor.
//
// Handles (streams, modules' functions) are the vendor's own, passed through untouched: an engine hands kiln
// the hipStream_t it already has. Driver libraries are bound at run time, at the first call of open_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/device/dim3.hpp"

namespace kiln::device {

using Stream = void*;    // hipStream_t, CUstream; null is the default stream
using Event = void*;     // hipEvent_t, CUevent
using Function = void*;  // hipFunction_t, CUfunction

struct DeviceInfo {
    std::string name;    // "AMD Instinct MI355X", "NVIDIA H200", "kiln gfx950 simulator"
    std::string target;  // "gfx950:sramecc+:xnack-", "sm_90a"
    int ordinal = 0;
    int num_compute_units = 0;
    std::size_t memory_bytes = 0;
    bool simulated = false;
    std::size_t last_cache_bytes = 0;  // of the cache before the memory; 0 where the driver does not say
    std::string driver = {};           // "CUDA driver 12.8", for a person
};

// What a launch costs on a simulated device, exact. Zero on a real one.
struct ExecutionCounts {
    std::uint64_t instructions = 0;    // wave-instructions of all classes
    std::uint64_t valu = 0;            // vector ALU, conversions included, matrix excluded
    std::uint64_t transcendental = 0;  // of those: exp, log, rcp, rsq, sqrt, sin and cos
    std::uint64_t mfma = 0;
    std::uint64_t mfma_cycles = 0;  // that those keep a SIMD's matrix unit busy
    std::uint64_t salu = 0;         // scalar ALU, branches, waits, messages
    std::uint64_t branches = 0;     // of those
    std::uint64_t waits = 0;        // of those: waits, barriers, priorities, the end; no unit executes them
    std::uint64_t smem = 0;         // scalar loads
    std::uint64_t vmem = 0;         // global, buffer, flat and scratch
    std::uint64_t lds = 0;
    std::uint64_t global_bytes_read = 0;  // asked for by active lanes
    std::uint64_t global_bytes_written = 0;
    // Lines of 128 bytes. The first: that one instruction's lanes touch, summed over instructions. Then those
    // that a launch touches, each counted once, scalar loads included and arguments not; and once for each of
    // the eight dies that reads it, each of which has an L2.
    std::uint64_t global_line_requests = 0;
    std::uint64_t global_lines_read = 0;
    std::uint64_t global_lines_written = 0;
    std::uint64_t die_lines_read = 0;
    std::uint64_t scalar_bytes_read = 0;
    std::uint64_t lds_bytes_read = 0;
    std::uint64_t lds_bytes_written = 0;
    // Reads, writes, both of an instruction that does two; loads straight to LDS. The cycles that they take
    // of a compute unit's LDS, and how many of those only because lanes met in a bank.
    std::uint64_t lds_accesses = 0;
    std::uint64_t lds_cycles = 0;
    std::uint64_t lds_conflict_cycles = 0;
    std::uint64_t work_groups = 0;
    std::uint64_t waves = 0;
};

// A loaded code object. Owns the driver's module; unloads it when destroyed. Immutable, thread safe.
class Module {
  public:
    virtual ~Module() = default;
    // The kernel of that name, forced in: no later launch loads anything. It may be launched with as much
    // dynamic shared memory as the device has beside the kernel's static one. load_failed when there is none.
    [[nodiscard]] virtual Result<Function> function(const std::string& name) = 0;
};

// What a launch needs besides its arguments, settled when the plan is prepared.
struct LaunchShape {
    Dim3 grid;   // work-groups
    Dim3 block;  // work-items of one
    std::uint32_t dynamic_lds_bytes = 0;
};

// What a simulated device lets its user choose; texts as hip/sim_abi.h has them. Empty: what the
// environment says.
struct SimulationRules {
    std::string order = {};   // "descending"
    std::string scopes = {};  // "late"
    std::string checks = {};  // "races,uninitialised,freed"
};

// Thread safe. Every call leaves the calling thread's current device as it found it, and leaves no last error
// behind.
class Device {
  public:
    virtual ~Device() = default;

    [[nodiscard]] virtual const DeviceInfo& info() const = 0;

    // Modules: loaded under a relaxed capture mode, so that a capture in progress on any stream is not
    // broken.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> load(ByteView code_object) = 0;

    // The launch path: one driver call, no lock, no allocation. `kernargs` is the packed argument block
    // (natural alignment, at most 4 KiB), copied by the driver before the call returns. Returns the driver's
    // own error value, 0 for success. The calling thread's current device must be this one: it is not
    // switched here.
    [[nodiscard]] virtual int launch(Function function, const LaunchShape& shape, Stream stream,
                                     void* kernargs, std::size_t kernarg_bytes) const noexcept = 0;

    // The words for a value that launch() returned.
    [[nodiscard]] virtual std::string describe(int driver_error) const = 0;
    // True for a value that is not the launched kernel's doing: an earlier asynchronous failure of the device
    // or its context, a stream that is none, a capture that forbids the call, memory that ran out, or one
    // that nobody knows. Nothing is disabled for it.
    [[nodiscard]] virtual bool is_earlier_failure(int driver_error) const noexcept = 0;

    // The calling thread's current device, as the driver numbers them; negative when the driver will not say.
    [[nodiscard]] virtual int current_ordinal() const noexcept = 0;
    [[nodiscard]] virtual Result<void> make_current() = 0;

    // Memory of the device, aligned to 256 bytes.
    [[nodiscard]] virtual Result<void*> allocate(std::size_t bytes) = 0;
    virtual Result<void> free(void* pointer) = 0;
    // Ordered on `stream`; returns when the copy is complete.
    virtual Result<void> copy_to_device(void* destination, ByteView source, Stream stream) = 0;
    virtual Result<void> copy_to_host(std::span<std::byte> destination, const void* source,
                                      Stream stream) = 0;
    virtual Result<void> fill(void* destination, std::byte value, std::size_t bytes, Stream stream) = 0;

    [[nodiscard]] virtual Result<Stream> create_stream() = 0;
    virtual Result<void> destroy_stream(Stream stream) = 0;
    virtual Result<void> synchronize(Stream stream) = 0;

    [[nodiscard]] virtual Result<Event> create_event() = 0;
    virtual Result<void> destroy_event(Event event) = 0;
    virtual Result<void> record(Event event, Stream stream) = 0;
    // Both events must be complete.
    [[nodiscard]] virtual Result<float> elapsed_milliseconds(Event start, Event stop) = 0;

    // Graphs: what is enqueued on `stream` between begin and end is recorded instead of run.
    using Graph = void*;  // an executable graph
    // True while work on `stream` is recorded, an invalidated capture included. False where the driver can
    // not capture.
    [[nodiscard]] virtual Result<bool> is_capturing(Stream stream) const = 0;
    [[nodiscard]] virtual Result<void> begin_capture(Stream stream) = 0;
    [[nodiscard]] virtual Result<Graph> end_capture(Stream stream) = 0;
    virtual Result<void> replay(Graph graph, Stream stream) = 0;
    virtual Result<void> destroy_graph(Graph graph) = 0;

    // Counts of everything that ran on this device since the last reset; not_found on a device that does not
    // count.
    [[nodiscard]] virtual Result<ExecutionCounts> take_counts() = 0;
    // The same for each launch since then, the first 64 of them, that was not asked for yet; none on a device
    // that does not count.
    [[nodiscard]] virtual Result<std::vector<ExecutionCounts>> launch_counts() {
        return std::vector<ExecutionCounts>();
    }

    // How later launches run on a simulated device; not_found on a real one. bad_input says what a text
    // should have been.
    virtual Result<void> set_rules(const SimulationRules& rules) = 0;
};

// How the driver is chosen, choose.hpp says. `sim` is the HIP adapter over the simulator's libamdhip64.
enum class Driver { automatic, hip, cuda, sim };

struct DriverConfig {
    Driver driver = Driver::automatic;
    std::filesystem::path hip_library;  // empty means: KILN_HIP_LIBRARY, else found as hip/binding.hpp says
    std::filesystem::path sim_library;  // the look-alike; empty means: found as hip/binding.hpp says
    // Where a simulated device finds the listings that it executes; empty members mean what the environment
    // says, as hip/sim_abi.h has it.
    std::filesystem::path sim_cache_folder = {};
    std::string sim_cache_path = {};  // read-only folders and bundles, ':' between
    std::filesystem::path sim_worker = {};
    std::filesystem::path cuda_library = {};  // empty means: KILN_CUDA_LIBRARY, else as cuda/binding.hpp says
};

// Opens every device of the chosen driver. `automatic` prefers a real GPU whose driver answers, AMD's before
// NVIDIA's, and falls back to the simulator. environment when there is none, with what was tried and why each
// failed.
[[nodiscard]] Result<std::vector<std::shared_ptr<Device>>> open_devices(const DriverConfig& config);

// For `kiln doctor`: binds as open_devices() does, and says how it went.
struct DriverReport {
    // Every libamdhip64 and libcuda that the process held before, look-alikes included.
    std::vector<std::string> held;
    std::vector<std::string>
        steps;           // what was considered, and why it was not taken; last the failure, if any
    std::string chosen;  // the bound copy; empty when there is none
    std::string family;  // whose it is: "HIP runtime", "CUDA driver"; the simulator's is the former
};
[[nodiscard]] DriverReport report_drivers(const DriverConfig& config);

}  // namespace kiln::device
