// The service: tables, templates, cache, compiler and devices behind one object. libkiln's C ABI and the
// command line are both built on this header.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/operators/operator.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/service/builder.hpp"
#include "runtime/service/kernel_sources.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/settings.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::service {

using operators::Answer;
using operators::Operator;
using operators::Problem;

struct Statistics : BuildStatistics {
    std::uint64_t loads = 0;  // code objects handed to a driver
};

// How one problem at one M is served; what `kiln explain` prints. `refusal` is set when it is not.
struct Explanation {
    std::optional<operators::Refusal> refusal;
    const tables::Row* row = nullptr;        // lives as long as the service
    std::vector<tables::Shadowed> shadowed;  // rows that `row` hides on the target
    const tables::Bucket* bucket = nullptr;  // null when M is outside the row
    std::size_t bucket_index = 0;
    std::optional<operators::Specialisation> specialisation;
    std::optional<cache::Key> key;  // none without a compiler
    std::string key_missing;        // why there is none
    bool cached = false;            // an entry is in the store
};

// Which rows of the tables.
struct WarmFilter {
    const Operator* op = nullptr;          // null: all
    Problem problem;                       // fields that must be equal; empty: all
    std::optional<tables::Target> target;  // the device or target to serve; nothing: rows of every target
};

struct WarmItem {
    operators::Specialisation specialisation;
    std::optional<Error> error;
    ArtifactSource source = ArtifactSource::compiled;
    double compile_seconds = 0;
    std::string key_digest;
};

struct WarmSummary {
    std::vector<WarmItem> items;  // in the order asked for
    std::uint64_t compiled = 0, hits = 0, failed = 0;
    double seconds = 0;  // wall clock
};

// Called after each item, one at a time, from any thread.
using WarmProgress = std::function<void(std::size_t done, std::size_t total, const WarmItem& item)>;

// What a test may replace.
struct Parts {
    CompilerFactory make_compiler;
    std::function<Result<std::vector<std::shared_ptr<device::Device>>>()> open_devices;
};

// Thread safe. Plans outlive it.
class Service {
  public:
    // Reads the environment and the tables; starts no process and binds no driver. Errors as
    // kiln_service_open.
    [[nodiscard]] static Result<std::unique_ptr<Service>> open(const Overrides& overrides = {});
    [[nodiscard]] static Result<std::unique_ptr<Service>> open(Settings settings, Parts parts = {});
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    [[nodiscard]] const Settings& settings() const { return settings_; }
    // The tables of every layer.
    [[nodiscard]] const tables::Table& table() const { return *table_; }
    [[nodiscard]] Builder& builder() { return *builder_; }
    [[nodiscard]] const KernelSources& sources() const { return sources_; }
    [[nodiscard]] Statistics statistics() const;

    // Every device of the configured driver, bound at the first call; a failure is kept and returned again.
    [[nodiscard]] Result<std::vector<std::shared_ptr<device::Device>>> devices();
    // not_found when the driver has no such ordinal.
    [[nodiscard]] Result<std::shared_ptr<device::Device>> device(int ordinal);

    // The row that serves the problem on a target: guards, switches, tables, in this order. Never compiles.
    [[nodiscard]] Answer<const tables::Row*> select(const Operator& op, const Problem& problem,
                                                    const tables::Target& target) const;
    // What one bucket of a row is compiled from.
    [[nodiscard]] Result<operators::Specialisation> specialise(const tables::Row& row,
                                                               const tables::Bucket& bucket) const;
    // The code object, from the cache or the compiler: builder().obtain().
    [[nodiscard]] Result<ArtifactPtr> obtain(const operators::Specialisation& specialisation) {
        return builder_->obtain(specialisation);
    }

    [[nodiscard]] Explanation explain(const Operator& op, const Problem& problem, std::int64_t m,
                                      const tables::Target& target);

    // Answers without compiling or loading; a problem that failed earlier declines.
    [[nodiscard]] Answer<void> supports(int ordinal, const Operator& op, const Problem& problem);
    // The same for the configured target, without touching a device.
    [[nodiscard]] Answer<void> supports(const Operator& op, const Problem& problem) const;

    // Every bucket obtained (in parallel), checked and loaded. The calling thread's current device is left as
    // it was.
    [[nodiscard]] Answer<std::shared_ptr<const Plan>> prepare(int ordinal, const Operator& op,
                                                              const Problem& problem);

    // The rows that the filter matches, in the order of the tables: with a target, those that a lookup for it
    // finds; without, all that no stronger layer replaces.
    [[nodiscard]] std::vector<const tables::Row*> rows(const WarmFilter& filter) const;
    // Their specialisations, each once. A row that can not be specialised gives an error; where no target is
    // asked for, one whose template has no source for its own is left out.
    [[nodiscard]] std::vector<operators::Specialisation> matching(const WarmFilter& filter,
                                                                  std::vector<Error>& errors) const;
    // Obtains all, several at once. Items are in the order asked for; one that fails does not stop the
    // others.
    [[nodiscard]] WarmSummary warm(std::span<const operators::Specialisation> wanted,
                                   const WarmProgress& progress = {});

  private:
    Service(Settings settings, std::shared_ptr<const tables::Table> table, Parts parts);

    // What prepare() needs before it compiles or loads anything; supports() is whether there is one.
    struct Resolved {
        std::shared_ptr<device::Device> device;
        std::vector<operators::Specialisation> specialisations;  // by bucket
    };
    [[nodiscard]] Answer<Resolved> resolve(int ordinal, const Operator& op, const Problem& problem);

    [[nodiscard]] std::shared_ptr<Health> health(int ordinal,
                                                 const operators::Specialisation& specialisation);
    [[nodiscard]] Result<LoadedBucket> load(device::Device& device, const Artifact& artifact);

    const Settings settings_;
    const std::shared_ptr<const tables::Table> table_;
    const Parts parts_;
    const KernelSources sources_;
    std::unique_ptr<Builder> builder_;

    std::mutex device_mutex_;
    // Protected by device_mutex_.
    std::optional<Result<std::vector<std::shared_ptr<device::Device>>>> devices_;

    std::mutex health_mutex_;
    // By ordinal and request document; protected by health_mutex_.
    std::map<std::pair<int, std::string>, std::shared_ptr<Health>> health_;
    std::atomic<std::uint64_t> loads_{0};
};

}  // namespace kiln::service
