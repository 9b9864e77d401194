// One problem on the GPU, in more copies than the L2 cache holds, and graphs that launch over them in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "kiln/kiln.hpp"
#include "tools/bench/gpu.d/driver.hpp"
#include "tools/bench/gpu.d/streaming_read.hpp"

namespace kiln::bench {

struct Problem {
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::size_t weight_bytes() const { return static_cast<std::size_t>(n * k); }
    std::size_t scale_bytes() const { return static_cast<std::size_t>((n + 127) / 128 * (k / 128) * 4); }
    std::size_t x_bytes(std::int64_t m) const { return static_cast<std::size_t>(m * k * 2); }
    std::size_t out_bytes(std::int64_t m) const { return static_cast<std::size_t>(m * n * 2); }
    // What one launch reads and writes.
    std::size_t bytes(std::int64_t m) const {
        return weight_bytes() + scale_bytes() + x_bytes(m) + out_bytes(m);
    }
};

// The arrays of a copy lie one after the other, so that the streaming read takes exactly as many bytes from
// the same place.
class Rotation {
  public:
    // Room for up to `max_m` rows; the arrays hold random numbers.
    Rotation(const Problem& problem, std::int64_t max_m);

    // Takes w (preshuffled) and w_scale from the files of these names in `folder`.
    void load_weights(const std::filesystem::path& folder);
    void load_activations(const std::filesystem::path& file, std::int64_t m);
    // Out of copy 0.
    void store_results(const std::filesystem::path& file, std::int64_t m) const;
    // Fills every out with a byte that is NaN.
    void poison_results() const;

    const Problem& problem() const { return problem_; }
    std::size_t num_copies() const { return num_copies_; }
    // A multiple of the copies, and so many that the start of a replay is not what is measured.
    int num_launches(std::int64_t m) const;

    Linear::Args arguments(std::size_t copy) const;
    // Launches the plan over all copies in turn.
    cuda::CapturedGraph graph_of(const Plan<Linear>& plan, std::int64_t m) const;
    // Reads as many bytes in the same rotation.
    cuda::CapturedGraph graph_of(const StreamingRead& read, const ReadShape& shape, std::int64_t m) const;
    // The fastest shape for this many bytes.
    ReadShape best_read(const StreamingRead& read, std::int64_t m) const;

  private:
    cuda::Address at(std::size_t copy) const { return memory_.address() + copy * stride_; }
    // To the same place in every copy.
    void fill(std::size_t offset, const std::vector<char>& bytes) const;

    Problem problem_;
    std::int64_t max_m_;
    std::size_t stride_;  // from one copy to the next
    std::size_t num_copies_;
    cuda::Memory memory_;
};

}  // namespace kiln::bench
