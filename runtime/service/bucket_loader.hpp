// From a pipeline to a bucket that a device can launch: the code object of each stage obtained, its argument
// block checked, loaded. A failure that speaks of a specialisation itself disables it, and with it every
// bucket that it is a stage of: of a build everywhere, of a load on that device.
//
// On a device a code object is loaded once, however many buckets and plans share it. Where the program resets
// the device under a plan, that plan's modules are gone: the next plan loads anew.
//
// Shared by a service and those of its plans that load buckets later, so that a plan may outlive its service.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
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
    std::uint32_t kernarg_offset = 0;  // of its arguments in the block that a launch packs
    std::uint32_t kernarg_bytes = 0;
    std::uint32_t stage = 0;
};

// Constant once made.
struct LoadedBucket {
    std::vector<LoadedKernel> kernels;  // of all stages, in the order of a launch
    // By stage.
    std::vector<std::shared_ptr<device::Module>> modules;
    std::vector<ArtifactSource> sources;

    std::vector<std::string> over_budget = {};  // budget.hpp; nothing that keeps it from being launched

    [[nodiscard]] ArtifactSource source() const;  // compiled where any stage was, else so of bundle
};
using LoadedBucketPtr = std::unique_ptr<const LoadedBucket>;

// Thread safe.
class BucketLoader {
  public:
    explicit BucketLoader(std::unique_ptr<Builder> builder) : builder_(std::move(builder)) {}

    // Both steps for one bucket; blocks. Declines at once what is disabled, and what the compiler at hand can
    // not build for at all.
    [[nodiscard]] operators::Answer<LoadedBucketPtr> obtain(device::Device& device,
                                                            const operators::Pipeline& pipeline);

    // The steps apart, so that both may be done for many buckets at once. Of the first: all stages of all
    // buckets, those that are the same once; what is kept at once, then the misses in parallel; in the order
    // asked for.
    using Wanted = std::vector<const operators::Specialisation*>;
    [[nodiscard]] std::vector<Result<ArtifactPtr>> obtain_artifacts(const Wanted& wanted);
    // Of the second: `artifacts` are those of the stages. The first failure is the answer.
    [[nodiscard]] operators::Answer<LoadedBucketPtr> load(device::Device& device,
                                                          const operators::Pipeline& pipeline,
                                                          std::span<const Result<ArtifactPtr>> artifacts);

    // Whether a specialisation may be launched on one device: a load or a launch that fails there disables it
    // there.
    [[nodiscard]] std::shared_ptr<Health> health(int ordinal,
                                                 const operators::Specialisation& specialisation);
    // Whether any stage is disabled on that device, or, when it can not be built, on all: then what the
    // bucket declines with.
    [[nodiscard]] std::optional<operators::Refusal> disabled(int ordinal,
                                                             const operators::Pipeline& pipeline);

    [[nodiscard]] Builder& builder() { return *builder_; }
    [[nodiscard]] const Builder& builder() const { return *builder_; }
    [[nodiscard]] Ledger& ledger() { return ledger_; }
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    [[nodiscard]] std::uint64_t num_loads() const { return loads_.load(); }

  private:
    const std::unique_ptr<Builder> builder_;
    Ledger ledger_;
    std::atomic<std::uint64_t> loads_{0};

    // A specialisation on one device.
    struct Resident : Health {
        std::mutex mutex;  // held while it is loaded
        // Protected by mutex.
        std::weak_ptr<device::Module> module;
        std::string key_digest;  // of what was loaded: a compiler may be replaced while the process runs
    };

    [[nodiscard]] std::shared_ptr<Resident> resident(int ordinal,
                                                     const operators::Specialisation& specialisation);
    [[nodiscard]] bool is_disabled(int ordinal, const operators::Specialisation& specialisation);
    // Adds a stage to a bucket.
    [[nodiscard]] Result<void> load_stage(device::Device& device, const operators::SpecialisedStage& stage,
                                          const Artifact& artifact, LoadedBucket& bucket);
    [[nodiscard]] Result<std::shared_ptr<device::Module>> load_module(device::Device& device,
                                                                      const Artifact& artifact,
                                                                      Resident& resident);
    // What the failure of a step means: it disables where trying again would only fail again.
    [[nodiscard]] operators::Refusal refuse(int ordinal, const operators::Specialisation& specialisation,
                                            Error error);
    void forget_unused();  // requires mutex_

    std::mutex mutex_;
    // Protected by mutex_; by digest of the request document.
    std::map<std::pair<int, Digest>, std::shared_ptr<Resident>> residents_;
    std::set<Digest> not_to_be_built_;
    std::size_t next_forget_ = 256;
};

}  // namespace kiln::service
