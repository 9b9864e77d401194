// The service: tables, templates, cache, compiler and devices behind one object. libkiln's C ABI and the
// command line are both built on this header.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/operators/operator.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/service/background.hpp"
#include "runtime/service/bucket_loader.hpp"
#include "runtime/service/builder.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/settings.hpp"
#include "runtime/service/snapshot.hpp"
#include "runtime/service/warm.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::service {

using operators::Answer;
using operators::Operator;
using operators::Problem;

struct Statistics : BuildStatistics {
    std::uint64_t loads = 0;     // code objects handed to a driver
    std::uint64_t declines = 0;  // of supports(), prepare() and launches
    std::uint64_t disabled = 0;  // failures that took a specialisation out
    std::uint64_t reloads = 0;   // that took the tables
};

// How one problem at one M is served; what `kiln explain` prints. `refusal` is set when it is not.
struct Explanation {
    std::optional<operators::Refusal> refusal;
    RowPtr row;    // for the problem, with all its buckets
    RowPtr found;  // as the table has it: `row` itself, or a general one
    // Rows that it hides on the target; they live as long as `found`.
    std::vector<tables::Shadowed> shadowed;
    // Buckets of the row that M reaches before the one that serves, and that a demand of the problem takes
    // out: which, and why.
    std::vector<std::pair<std::size_t, std::string>> passed_over;
    const tables::Bucket* bucket = nullptr;  // of the row; null when M is outside it
    std::size_t bucket_index = 0;
    std::optional<operators::Pipeline> pipeline;
    // What a stage of it is kept under.
    struct Kept {
        std::optional<cache::Key> key;  // none without a compiler
        std::string key_missing;        // why there is none
        bool cached = false;            // an entry is in the store or a layer
    };
    std::vector<Kept> kept;  // by stage
};

// Which rows of the tables.
struct WarmFilter {
    const Operator* op = nullptr;  // null: all
    Problem problem;               // fields that must be equal; empty: all
    // The device or target to serve; nothing: rows of every target.
    std::optional<tables::DeviceTraits> target;
};

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
    // The tables and templates of now: a later reload() does not change what was given out.
    [[nodiscard]] SnapshotPtr snapshot() const;
    [[nodiscard]] Builder& builder() { return loader_->builder(); }
    [[nodiscard]] Statistics statistics() const;
    // How often `decline`, a value of kiln_decline, was the answer; together Statistics::declines.
    [[nodiscard]] std::uint64_t num_declines(int decline) const;
    [[nodiscard]] std::chrono::system_clock::time_point opened() const { return opened_; }

    // Reads tables and templates again and takes them whole, or, with every fault in the error, not at all.
    // As kiln_service_reload.
    [[nodiscard]] Result<void> reload();

    // Every device of the configured driver, bound at the first call; a failure is kept and returned again.
    [[nodiscard]] Result<std::vector<std::shared_ptr<device::Device>>> devices();
    // not_found when the driver has no such ordinal.
    [[nodiscard]] Result<std::shared_ptr<device::Device>> device(int ordinal);

    // The row that serves the problem on a device or target: guards, switches, tables, in this order. Never
    // compiles.
    [[nodiscard]] Answer<RowPtr> select(const Operator& op, const Problem& problem,
                                        const tables::DeviceTraits& target) const;
    // What one bucket of a row is compiled from, with the templates of now.
    [[nodiscard]] Result<operators::Pipeline> pipeline(const tables::Row& row,
                                                       const tables::Bucket& bucket) const;
    // The code object, from the cache or the compiler: builder().obtain().
    [[nodiscard]] Result<ArtifactPtr> obtain(const operators::Specialisation& specialisation) {
        return builder().obtain(specialisation);
    }

    [[nodiscard]] Explanation explain(const Operator& op, const Problem& problem, std::int64_t m,
                                      const tables::DeviceTraits& target);

    // Answers without compiling or loading; a problem of which anything failed earlier declines.
    [[nodiscard]] Answer<void> supports(int ordinal, const Operator& op, const Problem& problem);
    // The same for the configured target, without touching a device.
    [[nodiscard]] Answer<void> supports(const Operator& op, const Problem& problem);

    // Blocking: every bucket obtained (in parallel), checked and loaded. Lazy and background: as
    // kiln_prepare_mode. The calling thread's current device is left as it was.
    [[nodiscard]] Answer<std::shared_ptr<const Plan>> prepare(int ordinal, const Operator& op,
                                                              const Problem& problem,
                                                              PrepareMode mode = PrepareMode::blocking);

    // The rows that the filter matches, in the order of the tables: with a target, those that a lookup for it
    // finds; without, all that no stronger one replaces. Of a general row one for each problem that it lists,
    // and for the problem that the filter names where it leaves no field open.
    [[nodiscard]] std::vector<RowPtr> rows(const WarmFilter& filter) const;
    // Their specialisations, stages of pipelines too, each once. A row that can not be specialised gives an
    // error; where no target is asked for, one whose template has no source for its own is left out. With
    // `switched_off`, those of rows that KILN_DISABLE takes out are left out too; their request documents are
    // noted there.
    [[nodiscard]] std::vector<operators::Specialisation> matching(
        const WarmFilter& filter, std::vector<Error>& errors,
        std::set<std::string>* switched_off = nullptr) const;
    // Obtains all, several at once. Items are in the order asked for; one that fails does not stop the
    // others.
    [[nodiscard]] WarmSummary warm(std::span<const operators::Specialisation> wanted,
                                   const WarmOptions& options = {});
    // What warm() would find, in the same order, without compiling anything.
    [[nodiscard]] std::vector<WarmCheck> check_warm(std::span<const operators::Specialisation> wanted);

  private:
    Service(Settings settings, SnapshotPtr snapshot, Parts parts);

    // What prepare() needs before it compiles or loads anything.
    struct Resolved {
        std::shared_ptr<device::Device> device;
        std::vector<operators::Pipeline> pipelines;  // by bucket
        std::vector<operators::Refusal> disabled;    // of each bucket that is
    };
    [[nodiscard]] Answer<Resolved> resolve(int ordinal, const Operator& op, const Problem& problem);
    [[nodiscard]] Answer<std::shared_ptr<BucketSet>> load_all(Resolved resolved);
    [[nodiscard]] Answer<std::shared_ptr<const Plan>> make_plan(int ordinal, const Operator& op,
                                                                const Problem& problem, PrepareMode mode);
    [[nodiscard]] Answer<RowPtr> select_in(const SnapshotPtr& snapshot, const Operator& op,
                                           const Problem& problem, const tables::DeviceTraits& target) const;
    // KILN_DISABLE names the operator or the template; the bucket's or one of its stages': which; any of the
    // row's.
    [[nodiscard]] bool is_switched_off(std::string_view name) const;
    [[nodiscard]] std::optional<std::string> switched_off(const tables::Bucket& bucket,
                                                          const std::vector<std::string>& stages) const;
    [[nodiscard]] bool is_switched_off(const tables::Row& row) const;
    // Counts a decline, and says the first of its kind.
    template <class T>
    Answer<T> noted(const Operator& op, const Problem& problem, Answer<T> answer);

    const Settings settings_;
    const Parts parts_;
    const std::chrono::system_clock::time_point opened_ = std::chrono::system_clock::now();
    const std::shared_ptr<BucketLoader> loader_;
    const std::shared_ptr<Background> background_;

    mutable std::mutex snapshot_mutex_;
    SnapshotPtr snapshot_;  // protected by snapshot_mutex_
    std::mutex reload_mutex_;
    std::atomic<std::uint64_t> reloads_{0};

    std::mutex device_mutex_;
    // Protected by device_mutex_.
    std::optional<Result<std::vector<std::shared_ptr<device::Device>>>> devices_;
};

// What one bucket of a row is compiled from, with the templates of these sources.
[[nodiscard]] Result<operators::Pipeline> pipeline_with(const KernelSources& sources, const tables::Row& row,
                                                        const tables::Bucket& bucket);

}  // namespace kiln::service
