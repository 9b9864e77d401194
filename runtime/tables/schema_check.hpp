// Checks a document against the published JSON Schema. For the loader only.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/tables/fault.hpp"
#include "runtime/tables/positioned_json.hpp"

namespace kiln::tables {

// Thread safe once made.
class SchemaCheck {
  public:
    // bad_input when the text is no JSON Schema.
    [[nodiscard]] static Result<SchemaCheck> create(std::string_view schema);
    SchemaCheck(SchemaCheck&&) noexcept;
    ~SchemaCheck();

    // Every fault, at the innermost value that has it.
    [[nodiscard]] std::vector<Fault> faults_of(const PositionedJson& json) const;

  private:
    struct Parts;
    explicit SchemaCheck(std::unique_ptr<const Parts> parts);
    std::unique_ptr<const Parts> parts_;
};

}  // namespace kiln::tables
