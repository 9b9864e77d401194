// What a wave finds in its registers and in memory when it starts.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "runtime/sim/machine.hpp"
#include "runtime/sim/program.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

inline constexpr std::uint32_t kMaxThreads = 1024;
inline constexpr unsigned kDies = 8;

// One launch: checked sizes, the kernarg segment with its hidden arguments, the dispatch packet. Constant
// once made.
class Launch {
  public:
    // launch_failed when the dispatch does not fit the kernel or asks for what the machine does not have.
    [[nodiscard]] static Result<std::unique_ptr<Launch>> prepare(const Dispatch& dispatch);

    [[nodiscard]] const Kernel& kernel() const { return *kernel_; }
    [[nodiscard]] std::uint64_t num_groups() const { return num_groups_; }
    [[nodiscard]] unsigned num_waves() const { return num_waves_; }  // of one work-group
    [[nodiscard]] std::uint32_t lds_bytes() const { return lds_bytes_; }
    // Of its work-groups the machine holds so many at once.
    [[nodiscard]] std::uint64_t max_in_flight() const;

    void start_group(std::uint64_t index, WorkGroup& group) const;
    // Leaves nothing of what the wave did before.
    void start_wave(const WorkGroup& group, unsigned number, Wave& wave) const;

  private:
    explicit Launch(const Dispatch& dispatch) : kernel_(dispatch.kernel), dispatch_(dispatch) {}
    void fill_hidden_arguments();
    void fill_packet();
    std::uint64_t hidden_value(std::string_view kind) const;

    const Kernel* kernel_;
    Dispatch dispatch_;
    std::uint64_t num_groups_ = 0;
    unsigned num_waves_ = 0;
    std::uint32_t lds_bytes_ = 0;
    std::size_t kernarg_bytes_ = 0;
    alignas(64) std::byte kernargs_[8192];
    alignas(64) std::byte packet_[64];
};

// Forgets what was written: registers up to the limits, scalars, flags.
void clear_wave(Wave& wave, unsigned limit_v, unsigned limit_a, unsigned limit_s);

}  // namespace kiln::sim
