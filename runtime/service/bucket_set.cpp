#include "runtime/service/bucket_set.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"

namespace kiln::service {

namespace {

using operators::Answer;
using operators::Refusal;

Refusal internal(const char* what) {
    return {0, {ErrorCode::internal, Stage::load, what}};
}

}  // namespace

BucketSet::BucketSet(std::shared_ptr<device::Device> device, std::shared_ptr<BucketLoader> loader,
                     std::vector<operators::Pipeline> wanted, PrepareMode mode)
    : device_(std::move(device)),
      loader_(std::move(loader)),
      wanted_(std::move(wanted)),
      unready_(mode == PrepareMode::background ? KILN_DECLINE_COMPILING : KILN_OK),
      buckets_(wanted_.size()) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const operators::Pipeline& pipeline = wanted_[i];
        buckets_[i].max_m = pipeline.bucket.max_m;
        buckets_[i].kernel_name = pipeline.kernel_name;
        buckets_[i].template_id = pipeline.bucket.template_id;
        for (const operators::SpecialisedStage& stage : pipeline.stages) {
            buckets_[i].health.push_back(loader_->health(device_->info().ordinal, stage.specialisation));
        }
        buckets_[i].needs_workspace = pipeline.workspace(buckets_[i].max_m).any();
        buckets_[i].is_deterministic = pipeline.is_deterministic();
        buckets_[i].typed = pipeline.source_template->typed(pipeline.problem, pipeline.bucket);
        buckets_[i].pipeline = &pipeline;
        buckets_[i].unready_ = unready_;
    }
}

void BucketSet::set_loaded(std::size_t index, LoadedBucketPtr loaded) {
    buckets_[index].owner_ = std::move(loaded);
    buckets_[index].loaded_.store(buckets_[index].owner_.get(), std::memory_order_release);
}

kiln_status BucketSet::ready(std::size_t index) const noexcept {
    const PlanBucket& bucket = buckets_[index];
    if (bucket.is_disabled()) {
        return KILN_DECLINE_DISABLED;
    }
    if (bucket.loaded() != nullptr) {
        return KILN_OK;
    }
    const kiln_status unready = bucket.unready_.load(std::memory_order_relaxed);
    return unready == KILN_OK ? static_cast<kiln_status>(KILN_DECLINE_COMPILING) : unready;
}

kiln_status BucketSet::first_use(std::size_t index, device::Stream stream) noexcept try {
    PlanBucket& bucket = buckets_[index];
    if (bucket.is_disabled()) {
        return KILN_DECLINE_DISABLED;
    }
    if (const kiln_status unready = bucket.unready_.load(std::memory_order_relaxed); unready != KILN_OK) {
        return unready;
    }
    const Result<bool> capturing = device_->is_capturing(stream);
    if (!capturing) {
        return -static_cast<kiln_status>(capturing.error().code);
    }
    if (*capturing) {
        return KILN_DECLINE_CAPTURE;
    }
    {
        std::unique_lock lock(mutex_);
        settled_.wait(lock, [&bucket] { return !bucket.in_progress_; });
        if (bucket.loaded() != nullptr) {
            return KILN_OK;
        }
        if (bucket.failure_) {
            return bucket.failure_->status();
        }
        bucket.in_progress_ = true;
    }
    const kiln_status status = obtain_now(index);
    if (status != KILN_OK) {
        // The launch has been told, so the next wait need not.
        const std::lock_guard lock(mutex_);
        bucket.reported_ = true;
    }
    return status;
} catch (const std::exception&) {
    return -KILN_ERROR_INTERNAL;
}

kiln_status BucketSet::obtain_now(std::size_t index) {
    const auto attempt = [&]() -> Answer<LoadedBucketPtr> {
        try {
            return loader_->obtain(*device_, wanted_[index]);
        } catch (const std::exception& exception) {
            return tl::unexpected(internal(exception.what()));
        }
    };
    Answer<LoadedBucketPtr> answer = attempt();
    return settle(buckets_[index], std::move(answer),
                  loader_->builder().is_stopped() ? Expected::yes : Expected::no);
}

kiln_status BucketSet::settle(PlanBucket& bucket, Answer<LoadedBucketPtr> answer, Expected expected) {
    kiln_status status = KILN_OK;
    std::string message;
    {
        const std::lock_guard lock(mutex_);
        bucket.in_progress_ = false;
        if (bucket.loaded() != nullptr) {
            // Nothing that others may use is replaced.
        } else if (answer) {
            bucket.failure_.reset();
            bucket.owner_ = *std::move(answer);
            bucket.loaded_.store(bucket.owner_.get(), std::memory_order_release);
        } else {
            status = answer.error().status();
            message = answer.error().error.message;
            bucket.failure_ = std::move(answer.error());
            bucket.reported_ = false;
            bucket.unready_.store(status, std::memory_order_relaxed);
        }
    }
    settled_.notify_all();
    if (status != KILN_OK && status != KILN_DECLINE_DISABLED && !bucket.is_disabled()) {
        log::write(expected == Expected::yes ? log::Level::debug
                   : status > 0              ? log::Level::info
                                             : log::Level::warning,
                   message);
    }
    return status;
}

std::vector<std::size_t> BucketSet::claim() {
    std::vector<std::size_t> claimed;
    claimed.reserve(buckets_.size());
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        PlanBucket& bucket = buckets_[i];
        if (bucket.loaded() == nullptr && !bucket.in_progress_ && !bucket.is_disabled() &&
            (!bucket.failure_ || bucket.reported_)) {
            bucket.in_progress_ = true;
            bucket.failure_.reset();
            bucket.unready_.store(unready_, std::memory_order_relaxed);
            claimed.push_back(i);
        }
    }
    return claimed;
}

void BucketSet::obtain(std::size_t index) noexcept {
    static_cast<void>(obtain_now(index));
}

void BucketSet::drop(std::size_t index) noexcept {
    static_cast<void>(settle(
        buckets_[index],
        tl::unexpected(Refusal{0,
                               {ErrorCode::environment, Stage::compile,
                                "no thread is there to prepare it: none could be started, or the process "
                                "ends"}}),
        Expected::yes));
}

std::optional<Refusal> BucketSet::first_failure() {
    std::optional<Refusal> first;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        PlanBucket& bucket = buckets_[i];
        const bool is_news = bucket.failure_ && !std::exchange(bucket.reported_, true);
        if (first || (!bucket.failure_ && !bucket.is_disabled())) {
            continue;
        }
        if (!bucket.is_disabled() || is_news) {
            first = bucket.failure_;
            continue;
        }
        first = loader_->disabled(device_->info().ordinal, wanted_[i]);
        if (first && bucket.failure_) {
            first->error.message += ": " + bucket.failure_->error.message;
        }
    }
    return first;
}

std::optional<Refusal> BucketSet::first_not_loaded() const {
    const auto is_missing = [](const PlanBucket& bucket) { return bucket.loaded() == nullptr; };
    const auto first = std::find_if(buckets_.begin(), buckets_.end(), is_missing);
    if (first == buckets_.end()) {
        return std::nullopt;
    }
    return Refusal{KILN_DECLINE_COMPILING,
                   {ErrorCode::invalid_argument, Stage::compile,
                    fmt::format("{} of {} buckets are not ready, {} the first of them",
                                std::count_if(buckets_.begin(), buckets_.end(), is_missing), buckets_.size(),
                                first->kernel_name)}};
}

Answer<void> BucketSet::wait(std::chrono::milliseconds timeout) {
    // Beyond this the clock's own arithmetic would overflow, and nobody waits longer.
    constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
    std::unique_lock lock(mutex_);
    const auto all_settled = [this] {
        return std::none_of(buckets_.begin(), buckets_.end(),
                            [](const PlanBucket& bucket) { return bucket.in_progress_; });
    };
    bool settled = true;
    if (timeout.count() < 0 || timeout > kLongest) {
        settled_.wait(lock, all_settled);
    } else {
        settled = settled_.wait_for(lock, timeout, all_settled);
    }
    std::optional<Refusal> refusal = settled ? first_failure() : std::nullopt;
    if (!refusal) {
        refusal = first_not_loaded();
    }
    return refusal ? Answer<void>(tl::unexpected(*std::move(refusal))) : Answer<void>();
}

}  // namespace kiln::service
