#include "runtime/device/choose.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fork_guard.hpp"
#include "runtime/device/cuda/binding.hpp"
#include "runtime/device/hip/binding.hpp"

namespace kiln::device {
namespace {

namespace fs = std::filesystem;
using driver::LibraryPointer;
using driver::Steps;

struct BindLock {
    std::mutex mutex;
};

// A family as `automatic` sees it.
struct Candidate {
    const driver::Family& family;
    std::string_view gpu;                            // "AMD GPU"
    std::span<const char* const> kernel_interfaces;  // the files by which its kernel driver shows
};

constexpr const char* kAmdInterfaces[] = {"/dev/kfd"};
constexpr const char* kNvidiaInterfaces[] = {"/dev/nvidiactl", "/dev/dxg"};

bool is_present(const char* file) {
    std::error_code error;
    return fs::exists(file, error);
}

// A library with a device; or why there is none, which another candidate may make up for unless it is final.
struct Attempt {
    Result<LibraryPointer> library;
    bool final = false;
};

Attempt attempt(const Candidate& candidate, const DriverConfig& config, Steps& steps) {
    const auto& [family, gpu, interfaces] = candidate;
    if (auto settled = driver::bind_settled(family, config, steps)) {
        // Which of several copies is meant, or that a named one can not be had, is for a person to settle.
        const bool is_final =
            !driver::asked_for(family, config).empty() || driver::driver_copies(family.stem).size() > 1;
        return {*std::move(settled), is_final};
    }
    if (std::ranges::none_of(interfaces, is_present)) {
        return {fail(ErrorCode::environment, Stage::device,
                     fmt::format("no {}: {} does not exist", gpu, fmt::join(interfaces, " or ")))};
    }
    return {driver::load_installed(family, steps)};
}

Result<LibraryPointer> choose_automatically(const DriverConfig& config, Steps& steps) {
    std::array candidates{Candidate{hip::family(), "AMD GPU", kAmdInterfaces},
                          Candidate{cuda::family(), "NVIDIA GPU", kNvidiaInterfaces}};
    Steps reasons;
    const bool any_named = std::ranges::any_of(
        candidates, [&](const auto& c) { return !driver::asked_for(c.family, config).empty(); });
    for (const auto& candidate : candidates) {
        if (any_named && driver::asked_for(candidate.family, config).empty()) {
            continue;
        }
        auto [library, is_final] = attempt(candidate, config, steps);
        if (library || is_final) {
            return library;
        }
        reasons.push_back(std::move(library.error().message));
    }
    auto simulator = hip::bind_simulator(config);
    if (!simulator) {
        reasons.push_back(std::move(simulator.error().message));
        return fail(ErrorCode::environment, Stage::device, fmt::format("{}", fmt::join(reasons, "; ")));
    }
    steps.insert(steps.end(), reasons.begin(), reasons.end());
    steps.emplace_back("the simulator takes its place");
    return simulator;
}

}  // namespace

Result<LibraryPointer> choose_driver(const DriverConfig& config, Steps* steps) {
    Steps unwanted;
    Steps& taken = steps != nullptr ? *steps : unwanted;
    watch_forks();
    // Two threads that bind at once must not load two copies.
    const std::scoped_lock lock(of_this_process<BindLock>().mutex);
    switch (config.driver) {
        case Driver::hip:
            return driver::bind(hip::family(), config, taken);
        case Driver::cuda:
            return driver::bind(cuda::family(), config, taken);
        case Driver::sim:
            taken.emplace_back("the simulator was asked for");
            return hip::bind_simulator(config);
        case Driver::automatic:
            break;
    }
    return choose_automatically(config, taken);
}

}  // namespace kiln::device
