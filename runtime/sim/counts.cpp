#include "runtime/sim/counts.hpp"

namespace kiln::sim {

void add(device::ExecutionCounts& total, const device::ExecutionCounts& part) {
    total.instructions += part.instructions;
    total.valu += part.valu;
    total.transcendental += part.transcendental;
    total.mfma += part.mfma;
    total.mfma_cycles += part.mfma_cycles;
    total.salu += part.salu;
    total.branches += part.branches;
    total.waits += part.waits;
    total.smem += part.smem;
    total.vmem += part.vmem;
    total.lds += part.lds;
    total.global_bytes_read += part.global_bytes_read;
    total.global_bytes_written += part.global_bytes_written;
    total.global_line_requests += part.global_line_requests;
    total.global_lines_read += part.global_lines_read;
    total.global_lines_written += part.global_lines_written;
    total.die_lines_read += part.die_lines_read;
    total.scalar_bytes_read += part.scalar_bytes_read;
    total.lds_bytes_read += part.lds_bytes_read;
    total.lds_bytes_written += part.lds_bytes_written;
    total.lds_accesses += part.lds_accesses;
    total.lds_cycles += part.lds_cycles;
    total.lds_conflict_cycles += part.lds_conflict_cycles;
    total.work_groups += part.work_groups;
    total.waves += part.waves;
}

void add(device::ExecutionCounts& total, const Wave& w) {
    const auto of = [&](Category category) { return w.executed[static_cast<int>(category)]; };
    total.valu += of(Category::valu) + of(Category::transcendental);
    total.transcendental += of(Category::transcendental);
    total.mfma += of(Category::mfma);
    total.salu += of(Category::salu) + of(Category::branch) + of(Category::wait);
    total.branches += of(Category::branch);
    total.waits += of(Category::wait);
    total.smem += of(Category::smem);
    total.vmem += of(Category::vmem);
    total.lds += of(Category::lds);
    for (const std::uint64_t executed : w.executed) {
        total.instructions += executed;
    }
    total.mfma_cycles += w.mfma_cycles;
    total.global_bytes_read += w.global_read;
    total.global_bytes_written += w.global_written;
    total.global_line_requests += w.line_requests;
    total.global_lines_read += w.lines_read;
    total.global_lines_written += w.lines_written;
    total.die_lines_read += w.die_lines_read;
    total.scalar_bytes_read += w.scalar_read;
    total.lds_bytes_read += w.lds_read;
    total.lds_bytes_written += w.lds_written;
    total.lds_accesses += w.lds_accesses;
    total.lds_cycles += w.lds_cycles;
    total.lds_conflict_cycles += w.lds_conflict_cycles;
    ++total.waves;
}

}  // namespace kiln::sim
