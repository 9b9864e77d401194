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
    // Buckets by ascending max_m, at least one and at most 255.
    Plan(const operators::Operator& op, operators::Problem problem, std::shared_ptr<device::Device> device,
         std::vector<LoadedBucket> buckets);

    // The launch path. M is at least 1. Returns KILN_OK, a decline, or minus an error code.
    [[nodiscard]] kiln_status enqueue(device::Stream stream, std::int64_t m, void* kernargs,
                                      std::size_t kernarg_bytes) const noexcept;

    // The bucket that serves m; null when none does.
    [[nodiscard]] const LoadedBucket* bucket_for(std::int64_t m) const noexcept {
        if (m < 1 || m > max_m_) {
            return nullptr;
        }
        if (m < static_cast<std::int64_t>(bucket_of_.size())) {
            return &buckets_[bucket_of_[static_cast<std::size_t>(m)]];
        }
        const LoadedBucket* bucket = &buckets_[first_beyond_];
        while (bucket->max_m < m) {
            ++bucket;
        }
        return bucket;
    }

    [[nodiscard]] const operators::Operator& op() const { return op_; }
    [[nodiscard]] const operators::Problem& problem() const { return problem_; }
    [[nodiscard]] const operators::TypedProblem& typed() const { return typed_; }
    [[nodiscard]] device::Device& device() const { return *device_; }
    [[nodiscard]] const std::shared_ptr<device::Device>& shared_device() const { return device_; }
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
    // By M: index into buckets_. Ends at kLookup; the few buckets beyond are searched from first_beyond_ on.
    std::vector<std::uint8_t> bucket_of_;
    std::size_t first_beyond_ = 0;
};

// kiln_linear_launch, with the plan's type checked.
[[nodiscard]] kiln_status launch_linear(const Plan& plan, device::Stream stream, std::int64_t m,
                                        const kiln_linear_args& args) noexcept;

}  // namespace kiln::service
