#include "runtime/sim/launch.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/compile/occupancy.hpp"

namespace kiln::sim {
namespace {

// Round to nearest even everywhere, denormals kept everywhere: what hipRTC sets, and all that the arithmetic
// here knows.
constexpr unsigned kFloatMode = 0xf0;
// Private segment buffer, flat scratch and private segment size among the properties.
constexpr unsigned kScratchProperties = 1u << 0 | 1u << 5 | 1u << 6;

Error launch_error(std::string message) {
    return {ErrorCode::launch_failed, Stage::launch, std::move(message)};
}

template <class T>
void put(std::byte* base, std::size_t offset, T value) {
    std::memcpy(base + offset, &value, sizeof value);
}

}  // namespace

void clear_wave(Wave& w, unsigned limit_v, unsigned limit_a, unsigned limit_s) {
    const auto clear = [&](unsigned first, unsigned count) {
        std::memset(w.defined + first, 0, count * sizeof w.defined[0]);
        std::memset(w.bytes_defined + first, 0, count * sizeof w.bytes_defined[0]);
        std::fill_n(w.origins + first, count, Origin{});
    };
    clear(0, limit_v);
    clear(kAccRow, limit_a);
    clear(kScratchRow, kRows - kScratchRow);
    std::memset(w.sgprs, 0, sizeof w.sgprs);
    std::memset(w.sgprs_defined, 0, sizeof w.sgprs_defined);
    std::fill_n(w.sgpr_origins, kScalarRegisters, Origin{});
    w.scc_origin = {};
    w.scc = w.scc_defined = false;
    w.exec_lanes_of = 0;
    std::memset(w.exec_lanes, 0, sizeof w.exec_lanes);
    w.stopped = w.ended = w.at_barrier = false;
    w.mode = kFloatMode;
    w.limit_v = limit_v;
    w.limit_a = limit_a;
    w.limit_s = limit_s;
    std::fill_n(w.ranges, Wave::kCachedRanges, Range{});
    w.next_range = Wave::kFixedRanges;
    w.last_poll = 0;
    std::memset(w.executed, 0, sizeof w.executed);
    w.global_read = w.global_written = w.scalar_read = w.lds_read = w.lds_written = 0;
    w.mfma_cycles = w.lds_accesses = w.lds_cycles = w.lds_conflict_cycles = 0;
    w.line_requests = w.lines_read = w.lines_written = w.die_lines_read = 0;
}

Result<std::unique_ptr<Launch>> Launch::prepare(const Dispatch& dispatch) {
    if (dispatch.kernel == nullptr) {
        return tl::unexpected(launch_error("no kernel"));
    }
    const Kernel& kernel = *dispatch.kernel;
    const Descriptor& d = kernel.descriptor;
    const auto refuse = [&](std::string_view why) {
        return tl::unexpected(launch_error(fmt::format("kernel {}: {}", kernel.name, why)));
    };
    const device::Dim3 grid = dispatch.grid, block = dispatch.block;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) {
        return refuse("a grid or block with a zero dimension");
    }
    const std::uint32_t limit =
        kernel.max_threads == 0 ? kMaxThreads : std::min(kernel.max_threads, kMaxThreads);
    if (block.x > limit || block.y > limit || block.z > limit || threads > limit) {
        return refuse(fmt::format("a block of {} x {} x {} work-items, at most {} are allowed", block.x,
                                  block.y, block.z, limit));
    }
    const std::uint64_t lds = std::uint64_t{d.lds_bytes} + dispatch.dynamic_lds_bytes;
    if (lds > kMaxLdsBytes) {
        return refuse(fmt::format("{} bytes of LDS, the machine has {}", lds, kMaxLdsBytes));
    }
    if (d.private_bytes != 0 || (d.properties & kScratchProperties) != 0 || (d.rsrc2 & 1) != 0) {
        return refuse(fmt::format("{} bytes of scratch a lane: scratch is not simulated", d.private_bytes));
    }
    if (d.float_mode() != kFloatMode) {
        return refuse(fmt::format("float mode {:#x}, only {:#x} is known", d.float_mode(), kFloatMode));
    }
    const std::size_t explicit_bytes = compile::explicit_bytes(kernel.arguments);
    if (d.kernarg_bytes > sizeof kernargs_ || dispatch.kernargs.size() > d.kernarg_bytes ||
        dispatch.kernargs.size() < explicit_bytes) {
        return refuse(fmt::format("{} bytes of arguments; the explicit ones take {}, all {}",
                                  dispatch.kernargs.size(), explicit_bytes, d.kernarg_bytes));
    }
    auto launch = std::unique_ptr<Launch>(new Launch(dispatch));
    launch->num_groups_ = std::uint64_t{grid.x} * grid.y * grid.z;
    launch->num_waves_ = static_cast<unsigned>((threads + kLanes - 1) / kLanes);
    launch->lds_bytes_ = static_cast<std::uint32_t>(lds);
    launch->kernarg_bytes_ = d.kernarg_bytes;
    std::memset(launch->kernargs_, 0, sizeof launch->kernargs_);
    std::ranges::copy(dispatch.kernargs, launch->kernargs_);
    launch->fill_hidden_arguments();
    launch->fill_packet();
    return launch;
}

std::uint64_t Launch::hidden_value(std::string_view kind) const {
    const device::Dim3 grid = dispatch_.grid, block = dispatch_.block;
    const auto axis = [](device::Dim3 d, char name) { return name == 'x' ? d.x : name == 'y' ? d.y : d.z; };
    if (kind.starts_with("hidden_block_count_")) {
        return axis(grid, kind.back());
    }
    if (kind.starts_with("hidden_group_size_")) {
        return axis(block, kind.back());
    }
    if (kind == "hidden_grid_dims") {
        return grid.z * block.z > 1 ? 3 : grid.y * block.y > 1 ? 2 : 1;
    }
    if (kind == "hidden_dynamic_lds_size") {
        return dispatch_.dynamic_lds_bytes;
    }
    // Remainders are zero: grids are whole work-groups. Global offsets are zero, and so are the pointers to
    // queues, heaps and host-call buffers, which no kernel here may follow.
    return 0;
}

void Launch::fill_hidden_arguments() {
    for (const compile::KernelArgument& argument : kernel_->arguments) {
        if (!argument.is_hidden()) {
            continue;
        }
        const std::uint64_t value = hidden_value(argument.value_kind);
        const std::size_t size = std::min<std::size_t>(argument.size, sizeof value);
        if (argument.offset + size <= kernarg_bytes_) {
            std::memcpy(kernargs_ + argument.offset, &value, size);
        }
    }
}

// hsa_kernel_dispatch_packet_t.
void Launch::fill_packet() {
    const device::Dim3 grid = dispatch_.grid, block = dispatch_.block;
    std::memset(packet_, 0, sizeof packet_);
    put<std::uint16_t>(packet_, 0, 2);  // a kernel dispatch
    put<std::uint16_t>(packet_, 2, 3);  // three dimensions
    put(packet_, 4, static_cast<std::uint16_t>(block.x));
    put(packet_, 6, static_cast<std::uint16_t>(block.y));
    put(packet_, 8, static_cast<std::uint16_t>(block.z));
    put(packet_, 12, grid.x * block.x);
    put(packet_, 16, grid.y * block.y);
    put(packet_, 20, grid.z * block.z);
    put(packet_, 28, lds_bytes_);
    put(packet_, 32, kernel_->object_address);
    put(packet_, 40, reinterpret_cast<std::uint64_t>(kernargs_));
}

std::uint64_t Launch::max_in_flight() const {
    constexpr std::int64_t kComputeUnits = 256;
    const std::int64_t groups = compile::groups_per_unit(kernel_->descriptor.vgprs(), num_waves_, lds_bytes_);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(kComputeUnits * groups, 1));
}

void Launch::start_group(std::uint64_t index, WorkGroup& group) const {
    const device::Dim3 grid = dispatch_.grid;
    group.id = {static_cast<std::uint32_t>(index % grid.x),
                static_cast<std::uint32_t>(index / grid.x % grid.y),
                static_cast<std::uint32_t>(index / grid.x / grid.y)};
    group.xcc = static_cast<unsigned>(index % kDies);
    group.lds_bytes = lds_bytes_;
    std::memset(group.lds_written, 0, lds_bytes_);
}

void Launch::start_wave(const WorkGroup& group, unsigned number, Wave& w) const {
    const Descriptor& d = kernel_->descriptor;
    const unsigned limit_v = std::min(d.vgprs(), d.accum_offset());
    clear_wave(w, std::min(limit_v, 256u), std::min(d.vgprs() - limit_v, 256u), kNumSgprs);
    w.code = kernel_->code;
    w.pc = kernel_->entry;
    w.number = number;
    // Clang widens argument loads to 16 bytes, so a driver's segment is a multiple of that; zeros follow the
    // arguments.
    const auto kernargs = reinterpret_cast<std::uintptr_t>(kernargs_);
    w.ranges[0] = {kernargs, kernargs + (kernarg_bytes_ + 15) / 16 * 16};
    w.ranges[1] = {reinterpret_cast<std::uintptr_t>(packet_),
                   reinterpret_cast<std::uintptr_t>(packet_) + sizeof packet_};

    unsigned next = 0;
    const auto user = [&](std::uint32_t value) {
        w.sgprs[next] = value;
        w.sgprs_defined[next++] = ~0u;
    };
    const auto user64 = [&](std::uint64_t value) {
        user(static_cast<std::uint32_t>(value));
        user(static_cast<std::uint32_t>(value >> 32));
    };
    if (d.has_dispatch_pointer()) {
        user64(reinterpret_cast<std::uint64_t>(packet_));
    }
    if (d.has_queue_pointer()) {
        user64(0);
    }
    if (d.has_kernarg_pointer()) {
        user64(reinterpret_cast<std::uint64_t>(kernargs_));
    }
    if (d.has_dispatch_id()) {
        user64(0);
    }
    for (unsigned n = 0; n < d.preload_dwords(); ++n) {
        std::uint32_t value = 0;
        const std::size_t at = 4 * (d.preload_first() + n);
        if (at + 4 <= sizeof kernargs_) {
            std::memcpy(&value, kernargs_ + at, 4);
        }
        user(value);
    }
    next = d.user_sgprs();
    const std::uint32_t id[3] = {group.id.x, group.id.y, group.id.z};
    for (unsigned axis = 0; axis < 3; ++axis) {
        if (d.has_group_id(axis)) {
            user(id[axis]);
        }
    }

    const device::Dim3 block = dispatch_.block;
    const std::uint32_t threads = block.x * block.y * block.z, first = number * kLanes;
    const unsigned lanes = std::min(threads - first, kLanes);
    const std::uint64_t mask = lanes == kLanes ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes) - 1;
    for (unsigned lane = 0; lane < lanes; ++lane) {
        const std::uint32_t item = first + lane;
        std::uint32_t value = item % block.x;
        if (d.work_item_axes() > 1) {
            value |= item / block.x % block.y << 10;
        }
        if (d.work_item_axes() > 2) {
            value |= item / block.x / block.y << 20;
        }
        w.rows[0][lane] = value;
    }
    w.defined[0] = mask;
    w.set_exec(mask);
}

}  // namespace kiln::sim
