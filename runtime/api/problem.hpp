// From a caller's struct of a problem to the problem: what the structs of all operators have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/versioned_struct.hpp"
#include "runtime/api/handles.hpp"

namespace kiln::api {

// The words that tables and the command line have for the values of an enum, in the order of the values.
inline constexpr const char* kDtypes[] = {nullptr,    "bf16", "fp16", "fp32", "e4m3fn",
                                          "e4m3fnuz", "e5m2", "e2m1", "e8m0"};
inline constexpr const char* kWeightLayouts[] = {nullptr, "preshuffled", "row_major"};
inline constexpr const char* kScaleGranularities[] = {nullptr, "block_128x128", "per_tensor", "per_row",
                                                      "group_32"};

// A copy of the caller's struct, filled up from `known`, what its *_INIT macro makes. `name` is
// "kiln_linear".
template <class Struct>
[[nodiscard]] Result<Struct> read_problem(const Struct* given, Struct known, const char* name) {
    if (given != nullptr && read_versioned(given, given->struct_size, &known, sizeof(known)) &&
        known.reserved == 0) {
        return known;
    }
    return fail(
        ErrorCode::invalid_argument, Stage::configure,
        fmt::format("expected a {} of {} bytes (from its INIT macro), found {}", name, sizeof(known),
                    given == nullptr ? "NULL" : "another, or members that this version does not know"));
}

// The fields of a problem one by one; what is left out takes its default.
class ProblemBuilder {
  public:
    ProblemBuilder& number(const char* field, std::int64_t value) {
        problem_.emplace(field, value);
        return *this;
    }
    ProblemBuilder& flag(const char* field, std::int32_t value) {
        return number(field, std::int64_t{value != 0});
    }
    // From an enum; 0 leaves the field to its default.
    template <std::size_t kCount>
    ProblemBuilder& word(const char* field, const char* const (&words)[kCount], std::int32_t value) {
        if (value < 0 || value >= static_cast<std::int32_t>(kCount)) {
            note_unknown(field, value, kCount - 1);
        } else if (value != 0) {
            problem_.emplace(field, std::string(words[value]));
        }
        return *this;
    }

    // The problem complete, or invalid_argument for a value that an enum does not have.
    [[nodiscard]] Result<operators::Problem> take(const operators::Operator& op);

  private:
    void note_unknown(const char* field, std::int32_t value, std::size_t most);

    operators::Problem problem_;
    std::string unknown_;
};

}  // namespace kiln::api
