#include "runtime/service/ledger.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

#include "base/log.hpp"
#include "runtime/operators/decline.hpp"

namespace kiln::service {

namespace {

// An event whose text can not be made, for want of memory, is not said; what it speaks of has happened all
// the same.
void say(log::Level level, std::string_view name, std::initializer_list<log::Field> fields) noexcept {
    try {
        log::event(level, name, fields);
    } catch (const std::exception&) {
        static_cast<void>(level);
    }
}

}  // namespace

void DeclineCounts::add(int decline) noexcept {
    const bool is_known = decline > 0 && decline < kReasons;
    by_reason[is_known ? static_cast<std::size_t>(decline) : 0].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t DeclineCounts::total() const {
    return std::accumulate(by_reason.begin(), by_reason.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& count) { return sum + count.load(); });
}

bool Declines::is_first(int decline) noexcept {
    const auto bit = static_cast<unsigned>(decline);
    if (bit >= 64 * seen_.size()) {
        return false;
    }
    std::atomic<std::uint64_t>& word = seen_[bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << bit % 64;
    return (word.load(std::memory_order_relaxed) & mask) == 0 &&
           (word.fetch_or(mask, std::memory_order_relaxed) & mask) == 0;
}

void Declines::note(int decline, std::string_view detail) noexcept {
    counts_->add(decline);
    if (is_first(decline)) {
        say(log::Level::info, "decline",
            {{"problem", label_}, {"reason", operators::decline_name(decline)}, {"detail", detail}});
    }
}

std::shared_ptr<Declines> Ledger::declines_of(const std::string& label) {
    const std::lock_guard lock(mutex_);
    if (by_label_.size() >= next_forget_) {
        std::erase_if(by_label_, [](const auto& entry) { return entry.second.use_count() == 1; });
        next_forget_ = std::max<std::size_t>(1024, 2 * by_label_.size());
    }
    std::shared_ptr<Declines>& declines = by_label_[label];
    if (declines == nullptr) {
        declines = std::make_shared<Declines>(label, counts_);
    }
    return declines;
}

void Ledger::disable(Health& health, std::string_view kernel_name, std::string_view reason) noexcept {
    if (!health.disabled.exchange(true)) {
        ++disabled_;
        say(log::Level::error, "disable", {{"kernel", kernel_name}, {"reason", reason}});
    }
}

}  // namespace kiln::service
