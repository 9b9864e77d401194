// A problem resolved for one device: what a launch needs and nothing else.
//
// Constant once made and shared by pointer; the only thing that changes is the flag of a specialisation that
// the driver refused. Launchable from any number of threads, inside a graph capture too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/service/builder.hpp"

namespace kiln::service {

// Whether one specialisation may be used on one device; shared by every plan of the service that uses it.
struct Health {
    std::atomic<bool> disabled{false};
};

// A bucket that is loaded.
struct LoadedBucket {
    std::int64_t max_m = 0;
    device::Function function = nullptr;
    device::LaunchShape shape;
    std::shared_ptr<Health> health;
    std::string kernel_name;
    std::shared_ptr<device::Module> module;
    ArtifactSource source = ArtifactSource::cache;
    std::string template_id;
};

class Plan {
  public:
    // Buckets by ascending max_m, at least one, max_m of the last at most 65536 (see kLargestTable).
    Plan(const operators::Operator& op, operators::Problem problem, std::shared_ptr<device::Device> device,
         std::vector<LoadedBucket> buckets);

    // The launch path. M is at least 1. Returns KILN_OK, a decline, or minus an error code.
    [[nodiscard]] kiln_status enqueue(device::Stream stream, std::int64_t m, void* kernargs,
                                      std::size_t kernarg_bytes) const noexcept;

    // The bucket that serves m; null when none does.
    [[nodiscard]] const LoadedBucket* bucket_for(std::int64_t m) const noexcept {
        return m >= 1 && m <= max_m_ ? &buckets_[bucket_of_[static_cast<std::size_t>(m)]] : nullptr;
    }

    [[nodiscard]] const operators::Operator& op() const { return op_; }
    [[nodiscard]] const operators::Problem& problem() const { return problem_; }
    [[nodiscard]] const operators::TypedProblem& typed() const { return typed_; }
    [[nodiscard]] device::Device& device() const { return *device_; }
    [[nodiscard]] std::int64_t max_m() const { return max_m_; }
    [[nodiscard]] const std::vector<LoadedBucket>& buckets() const { return buckets_; }

  private:
    [[nodiscard]] kiln_status refused(const LoadedBucket& bucket, int driver_error) const noexcept;

    const operators::Operator& op_;
    const operators::Problem problem_;
    const operators::TypedProblem typed_;
    const std::shared_ptr<device::Device> device_;
    const int ordinal_;
    const std::vector<LoadedBucket> buckets_;
    const std::int64_t max_m_;
    std::vector<std::uint8_t> bucket_of_;  // by M: index into buckets_
};

// kiln_linear_launch, with the plan's type checked.
[[nodiscard]] kiln_status launch_linear(const Plan& plan, device::Stream stream, std::int64_t m,
                                        const kiln_linear_args& args) noexcept;

}  // namespace kiln::service
