// From single times to a chart. Inside this room only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/report/report.hpp"

namespace kiln::report {

// Collects points until all are known, then draws the conclusions.
class ChartBuilder {
  public:
    ChartBuilder(Basis basis, std::string where);
    [[nodiscard]] Basis basis() const { return chart_.basis; }

    // A point for the same bucket at the same M takes the place of the one before.
    void add(const tables::Bucket& bucket, Point point, const std::optional<tune::Cost>& cost = std::nullopt);
    void add_choice(const tune::ChoiceRecord& choice);
    [[nodiscard]] Chart finish();

  private:
    using Key = std::tuple<std::string, tables::Constants, std::int64_t>;
    static Key key_of(const tables::Bucket& bucket, std::int64_t m);
    // The series and its time there; nothing where the bucket has none.
    using Place = std::optional<std::pair<std::size_t, double>>;
    [[nodiscard]] Place find(const std::optional<tune::Ranked>& ranked, std::int64_t m) const;
    void label_series();
    void add_winner(std::int64_t m);
    void add_crossovers();

    Chart chart_;
    std::map<Key, std::map<std::int64_t, Point>> points_;
    std::map<std::pair<Key, std::int64_t>, Limit> limits_;
    std::map<std::int64_t, tune::ChoiceRecord> choices_;
};

}  // namespace kiln::report
