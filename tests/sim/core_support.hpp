// Real HIP kernels on the machine: compiled by the worker, loaded, run, and their memory compared.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile/compiler.hpp"
#include "runtime/sim/machine.hpp"

namespace kiln::sim_test {

// One seed a test program, printed when something fails.
inline std::mt19937& random() {
    static const unsigned seed = std::random_device{}();
    static std::mt19937 generator = [] {
        MESSAGE("seed ", seed);
        return std::mt19937(seed);
    }();
    return generator;
}

// Explicit arguments, each at its natural alignment.
class Arguments {
  public:
    template <class T>
    Arguments& operator<<(const T& value) {
        const std::size_t at = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
        bytes_.resize(at + sizeof(T));
        std::memcpy(bytes_.data() + at, &value, sizeof(T));
        return *this;
    }
    [[nodiscard]] ByteView view() const { return bytes_; }

  private:
    Bytes bytes_;
};

inline compile::Compiler& compiler() {
    static const std::unique_ptr<compile::Compiler> instance = [] {
        auto created = compile::Compiler::create({});
        REQUIRE_MESSAGE(created.has_value(), (created ? std::string{} : created.error().message));
        return std::move(*created);
    }();
    return *instance;
}

inline compile::CompileResult compile_hip(const std::string& source) {
    compile::CompileRequest request;
    request.name = "test.hip";
    request.source = source;
    request.target = "gfx950";
    request.options = {"-O3", "-std=c++20", "-mcumode"};
    auto result = compiler().compile(request);
    REQUIRE_MESSAGE(result.has_value(), (result ? std::string{} : result.error().message));
    return std::move(*result);
}

// A program and a memory that may be touched by its kernels.
class Bench {
  public:
    explicit Bench(const compile::CompileResult& built) {
        auto loaded = sim::Program::load(built.code_object, built.listing);
        REQUIRE_MESSAGE(loaded.has_value(), (loaded ? std::string{} : loaded.error().message));
        program_ = *loaded;
        memory_.admit(program_->image().data(), program_->image().size());
    }
    explicit Bench(const std::string& source) : Bench(compile_hip(source)) {}

    template <class T>
    std::span<T> allocate(std::size_t count,
                          sim::Memory::Contents contents = sim::Memory::Contents::written) {
        auto pointer = memory_.allocate(count * sizeof(T), contents);
        REQUIRE(pointer.has_value());
        return {static_cast<T*>(*pointer), count};
    }
    template <class T>
    std::span<T> upload(const std::vector<T>& values) {
        const std::span<T> there = allocate<T>(values.size());
        std::copy(values.begin(), values.end(), there.begin());
        return there;
    }

    Result<device::ExecutionCounts> run(const char* kernel, device::Dim3 grid, device::Dim3 block,
                                        const Arguments& arguments, std::uint32_t dynamic_lds = 0,
                                        sim::MachineConfig config = {}) {
        sim::Dispatch dispatch;
        dispatch.kernel = program_->find(kernel);
        REQUIRE(dispatch.kernel != nullptr);
        dispatch.grid = grid;
        dispatch.block = block;
        dispatch.dynamic_lds_bytes = dynamic_lds;
        dispatch.kernargs = arguments.view();
        return sim::run(dispatch, memory_, config);
    }
    device::ExecutionCounts run_well(const char* kernel, device::Dim3 grid, device::Dim3 block,
                                     const Arguments& arguments, std::uint32_t dynamic_lds = 0,
                                     sim::MachineConfig config = {}) {
        const auto counts = run(kernel, grid, block, arguments, dynamic_lds, config);
        REQUIRE_MESSAGE(counts.has_value(), (counts ? std::string{} : counts.error().message));
        return *counts;
    }
    // The error's message; fails the test when there is none.
    std::string run_badly(const char* kernel, device::Dim3 grid, device::Dim3 block,
                          const Arguments& arguments, std::uint32_t dynamic_lds = 0,
                          sim::MachineConfig config = {}) {
        const auto counts = run(kernel, grid, block, arguments, dynamic_lds, config);
        REQUIRE_FALSE(counts.has_value());
        return counts.error().message;
    }
    sim::Memory& memory() { return memory_; }

  private:
    sim::Memory memory_{std::size_t{1} << 30};
    std::shared_ptr<const sim::Program> program_;
};

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace kiln::sim_test
