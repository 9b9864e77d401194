// What the simulator offers besides HIP: sim_abi.h.
#include <optional>

#include "base/versioned_struct.hpp"
#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

KILN_EXPORT int kiln_sim_configure(const kiln_sim_config* config) {
    ThreadState& thread = this_thread();
    return static_cast<int>(
        note(thread, config != nullptr ? Runtime::configure(*config) : hipErrorInvalidValue));
}

KILN_EXPORT int kiln_sim_push_places(const kiln_sim_places* places) {
    return static_cast<int>(enter([&](ThreadState& thread, Runtime&) {
        kiln_sim_places known{};
        if (places == nullptr || !kiln::read_versioned(places, places->struct_bytes, &known, sizeof known)) {
            return hipErrorInvalidValue;
        }
        const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
        thread.places.push_back({text(known.cache_folder), text(known.cache_path), text(known.worker)});
        return hipSuccess;
    }));
}

KILN_EXPORT int kiln_sim_pop_places() {
    return static_cast<int>(enter([](ThreadState& thread, Runtime&) {
        if (thread.places.empty()) {
            return hipErrorInvalidValue;
        }
        thread.places.pop_back();
        return hipSuccess;
    }));
}

KILN_EXPORT int kiln_sim_set_rules(int device, const kiln_sim_rules* rules) {
    return static_cast<int>(enter([&](ThreadState& thread, Runtime& runtime) {
        if (rules != nullptr && rules->struct_bytes != sizeof *rules) {
            return hipErrorInvalidValue;
        }
        if (!runtime.valid(device)) {
            return hipErrorInvalidDevice;
        }
        SimDevice& on = runtime.device(device);
        const auto wanted = rules != nullptr ? changed(on.rules(), *rules) : environment_rules();
        if (!wanted) {
            thread.detail = wanted.error().message;
            return hipErrorInvalidValue;
        }
        on.set_rules(*wanted);
        return hipSuccess;
    }));
}

KILN_EXPORT int kiln_sim_forget_written(const void* pointer, std::size_t bytes) {
    return static_cast<int>(enter([&](ThreadState&, Runtime& runtime) {
        const auto allocation = runtime.allocations.find(pointer);
        if (!allocation || allocation->memory == nullptr ||
            runtime.allocations.extent(pointer, bytes) != Allocations::Extent::inside) {
            return hipErrorInvalidValue;
        }
        allocation->memory->forget_written(pointer, bytes);
        return hipSuccess;
    }));
}

namespace {

kiln_sim_counts to_abi(const kiln::device::ExecutionCounts& taken) {
    return {.struct_bytes = sizeof(kiln_sim_counts),
            .instructions = taken.instructions,
            .valu = taken.valu,
            .transcendental = taken.transcendental,
            .mfma = taken.mfma,
            .mfma_cycles = taken.mfma_cycles,
            .salu = taken.salu,
            .branches = taken.branches,
            .waits = taken.waits,
            .smem = taken.smem,
            .vmem = taken.vmem,
            .lds = taken.lds,
            .global_bytes_read = taken.global_bytes_read,
            .global_bytes_written = taken.global_bytes_written,
            .global_line_requests = taken.global_line_requests,
            .global_lines_read = taken.global_lines_read,
            .global_lines_written = taken.global_lines_written,
            .die_lines_read = taken.die_lines_read,
            .scalar_bytes_read = taken.scalar_bytes_read,
            .lds_bytes_read = taken.lds_bytes_read,
            .lds_bytes_written = taken.lds_bytes_written,
            .lds_accesses = taken.lds_accesses,
            .lds_cycles = taken.lds_cycles,
            .lds_conflict_cycles = taken.lds_conflict_cycles,
            .work_groups = taken.work_groups,
            .waves = taken.waves};
}

// `take(device)` has something of counts in it, or nothing.
template <class Take>
int give_counts(int device, kiln_sim_counts* counts, Take take) {
    return static_cast<int>(enter([&](ThreadState&, Runtime& runtime) {
        if (counts == nullptr || counts->struct_bytes != sizeof *counts) {
            return hipErrorInvalidValue;
        }
        if (!runtime.valid(device)) {
            return hipErrorInvalidDevice;
        }
        const std::optional<kiln::device::ExecutionCounts> taken = take(runtime.device(device));
        if (!taken) {
            return hipErrorNotFound;
        }
        *counts = to_abi(*taken);
        return hipSuccess;
    }));
}

}  // namespace

KILN_EXPORT int kiln_sim_take_counts(int device, kiln_sim_counts* counts) {
    return give_counts(device, counts, [](SimDevice& on) { return std::optional(on.take_counts()); });
}

KILN_EXPORT int kiln_sim_next_launch_counts(int device, kiln_sim_counts* counts) {
    return give_counts(device, counts, [](SimDevice& on) { return on.next_launch_counts(); });
}

KILN_EXPORT const char* kiln_sim_last_fault(int device) {
    ThreadState& thread = this_thread();
    Runtime& runtime = Runtime::get();
    thread.fault = runtime.valid(device) ? runtime.device(device).fault_message() : "";
    return thread.fault.c_str();
}

KILN_EXPORT const char* kiln_sim_last_message() {
    return this_thread().message.c_str();
}
