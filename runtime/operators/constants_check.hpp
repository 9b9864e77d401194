// What keeps a bucket's constants from serving a problem, collected: what the templates' checks have in
// common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

struct ConstantName {
    std::string_view row;     // in a shape table: "tiles_n"
    std::string_view header;  // in constants.h: "kTilesN"
};

// Names that the bucket lacks, and names that it should not have.
[[nodiscard]] std::vector<tables::RowFault> check_constant_names(const Template& source_template,
                                                                 const Bucket& bucket,
                                                                 std::span<const ConstantName> names);

// Requires that check_constant_names() had nothing to say.
[[nodiscard]] inline std::int64_t constant(const Bucket& bucket, std::string_view name) {
    return bucket.constants.find(name)->second;
}

// Collects what does not hold.
class Demands {
  public:
    // Returns `holds`.
    bool operator()(bool holds, std::string pointer, std::string expected, std::int64_t found);
    [[nodiscard]] std::vector<tables::RowFault> take() { return std::move(faults_); }

  private:
    std::vector<tables::RowFault> faults_;
};

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

}  // namespace kiln::operators
