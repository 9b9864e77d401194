// Specialisations through the real compiler, held to the budgets of their buckets.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/service/budget.hpp"
#include "shipped.hpp"

namespace kiln::kernels_test {

inline void check_budgets(std::vector<operators::Specialisation> wanted) {
    MESSAGE(wanted.size() << " code objects");
    for (const Built& built : build(std::move(wanted))) {
        CAPTURE(built.specialisation.kernel_name);
        const auto object = compile::read_code_object(built.result.code_object);
        REQUIRE(object);
        for (const std::string& complaint : service::over_budget(built.specialisation, *object)) {
            FAIL_CHECK(complaint);
        }
    }
}

}  // namespace kiln::kernels_test
