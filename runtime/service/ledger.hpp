// What a service and its plans count together, and what they say once: declines and disabled specialisations.
//
// clang-format off
//   kiln: info: decline problem="linear n=48 k=128" reason=shape detail="..."
//   kiln: error: disable kernel=kiln_linear_n16_k128_m16 reason="..."
// clang-format on
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::service {

// By reason: the values of kiln_decline are below that.
struct DeclineCounts {
    static constexpr int kReasons = 128;

    void add(int decline) noexcept;
    [[nodiscard]] std::uint64_t of(int decline) const { return by_reason[static_cast<std::size_t>(decline)]; }
    [[nodiscard]] std::uint64_t total() const;

    std::array<std::atomic<std::uint64_t>, kReasons> by_reason{};  // 0: a value that is none
};

// Whether one specialisation may be used on one device; shared by every plan of the service that uses it.
struct Health {
    std::atomic<bool> disabled{false};
};

// The declines of one problem. Thread safe.
class Declines {
  public:
    Declines(std::string label, std::shared_ptr<DeclineCounts> counts)
        : label_(std::move(label)), counts_(std::move(counts)) {}

    // Counts; the first of its kind is a line in the log, which is the only time that this allocates.
    void note(int decline, std::string_view detail) noexcept;

  private:
    [[nodiscard]] bool is_first(int decline) noexcept;

    const std::string label_;
    const std::shared_ptr<DeclineCounts> counts_;
    std::array<std::atomic<std::uint64_t>, DeclineCounts::kReasons / 64>
        seen_{};  // a bit for each value of kiln_decline
};

// Thread safe.
class Ledger {
  public:
    [[nodiscard]] std::shared_ptr<Declines> declines_of(const std::string& label);

    // One line in the log for the first caller.
    void disable(Health& health, std::string_view kernel_name, std::string_view reason) noexcept;

    [[nodiscard]] const DeclineCounts& declines() const { return *counts_; }
    [[nodiscard]] std::uint64_t num_disabled() const { return disabled_.load(); }

  private:
    const std::shared_ptr<DeclineCounts> counts_ = std::make_shared<DeclineCounts>();
    std::atomic<std::uint64_t> disabled_{0};

    std::mutex mutex_;
    // Protected by mutex_. Bounded: of problems that no plan is of, the memory is lost now and then, and with
    // it that their declines were said.
    std::map<std::string, std::shared_ptr<Declines>> by_label_;
    std::size_t next_forget_ = 1024;
};

}  // namespace kiln::service
