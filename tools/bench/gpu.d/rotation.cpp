#include "tools/bench/gpu.d/rotation.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

namespace kiln::bench {

namespace {

constexpr std::size_t kAlignment = 1024;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::vector<char> contents(const std::filesystem::path& path, std::size_t expected) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(expected);
    file.read(bytes.data(), static_cast<std::streamsize>(expected));
    if (!file || file.peek() != std::ifstream::traits_type::eof()) {
        throw std::runtime_error("expected " + std::to_string(expected) + " bytes in " + path.string());
    }
    return bytes;
}

// Random bytes, each passed through `shape`.
template <class Shape>
std::vector<char> random_bytes(std::size_t size, std::mt19937_64& engine, Shape shape) {
    std::vector<char> bytes(size);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
        word = i % 8 == 0 ? engine() : word >> 8;
        bytes[i] = static_cast<char>(shape(i, static_cast<unsigned>(word & 0xff)));
    }
    return bytes;
}

}  // namespace

Rotation::Rotation(const Problem& problem, std::int64_t max_m)
    : problem_(problem),
      max_m_(max_m),
      stride_(aligned(problem.bytes(max_m))),
      num_copies_(
          std::max<std::size_t>(2, 3 * cuda::Gpu::instance().l2_bytes() / problem.weight_bytes() + 1)),
      memory_(stride_ * num_copies_) {
    std::mt19937_64 engine(20251);
    // e4m3 without its two NaNs.
    fill(0, random_bytes(problem.weight_bytes(), engine, [](std::size_t, unsigned byte) {
             return (byte & 0x7f) == 0x7f ? byte ^ 1u : byte;
         }));
    const std::vector<float> scales(problem.scale_bytes() / sizeof(float), 0.01f);
    std::vector<char> scale_bytes(problem.scale_bytes());
    std::memcpy(scale_bytes.data(), scales.data(), scale_bytes.size());
    fill(problem.weight_bytes(), scale_bytes);
    // bf16 of magnitudes 2^-8 to 2^7.
    fill(problem.weight_bytes() + problem.scale_bytes(),
         random_bytes(problem.x_bytes(max_m), engine, [](std::size_t i, unsigned byte) {
             return i % 2 == 0 ? byte : (byte & 0x87u) | 0x38u;
         }));
    poison_results();
}

void Rotation::fill(std::size_t offset, const std::vector<char>& bytes) const {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    gpu.check(gpu.calls().cuMemcpyHtoD_v2(at(0) + offset, bytes.data(), bytes.size()), "cuMemcpyHtoD");
    for (std::size_t copy = 1; copy < num_copies_; ++copy) {
        gpu.check(gpu.calls().cuMemcpyDtoD_v2(at(copy) + offset, at(0) + offset, bytes.size()),
                  "cuMemcpyDtoD");
    }
}

void Rotation::load_weights(const std::filesystem::path& folder) {
    fill(0, contents(folder / "w", problem_.weight_bytes()));
    fill(problem_.weight_bytes(), contents(folder / "w_scale", problem_.scale_bytes()));
}

void Rotation::load_activations(const std::filesystem::path& file, std::int64_t m) {
    fill(problem_.weight_bytes() + problem_.scale_bytes(), contents(file, problem_.x_bytes(m)));
}

void Rotation::poison_results() const {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    for (std::size_t copy = 0; copy < num_copies_; ++copy) {
        gpu.check(gpu.calls().cuMemsetD8_v2(reinterpret_cast<cuda::Address>(arguments(copy).out), 0xff,
                                            problem_.out_bytes(max_m_)),
                  "cuMemsetD8");
    }
}

void Rotation::store_results(const std::filesystem::path& file, std::int64_t m) const {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    std::vector<char> bytes(problem_.out_bytes(m));
    gpu.check(gpu.calls().cuMemcpyDtoH_v2(bytes.data(), reinterpret_cast<cuda::Address>(arguments(0).out),
                                          bytes.size()),
              "cuMemcpyDtoH");
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) {
        throw std::runtime_error("can not write " + file.string());
    }
}

int Rotation::num_launches(std::int64_t m) const {
    constexpr std::size_t kBytesOfAReplay = 8'000'000'000;  // about two milliseconds of an H200's memory
    constexpr std::size_t kFewest = 100;
    constexpr std::size_t kMost = 600;
    const std::size_t wanted = std::clamp(kBytesOfAReplay / problem_.bytes(m), kFewest, kMost);
    return static_cast<int>((wanted + num_copies_ - 1) / num_copies_ * num_copies_);
}

Linear::Args Rotation::arguments(std::size_t copy) const {
    const auto pointer = [](cuda::Address address) { return reinterpret_cast<void*>(address); };
    const cuda::Address scale = at(copy) + problem_.weight_bytes();
    const cuda::Address x = scale + problem_.scale_bytes();
    return {.x = pointer(x),
            .ldx = problem_.k,
            .w = pointer(at(copy)),
            .w_scale = static_cast<const float*>(pointer(scale)),
            .out = pointer(x + problem_.x_bytes(max_m_))};
}

cuda::CapturedGraph Rotation::graph_of(const Plan<Linear>& plan, std::int64_t m) const {
    return cuda::CapturedGraph::of([&] {
        for (int launch = 0; launch < num_launches(m); ++launch) {
            const Status status = plan.launch(cuda::Gpu::instance().stream(), m,
                                              arguments(static_cast<std::size_t>(launch) % num_copies_));
            if (!status) {
                throw std::runtime_error(std::string("launch: ") + status.text());
            }
        }
    });
}

cuda::CapturedGraph Rotation::graph_of(const StreamingRead& read, const ReadShape& shape,
                                       std::int64_t m) const {
    const std::size_t bytes = problem_.bytes(m) / 16 * 16;
    return cuda::CapturedGraph::of([&] {
        for (int launch = 0; launch < num_launches(m); ++launch) {
            read.enqueue(shape, at(static_cast<std::size_t>(launch) % num_copies_), bytes);
        }
    });
}

ReadShape Rotation::best_read(const StreamingRead& read, std::int64_t m) const {
    ReadShape best;
    double least = std::numeric_limits<double>::infinity();
    for (const ReadShape& shape : read_shapes()) {
        const auto times = graph_of(read, shape, m).replay(3);
        const double time = *std::min_element(times.begin(), times.end());
        if (time < least) {
            least = time;
            best = shape;
        }
    }
    return best;
}

}  // namespace kiln::bench
