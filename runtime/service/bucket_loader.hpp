// From a specialisation to a bucket that a device can launch: obtained, its argument block checked, loaded. A
// failure that speaks of the specialisation itself disables it: of a build everywhere, of a load on that
// device.
//
// Shared by a service and those of its plans that load buckets later, so that a plan may outlive its service.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "runtime/device/device.hpp"
#include "runtime/operators/decline.hpp"
#include "runtime/service/builder.hpp"
#include "runtime/service/ledger.hpp"

namespace kiln::service {

struct LoadedKernel {
    device::Function function = nullptr;
    device::LaunchShape shape;  // but for grid.x
    operators::GridRule grid_x;
};

// Constant once made.
struct LoadedBucket {
    std::vector<LoadedKernel> kernels;  // in the order of a launch
    std::shared_ptr<Health> health;
    std::shared_ptr<device::Module> module;
    ArtifactSource source = ArtifactSource::cache;
    std::vector<std::string> over_budget = {};  // budget.hpp; nothing that keeps it from being launched
};
using LoadedBucketPtr = std::unique_ptr<const LoadedBucket>;

// Thread safe.
class BucketLoader {
  public:
    explicit BucketLoader(std::unique_ptr<Builder> builder) : builder_(std::move(builder)) {}

    // Both steps for one bucket; blocks. Declines at once what is disabled, and what the compiler at hand can
    // not build for at all.
    [[nodiscard]] operators::Answer<LoadedBucketPtr> obtain(device::Device& device,
                                                            const operators::Specialisation& specialisation);

    // The steps apart, so that the first may be done for many at once. refuse() is what a failure of either
    // means: it disables where trying again would only fail again.
    [[nodiscard]] Result<LoadedBucketPtr> load(device::Device& device, const Artifact& artifact);
    [[nodiscard]] operators::Refusal refuse(int ordinal, const operators::Specialisation& specialisation,
                                            Error error);

    // Whether it may be launched on one device: a load or a launch that fails there disables it there.
    [[nodiscard]] std::shared_ptr<Health> health(int ordinal,
                                                 const operators::Specialisation& specialisation);
    // On that device, or, when it can not be built, on all.
    [[nodiscard]] bool is_disabled(int ordinal, const operators::Specialisation& specialisation);
    // What a disabled specialisation declines with.
    [[nodiscard]] static operators::Refusal disabled(const operators::Specialisation& specialisation);

    [[nodiscard]] Builder& builder() { return *builder_; }
    [[nodiscard]] const Builder& builder() const { return *builder_; }
    [[nodiscard]] Ledger& ledger() { return ledger_; }
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    [[nodiscard]] std::uint64_t num_loads() const { return loads_.load(); }

  private:
    const std::unique_ptr<Builder> builder_;
    Ledger ledger_;
    std::atomic<std::uint64_t> loads_{0};

    void forget_unused();  // requires mutex_

    std::mutex mutex_;
    // Protected by mutex_; by digest of the request document.
    std::map<std::pair<int, Digest>, std::shared_ptr<Health>> health_;
    std::set<Digest> not_to_be_built_;
    std::size_t next_forget_ = 256;
};

}  // namespace kiln::service
