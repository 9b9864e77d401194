// A page of metrics in the text format of Prometheus, version 0.0.4:
//
//   # HELP kiln_cache_hits_total Specialisations that came from the cache.
//   # TYPE kiln_cache_hits_total counter
//   kiln_cache_hits_total{rank="3",place="store"} 44
//
// A line of HELP escapes backslash and line break, a label's value the double quote too. The samples of a
// family stand together, and no family is there twice. Numbers are whole, or as short as they can be read
// back exactly; +Inf, -Inf, NaN.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kiln::prometheus {

struct Label {
    std::string name;
    std::string value;
};

// invalid_argument for a name that no label can have ([a-zA-Z_][a-zA-Z0-9_]*, "__" not first), that is there
// twice or among `reserved`, and for a value that is not UTF-8.
[[nodiscard]] Result<void> check_labels(std::span<const Label> labels,
                                        std::span<const std::string_view> reserved);

// Of a counter the name ends in _total; what has a unit names it before that (_seconds, _bytes).
enum class Type { counter, gauge };

class Page {
  public:
    // `common` stands at every sample; as check_labels() wants it.
    explicit Page(std::span<const Label> common = {});

    // Begins a family, which sample() adds to until the next one.
    void family(Type type, std::string_view name, std::string_view help);

    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
    void sample(std::uint64_t value, Labels labels = {});
    void sample(double value, Labels labels = {});

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    void add(std::string_view value, Labels labels);

    const std::string common_;  // 'rank="3",model="q"'
    std::string name_;          // of the family
    std::string text_;
};

}  // namespace kiln::prometheus
