// JSON of what records and the messages between a tune and its trial processes have in common. For the inside
// of this room only: the JSON library's types do not leave it. What reads throws where the JSON is of another
// form.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/tune/record.hpp"

namespace kiln::tune {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json to_json(const tables::Problem& problem);
[[nodiscard]] tables::Problem problem_from(const Json& value);
// {"max_m", "template", "constants"}
[[nodiscard]] Json to_json(const tables::Bucket& bucket);
[[nodiscard]] tables::Bucket bucket_from(const Json& value);

// "status", and what follows in a candidate's record, as members of `object`.
void add_finding(Json& object, const Finding& finding);
[[nodiscard]] Finding finding_from(const Json& object);

}  // namespace kiln::tune
