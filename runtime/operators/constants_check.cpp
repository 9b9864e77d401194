#include "runtime/operators/constants_check.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::operators {

std::vector<tables::RowFault> check_constant_names(const Template& source_template, const Bucket& bucket,
                                                   std::span<const ConstantName> names) {
    std::vector<tables::RowFault> faults;
    std::vector<std::string_view> known;
    for (const ConstantName& name : names) {
        known.push_back(name.row);
        if (!bucket.constants.contains(name.row)) {
            faults.push_back({"/constants", fmt::format("the constant {}", name.row), "none"});
        }
    }
    const std::string all =
        known.empty() ? std::string("none") : fmt::format("one of {}", fmt::join(known, ", "));
    for (const auto& [name, value] : bucket.constants) {
        if (std::ranges::find(known, name) == known.end()) {
            faults.push_back({"/constants/" + name,
                              fmt::format("{}, which {} takes on {}", all, source_template.id(),
                                          source_template.processor()),
                              name});
        }
    }
    return faults;
}

bool Demands::operator()(bool holds, std::string pointer, std::string expected, std::int64_t found) {
    if (!holds) {
        faults_.push_back({std::move(pointer), std::move(expected), fmt::format("{}", found)});
    }
    return holds;
}

}  // namespace kiln::operators
